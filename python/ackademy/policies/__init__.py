"""Policies as files: folder, card, list of those that are shipped."""
