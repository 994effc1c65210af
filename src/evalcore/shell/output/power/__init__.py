"""Plans for the next run, printed.

plan_page  plans for people
plan_data  plans as JSON and CSV
renderers  the table of forms
"""
