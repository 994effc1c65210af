"""Which function writes which record of the core as HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyrsistent import PMap, pmap

from evalcore.core.compare.lines import Comparison, ComparisonLine
from evalcore.core.groups.tree import Group, Leaf
from evalcore.core.notebook.contrasts import write_comparison, write_difference, write_line_of
from evalcore.core.notebook.markup import Html
from evalcore.core.notebook.numbers import write_estimate, write_group, write_report, write_task
from evalcore.core.notebook.trees import write_leaf, write_tree
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.report import GroupReport, Report, TaskReport
from evalcore.core.stats.pair_tests import Difference

_WRITERS: dict[type, Callable[..., Html]] = {
    Estimate: write_estimate,
    TaskReport: write_task,
    GroupReport: write_group,
    Report: write_report,
    Group: write_tree,
    Leaf: write_leaf,
    Comparison: write_comparison,
    ComparisonLine: write_line_of,
    Difference: write_difference,
}
FORMS: PMap[type, Callable[..., Html]] = pmap(_WRITERS)


def find_form(forms: Mapping[type, Callable[..., Html]], record: object) -> Callable[..., Html]:
    """The function for a record's type, or for the nearest that it is made from.

    >>> find_form(FORMS, type("Mine", (Estimate,), {})(value=0.5)) is write_estimate
    True
    """
    return next(forms[kind] for kind in type(record).__mro__ if kind in forms)


def write_html(record: object) -> Html:
    """A record as HTML.

    >>> write_html(Estimate(value=0.5, ci=(0.25, 0.75), n=12))[:5]
    '<div '
    """
    return find_form(FORMS, record)(record)
