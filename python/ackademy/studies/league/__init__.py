"""A league: many schemes on many networks of a suite, and what they do to each other."""
