"""Several replies to one question become one score.

repeated_score  a metric's scores repeat by repeat, and the columns that come of them
repeat          Reducer: a function of repeats, and what the pipe needs to know about it
at_k            reducers with a k: pass@k, maj@k, ...
reducers        REDUCERS: mean, max, ... and those with a k
reduce          reduce_repeats: one column per repeat to one column
"""
