"""What is written and printed.

files/     the files of a run
terminal/  text for people, on a screen or in a pipe
report/    a page for a browser
compare/   a comparison of runs, printed
check/     gates, printed
power/     plans for the next run, printed
explain/   documents and changed verdicts, printed
notebook/  what commands found, as notebooks show it
"""
