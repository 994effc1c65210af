"""Documents: local files, datasets, and which of them a task is about."""
