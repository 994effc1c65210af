"""Documents of recorded runs, in the order data takes.

``run_source`` opens a run, ``lookup`` finds a document, ``agreement`` traces it and holds the trace against its log,
``changes`` pairs two scorings; ``explain`` and ``diff`` are the commands.
"""
