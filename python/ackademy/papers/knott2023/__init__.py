"""Knott 2023: learning CUBIC's beta."""
