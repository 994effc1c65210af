"""Jinja templates as functions of a document.

limits     sizes of values, bounded before they are made
sandbox    the environment that templates run in
shortcuts  simple expressions as plain Python
compile    a template to a function, compiled once
on_demand  the same, imported when the first template is met
"""
