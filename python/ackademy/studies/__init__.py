"""Studies: scenarios by schemes by seeds, and what follows from the finished cells."""
