"""Whole runs and logs, and how costs grow.

whole_run    from documents to written samples, on recorded answers
rescoring    a sample log scored again
growth       scoring and closing, from a thousand documents to ten million
cluster      a simulation of many cores with stragglers and lost workers
"""
