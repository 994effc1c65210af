"""Sample logs of lm-eval since 2023, lmms-eval and evalcore.

names     names of sample logs and results: task and time
rows      the row of a sample log and its fields
forms     the same row decoded in one go, for speed
requests  what a row asked, and the replies
lmms      lmms-eval's rows
results   results files, and those beside sample logs
targets   what a log leaves open about its targets, settled by all its rows
golds     golds and choices of documents
past      logged scores and filtered replies
pools     which files are shards of one task
samples   each document once, whatever the number of its filters
log       the tasks of sample logs
"""
