"""The answer log: one append-only file from which the state of a run is folded."""
