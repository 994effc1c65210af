"""Measurements of evalcore beside its peers, as one command: ``python -m bench [name ...]``, from the repository root.

table         BENCHES: what there is to measure
rows          what a bench yields: a figure beside a peer's, a floor and a target, or a section of a page
measure       time, memory and instructions of calls and of processes, and how they grow
texts         words and sentences of our own
page          what is written into docs/
before/       up to the model call
during/       what a model computes
after/        from its replies to numbers
scale/        whole runs, logs, and how costs grow
simulations/  how often intervals hold the truth and tests find what is there
pictures/     docs/how-intervals-work.md in pictures, a command of its own
"""
