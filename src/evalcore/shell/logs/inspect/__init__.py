"""Logs of Inspect, read without Inspect.

archive  the members of an ``.eval`` file
samples  samples as documents: epochs are repeats
numbers  how epochs were reduced, and the metrics of the results
log      the task of a log
"""
