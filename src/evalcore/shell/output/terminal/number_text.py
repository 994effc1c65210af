"""Numbers, differences, shares and keys as people read them."""

from __future__ import annotations

from evalcore.core.plain_text import ARROWS as ARROWS
from evalcore.core.plain_text import show_difference as show_difference
from evalcore.core.plain_text import show_ends as show_ends
from evalcore.core.plain_text import show_interval as show_interval
from evalcore.core.plain_text import show_number as show_number
from evalcore.core.plain_text import show_p as show_p
from evalcore.core.plain_text import show_share as show_share
from evalcore.core.records.task import MetricKey

TASKS, METRIC, FILTER, VALUE, N = "Tasks", "Metric", "Filter", "Value", "n"
P, ADJUSTED_P, DETECTABLE, VERDICT = "p", "adjusted p", "detectable", "verdict"
"""What columns are called, in the tables of every command."""

DEEPEST = 10


def head_interval(confidence: float) -> str:
    """What the column of intervals is called.

    >>> head_interval(0.95)
    '95 % interval'
    """
    return f"{show_share(confidence)} interval"


def indent_name(depth: int, name: str) -> str:
    """A name as far in as it is deep: that of a task begins under that of its group.

    >>> print("\\n".join(map(indent_name, (0, 1, 2), ("group", "part", "task"))))
    group
     - part
       - task
    """
    return f"{' ' * (2 * min(depth, DEEPEST) - 1)}- {name}" if depth else name


def name_metric(key: MetricKey) -> str:
    """A metric, with its filter where it has one.

    >>> name_metric(MetricKey("acc")), name_metric(MetricKey("em", "raw"))
    ('acc', 'em,raw')
    """
    return key.metric if key.filter == "none" else str(key)


def name_number(name: str, key: MetricKey) -> str:
    """A number in one cell, as ``check --min`` takes it.

    >>> name_number("t", MetricKey("acc")), name_number("t", MetricKey("em", "raw"))
    ('t/acc', 't/em,raw')
    """
    return f"{name}/{name_metric(key)}"
