"""repeats."""
