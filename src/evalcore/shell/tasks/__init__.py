"""Task files: found, included, trusted, resolved. Names are loaded on first use: a list of tasks needs no numpy."""
