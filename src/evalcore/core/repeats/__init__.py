"""Several replies to one question become one score.

repeated_score  a metric's scores repeat by repeat, and the columns that come of them
reducers        REDUCERS: mean, pass@k, maj@k, ...
reduce          reduce_repeats: one column per repeat to one column
"""
