"""Configuration files, read with the line of everything."""
