"""Whole runs and logs, and how costs grow.

whole_run    from documents to written samples, on recorded answers
rescoring    a sample log scored again
engines      serial, processes and ray
growth       scoring and closing, from a thousand documents to ten million
huge         the same in tallies, to a hundred million
cluster      a simulation of many cores with stragglers and lost workers
"""
