"""Trees of tasks, from configs to the numbers of every group.

tree         Group, Leaf, and fold_group, the one recursion
edit         one group as a value: children added, removed, looked up, counted
config       a group from its config and back
index        configs by name: who joins which group, and cycles
build        configs to trees
lint         everything wrong with groups before anything runs
averages     AVERAGES: which tasks count, with which weights
covariance   the error of a weighted sum of tasks that share clusters or documents
combination  values and errors of tasks combined
pool         the rule that scores all documents as one task
rules        GROUP_RULES: mean, macro, pool
report       the report of one group
"""
