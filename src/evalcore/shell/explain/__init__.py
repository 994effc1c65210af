"""One document of a recorded run traced to its scores, and two scorings of the same answers side by side."""
