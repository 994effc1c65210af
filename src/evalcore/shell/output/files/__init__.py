"""The files of a run.

``results``, ``sample_lines`` and ``environment`` are what they hold, ``strict_json`` and ``secrets`` how it is written
down, ``replacement`` puts a file in place, ``run_files`` and ``tracker`` name the files; ``sample_frames``,
``arrow_tables`` and ``parquet`` are the same as tables.
"""
