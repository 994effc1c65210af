"""What is safe to show, to write down and to write to, and how a command ends safely.

safe_text    text and names from outside, made harmless
secrets      keys and passwords, found by their names and hidden
credentials  those that this process uses, kept out of all that it writes
strict_json  JSON that every reader takes, the same bytes for the same data
replacement  files that are whole or not there
exit_codes   how a command ended, in a number
streams      standard streams that no command breaks on
signals      what asks a command to stop
timer        work that ends in time
"""
