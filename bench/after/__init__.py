"""From replies to numbers.

scoring         replies to a task's numbers
instructions    what a document takes, counted instead of timed
aggregation     each kind of column closed, and how that grows
errors          standard errors
compare         tests of paired differences
text            TER and ROUGE
reward          one reward, alone and in a batch
verifiers       a call through the pool of verifiers
"""
