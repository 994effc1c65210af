"""The files of a run.

results        results.json as data
sample_lines   rows of the sample logs
plain_lines    their lines, most of them without a row for each
environment    what run.json says of machine and versions
run_files      the run folder, file by file
earlier_results  the results that a folder held before, and what changed since
tracker        lm-eval's own names for the same files
sample_frames  sample rows as columns
arrow_tables   results and samples as Arrow tables
parquet        the same as Parquet files
"""
