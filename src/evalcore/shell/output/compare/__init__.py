"""A comparison printed.

``line_order`` orders its numbers, ``pair_table``, ``matrix`` and ``footnotes`` are its page, ``export`` its data, and
``renderers`` is the table of forms.
"""
