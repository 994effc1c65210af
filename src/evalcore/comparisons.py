"""Runs on the same documents: differences with errors and p-values, gates, plans, and tests to make by hand."""

from evalcore.core.compare.estimates import compare_estimates
from evalcore.core.compare.lines import Comparison, ComparisonLine, ComparisonSide, adjust_comparisons
from evalcore.core.compare.sides import compare_sides
from evalcore.core.stats.pair_tests import Difference, paired_binary
from evalcore.core.stats.sign_flips import sign_flip_test
from evalcore.shell.compare.check import Checked, check_run
from evalcore.shell.compare.compare import Compared
from evalcore.shell.compare.power import Planned, plan_power

__all__ = [
    "Checked",
    "Compared",
    "Comparison",
    "ComparisonLine",
    "ComparisonSide",
    "Difference",
    "Planned",
    "adjust_comparisons",
    "check_run",
    "compare_estimates",
    "compare_sides",
    "paired_binary",
    "plan_power",
    "sign_flip_test",
]
