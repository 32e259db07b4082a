"""LearningCC: the fluid model of its equations."""
