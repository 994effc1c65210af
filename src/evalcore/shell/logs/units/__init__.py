"""Logs cut into units of work, which any worker reads by itself.

unit          a range of a file, what was noticed in it, and how a log is cut
sample_unit   sample logs of lm-eval's form
table_unit    tables: lines of JSON, row groups of Parquet
"""
