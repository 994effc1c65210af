"""The pictures of docs/how-intervals-work.md: ``python -m bench.pictures`` draws them anew.

numbers   what evalcore says of small examples, of drawn runs, of the quickstart and of published answers
drawing   rows of intervals, curves and bars as SVG
pictures  which numbers are drawn how
"""
