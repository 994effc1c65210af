"""Runs that are on the disk already: evalcore's, lm-eval's, or their sample logs, read as scores by document."""
