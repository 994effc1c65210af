"""Group trees: built from configs, linted, folded into numbers."""
