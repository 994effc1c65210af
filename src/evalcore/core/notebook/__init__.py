"""Records as notebooks show them: HTML without scripts or requests, in which every text from outside is escaped.

markup        panels, tables and lists; all text is escaped here
interval_bar  intervals drawn in a line
numbers       estimates and reports
trees         groups and their tasks
contrasts     differences between runs
record_forms  which function writes which record
"""
