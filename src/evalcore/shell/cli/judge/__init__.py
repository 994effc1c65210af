"""Commands that hold runs against each other.

compare  two or more runs
power    how many documents a difference takes
check    a gate for CI
"""
