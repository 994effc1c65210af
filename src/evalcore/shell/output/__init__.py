"""What is written and printed: ``files`` of a run, the ``terminal``, and a room for each command that prints more."""
