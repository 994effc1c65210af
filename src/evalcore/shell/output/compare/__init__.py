"""A comparison of runs on the screen and as data."""
