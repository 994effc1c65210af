"""Folders of task files to an index of tasks, groups and tags.

files     task files in a folder, each read once
includes  files merged with what they include
workers   many files read in parallel
pack      a YAML value as bytes and back
entries   what the index holds for a name
index     every task, group and tag by name
cache     an index on the disk until a file changes
"""
