"""The pure part: the same records give the same bits. It reads no clock, file, environment or network.

secret_names  names whose values are secret
plain_text  text made safe to show, and numbers as people read them
records/    what flows through the pipe
prefixes    requests as a tree of token prefixes
partials/   scores of some documents as bytes that merge
stats/      errors, intervals, tests and plans, over numbers and influences
filters/    raw replies to answers
answers/    answers of many documents in order, as batches
metrics/    a batch to the score of each document
repeats/    several replies to one score
aggregate/  a column of scores to a value with its error and interval
groups/     trees of tasks to averages
tables      Tables: every table of behaviour in one frozen record
ledger      every document under one outcome, and counts that add up
tally       scores counted instead of kept, for more documents than memory holds
guard       what fails or takes too long loses its own document, and no other
pipeline    the five verbs in order: what the product runs
lm_eval/    all that is lm-eval's: policy, errata, configs, file schemas
compare/    two runs, document by document
explain/    one document, from its replies to its part in every number
notebook/   records as notebooks show them
"""
