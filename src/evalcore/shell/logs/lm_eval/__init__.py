"""Sample logs of lm-eval since 2023, lmms-eval and evalcore.

names     names of sample logs and results: task and time
rows      the row of a sample log and its fields
requests  what a row asked, and the replies
lmms      lmms-eval's rows
forms     a row decoded in one go, for speed
results   results files, and those beside sample logs
golds     logged targets as golds
targets   how a task's targets are read, and the choices of its documents
past      logged scores and filtered replies; rows as bytes
pools     which files are shards of one task
samples   each document once, whatever the number of its filters
log       the tasks of sample logs
"""
