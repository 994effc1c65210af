"""What flows through the pipe: frozen records, from requests to reports.

errors       EvalError: what was expected, what came, where, and what to do
array        a read-only numpy array, equal and hashed by its bytes; exact sums of arrays
lean/        arrays that are made when they are looked at, from less than they take
frozen_dict  a dict that cannot change
request      requests, instances, answers and samples
task         what is measured: metrics, pipelines, tasks
document     documents: decoded for user code, selected, hashed
outcome      what became of a document under a metric, and counts of that
row          the scores of documents, in one of four kinds
column       a column of rows sorted by document; columns merge in any order
score        Scored: the columns of a task, and their merge
estimate     a number with its error, counts and recipe; Aggregation
report       the estimates of tasks and groups
"""
