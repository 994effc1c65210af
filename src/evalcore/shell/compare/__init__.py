"""Recorded runs held against each other: the commands compare, check and power.

runs            a run with its scores, of any format
run_sides       the runs of a command, read once
run_names       what they are called
filter_names    filters of two runs that go by other names
alike           documents recognised in spite of what was written
prompt_changes  what runs asked about the same documents
conditions      what differs between runs besides their scores
rule_changes    rules that differ between two runs, told and gated
compare         every pair of runs compared
baseline        a run held against its baseline
check           a run held to limits and against its baseline
power           the next run planned from the spread of one or two
"""
