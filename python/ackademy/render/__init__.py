"""Renders results: terminal, HTML, Markdown, CSV, JSON, notebooks."""
