"""Gates printed.

``gate_text`` tells one in a sentence, ``gate_tables`` all of them in tables, ``gate_data`` as JSON, ``junit`` as XML;
``renderers`` is the table of forms.
"""
