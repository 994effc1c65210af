"""Plain tables with declared columns.

column_map    which column is what
table_rows    rows of JSON, CSV, TSV, Parquet and Arrow, one by one
cells         cells as what their columns are declared to hold
table_golds   golds where choices are numbers, too
table_kinds   log-likelihoods of choices, or of one text a row
row_document  the rows of a document as what was asked and answered
table_tasks   rows by task
table         rows as documents
"""
