"""Plans for the next run, printed.

plan_page  plans for people
renderers  JSON, CSV and the table of forms
"""
