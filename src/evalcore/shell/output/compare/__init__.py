"""A comparison of runs, printed.

line_order  numbers in the order of the group tree
footnotes   what to know besides the numbers
pair_table  two runs: a row for every number
matrix      more runs: a matrix for every number
renderers   JSON, CSV and the table of forms
"""
