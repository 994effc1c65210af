"""What is safe to show, to write down and to write to.

safe_text    text and names from outside, made harmless
secrets      keys and passwords, hidden
strict_json  JSON that every reader takes, the same bytes for the same data
replacement  files that are whole or not there
timer        work that ends in time
"""
