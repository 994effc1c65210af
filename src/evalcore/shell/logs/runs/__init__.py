"""Recorded runs as scores by document.

source         the files of a run: a run folder, results with samples, or logs of any format
shards         the files of a folder that are one task of one run
log_table      a log as a table of documents and logged values
identity       documents by id, prompt and content
tasks          the task behind a log, from its recorded config
directions     the directions of recorded metrics
scores         logged scores as columns
columns        columns that reproduce the recorded numbers
trees          the groups of recorded results
totals         results without samples
result_errors  the errors of recorded numbers
run_record     a run of sample logs as a side of a comparison
"""
