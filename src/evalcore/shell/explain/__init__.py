"""Documents and verdicts looked up in recorded runs: the commands explain and diff.

run_source  a run with its answers and its scores
lookup      a document found by its id, number, name or hash
agreement   a document traced, and the trace held against its log
explain     all that is known of a document
answers     documents that were answered the same in two logs
changes     verdicts that changed between two scorings of a task
backends    where two backends part on each document
diff        two scorings of the same answers
"""
