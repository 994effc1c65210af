"""Task files: found, selected, resolved to trees, trusted, checked.

library/     folders of task files to an index by name
code         references to the code that a task needs, located and hashed, never run here
evaluate_scripts  metrics of Hugging Face's evaluate, by their scripts on this machine
task_keys    every key of a task file and a group, with its meaning
selection    the names, globs, files and mappings of a run to task configs
shape        configs in the form in which core builds trees
resolution   a selection to trees and the merged config of each task
trust        which code may run: by file, folder or hash
needs        what names need before they may run: code to trust, files to read
rehearsal    a task scored without documents, to find what would stop it
linter       everything wrong with task files, with file and line
description  one name of the index, explained as plain data
"""
