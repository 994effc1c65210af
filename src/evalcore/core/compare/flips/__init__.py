"""Sign-flip tests of all lines at once: the same swaps of documents, followed through tasks and groups.

units         the documents or clusters that are swapped as one
swaps         what a swap does to the numbers of a task, and so to a line
significance  flip_lines: a p-value for every line
"""
