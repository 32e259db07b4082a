"""Tables of results as Markdown, for a document."""
