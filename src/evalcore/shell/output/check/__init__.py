"""Gates, printed.

gate_text    a gate in a sentence
gate_tables  gates as tables
gate_data    gates as JSON
junit        gates as JUnit XML
renderers    the table of forms
"""
