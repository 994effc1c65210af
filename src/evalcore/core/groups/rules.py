"""GROUP_RULES: how a group makes one number of its tasks' numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from pyrsistent import PMap, pmap

from evalcore.core.groups.averages import AVERAGES, Average, Term
from evalcore.core.groups.combination import by_callable, macro, mean_of_means
from evalcore.core.groups.pool import pool
from evalcore.core.groups.tree import GroupMetric
from evalcore.core.records.estimate import Estimate


class GroupRule(Struct, frozen=True):
    """A rule, and what the pipe needs to know about it.

    ``mean`` says that the number is a weighted mean of the tasks' numbers, which then may count as a sample of tasks;
    ``alike`` that they must all be made by one aggregation, ``averages`` that this must be one that may be averaged;
    ``pools`` that weights do not matter, as documents are all of one task.
    """

    fold: Callable[[GroupMetric, Sequence[Term]], Estimate]
    mean: bool = False
    alike: bool = False
    averages: bool = False
    pools: bool = False


GROUP_RULES: PMap[str, GroupRule] = pmap(
    {
        "mean": GroupRule(mean_of_means, mean=True, alike=True, averages=True),
        "macro": GroupRule(macro, mean=True),
        "pool": GroupRule(pool, mean=True, alike=True, pools=True),
    }
)


class GroupTables(NamedTuple):
    """The names that the config of a group may use, and what they stand for."""

    rules: Mapping[str, GroupRule] = GROUP_RULES
    averages: Mapping[str, Average] = AVERAGES


GROUP_TABLES = GroupTables()
BY_CALLABLE = GroupRule(by_callable)
"""The rule of a group metric whose aggregation is no name but a callable of values and sizes."""
