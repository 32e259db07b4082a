"""Cells: where they run, and what is kept of them."""
