"""The benchmark: every entry meets networks that follow from the entry itself."""
