"""Tables and figures of papers: ours beside the published."""
