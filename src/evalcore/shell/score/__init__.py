"""Recorded answers scored again, by old rules or new ones.

score       score(): its keys, and the steps below in order
rules       filters, metrics and reducers as flags say them
units/      logs cut into units of work, which an engine scores
hosts/      answers scored where they are: batches in Ray Data and Spark, ranks
scored_log  each log opened, scored by its recipe, and what was noticed
recipes     what a log is scored by: a chosen task, its own results, or the usual rules of its kind
sample      documents of a log as scoring takes them
verdicts    recorded scores taken as they are
carryover   recorded scores that stand where only a task's own code could score
stream      a log scored a piece at a time
pieces      samples written while they are scored
labels      what logs say of their runs, and what they are called beside each other
groups      trees over the tasks of logs
report      tasks of logs closed, the groups above them, and what there is to say
"""
