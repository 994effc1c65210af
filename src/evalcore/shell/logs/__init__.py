"""Recorded answers of any harness, one document at a time; READERS has a reader for each format.

paths         the files that paths, folders and globs name
head          the beginning of a file, from which its format is detected
json_records  JSON records one by one, each with its line and byte
log           what every reader returns: tasks and their documents
declarations  direction and bounds of metrics, as flags declare them
units/        logs cut into units of work
lm_eval/      sample logs of lm-eval, lmms-eval and evalcore
inspect/      logs of Inspect
tables/       plain tables with declared columns
readers       READERS
search        which files are logs
open          paths to the tasks whose answers they record
recordings    the files of recorded answers that ``model: replay`` reads
runs/         recorded runs as scores by document, for comparisons
"""
