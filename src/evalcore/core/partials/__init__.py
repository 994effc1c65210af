"""Scores of some of a task's documents as one small file that any machine can merge.

codec     records as bytes and back, without pickle
check     records of any origin held to what their fields declare
span      ranges of sources, and rows counted in them
partial   what a unit of work leaves behind, and how such parts merge
"""
