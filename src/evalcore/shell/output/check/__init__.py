"""Gates, printed.

gate_text    a gate in a sentence
gate_tables  gates as tables
junit        gates as JUnit XML
renderers    JSON and the table of forms
"""
