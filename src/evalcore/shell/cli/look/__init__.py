"""Commands that look at recorded runs.

show     tables of finished runs, again
report   runs as a page for a browser
view     all runs of a folder in a browser
explain  one document
diff     two scorings of the same answers
"""
