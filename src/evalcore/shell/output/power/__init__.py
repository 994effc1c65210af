"""How many documents and repeats, on the screen and as data."""
