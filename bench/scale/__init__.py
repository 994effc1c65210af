"""Whole runs and logs, and how costs grow.

whole_run    from documents to written samples, on recorded answers
durable      answers that survive a crash
rescoring    a sample log scored again
log_commands  commands that read a log
large_page   a page of many samples in a browser
engines      serial, processes and ray
growth       scoring and closing, from a thousand documents to ten million
huge         the same in tallies, to a hundred million
cluster      a simulation of many cores with stragglers and lost workers
"""
