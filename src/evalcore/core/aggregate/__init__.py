"""A column of scores to a value, the influence of each document on it, an error and an interval.

numbers       rows of any kind as numbers, and between what they lie
ratios        means and ratios; the calibration error and its interval
classes       F1 and MCC from class counts, and their intervals
corpus        corpus scores, and questions made of several documents
aggregations  AGGREGATIONS
stderr        standard errors: from influences, an exact form, or a bootstrap
resample      a number on resamples of its documents
clusters      documents that belong together, and the error of an estimate by document or by cluster
inference     which errors and intervals are asked for
value         aggregate_metric: a column to an estimate
signature     the one-line recipe of a number
task_report   every column of a task to an estimate with its recipe and errata
"""
