"""Text for people, on a screen or in a pipe.

number_rows   a report as one row per number
losses        documents without a score, and why
notes         warnings, each once
number_text   numbers, differences, shares and keys as people read them
flat          rows as CSV and Markdown
wrap          names folded to a width
grid          columns of cells, drawn by rich or as Markdown
number_table  a run's table
screen        where output goes, and forms of it as entries of a table
show          a run's results in any form
progress      how far a run is
bars          the same on a terminal
"""
