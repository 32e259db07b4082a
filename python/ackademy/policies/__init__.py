"""Policies as files: folder, card, list of the shipped policies."""
