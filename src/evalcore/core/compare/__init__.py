"""Two runs on the same documents: paired, subtracted, tested, gated.

rules         where a run's rules come from, and in which two runs differ
lines         ComparisonSide, ComparisonLine, Comparison: what is compared, and what comes out
likeness      unnamed documents, recognised by fields that no model or scorer wrote
pairs         the same documents in two runs, by identity and never by answer
mismatches    rules, metrics and groups in which two runs differ
moves         a metric of a task in two runs, how far it moves a line, what kind of scores are behind it
differences   the difference of two estimates: error, interval, what it could have shown
flips/        sign-flip tests of all lines at once, through tasks and groups
sides         whole runs: a line for every task, metric and group
estimates     two estimates without the columns behind them
gates         numbers against limits
verdicts/     margins, baselines, documents without a counterpart
power         plans for the next run, from a run's own spread
"""
