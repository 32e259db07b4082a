"""Schemes in the place of the learners of networks."""
