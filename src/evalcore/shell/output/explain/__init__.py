"""Explained documents and changed verdicts, for people and for programs."""
