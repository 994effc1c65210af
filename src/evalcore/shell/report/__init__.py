"""Recorded runs gathered for a page, or shown again as they are: the commands report and show.

gathered_run  a run with its logs, its scores and their report
run_numbers   its group tree, and all that is known of each number
outcomes      what became of its documents
one_run/      what a page draws of a run besides its numbers
comparison    several runs, each pair of them
samples/      every document: what was asked, replied and scored
redaction     a page without anything that quotes a document
report        runs to a page
recorded_report  a results file back to the report it was written from
shown_run     a finished run with all that its table shows
"""
