"""Data files and datasets to the documents of a task.

wire          JSON lines that lose nothing: NaN, infinities, lone surrogates
doubled_keys  keys that come twice in an object
unpack        packed files as streams of bytes, with a limit on their size
align         documents as a table: every column in every document, one type a column
json_files    JSON and JSON lines
csv_files     CSV and TSV
arrow_files   Parquet and Arrow, with a limit on what they unfold to
readers       DATA_READERS: a file to documents by its suffix or first bytes
folders       the split of a file by its name or folder
local         splits from local files, such as the ``data:`` of a run config
hub           splits from the Hugging Face hub or from task code
splits        the documents of a task by split, read on demand
"""
