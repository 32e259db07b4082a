"""Sheets of each study: which numbers of its results stand where."""
