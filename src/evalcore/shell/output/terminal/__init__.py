"""Text for people, in the order data takes.

``number_rows`` flattens a report, ``losses`` and ``notes`` say what else to know; ``number_text``, ``safe_text`` and
``wrap`` make cells of it, ``grid`` a page of them; ``number_table`` and ``flat`` are a run's table in each form;
``screen`` prints a record in a form, ``show`` a run's results; ``progress`` tells how far a run is.
"""
