"""Runs that are on the disk already: evalcore's, lm-eval's, or their sample logs, read as scores by document."""

from evalcore.shell.logs.runs.recorded import Recorded, read_recorded

__all__ = ["Recorded", "read_recorded"]
