"""All that is lm-eval's: its configs, its numbers where they differ, its files.

task_config    a task from its config
target         a document's target as golds (E53)
recorded_code  code as configs record it, and whether two functions are the same
metrics        metrics and filters that differ (E10, E11, E13, E19, E21, E46, E48), and whether more is better
aggregations   aggregations and errors that differ (E01 to E03, E17, E18, E24, E46, E47)
groups         groups that differ (E04, E05, E08, E09, E23)
errata         ERRATA, and which of them concern an estimate
policy         LM_EVAL_0_4_13: the default tables with an entry replaced per erratum
result_row     a task from a row of lm-eval's results
result_file    a report as lm-eval's result file
lmms_results   a report as lmms-eval's six mappings
sample_log     scores as lm-eval's sample log
"""
