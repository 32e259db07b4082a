"""Statistics: metrics of a run, intervals over runs, claims of papers."""
