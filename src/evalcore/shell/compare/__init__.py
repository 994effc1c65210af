"""Runs held against each other, in the order data takes.

``run_sides`` reads the runs that a command names, ``alike`` recognises their documents, ``conditions`` says by what
else than their scores they differ; ``compare``, ``check`` (with ``baseline``) and ``power`` are the commands.
"""
