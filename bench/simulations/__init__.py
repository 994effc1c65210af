"""Evaluations drawn again and again, of which the truth is known.

cells           the grid of single runs
pair_cells      the grid of two runs
measures        what is seen in a cell
picture         dots on strips
coverage        how often intervals hold the truth
significance    how often tests find a difference
promises        what gates and plans keep
"""
