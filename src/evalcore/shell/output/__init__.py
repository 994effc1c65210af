"""What a run leaves behind: files in lm-eval's schemas, tables for people, and progress while it lasts."""
