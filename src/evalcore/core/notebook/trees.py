"""Group trees: groups and their tasks, indented, with how each group averages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from evalcore.core.groups.edit import statistics_of
from evalcore.core.groups.tree import Group, GroupMetric, Leaf, alias_of, fold_group
from evalcore.core.notebook.markup import Html, HtmlTable, escape_text, write_panel, write_table

T = TypeVar("T")

TreeLine = tuple[int, str, bool, str]
"""How deep, the name, whether it is a group, and how it averages."""


def write_tree(tree: Group[T]) -> Html:
    """A group, everything below it, and how many tasks and groups that is."""
    size = statistics_of(tree, lambda leaf: None)
    below = f"{size.num_tasks:,} task{'s' * (size.num_tasks != 1)}, {size.num_subgroups:,} group"
    lines = fold_group(tree, _list_leaf, _list_group)
    table = HtmlTable(
        heads=("Tasks", "Numbers"),
        numbers=(False, False),
        lines=tuple((escape_text(name), escape_text(how)) for _, name, _, how in lines),
        bold=tuple(group for _, _, group, _ in lines),
        depths=tuple(depth for depth, _, _, _ in lines),
        what="tasks and groups",
    )
    return write_panel(f"{alias_of(tree)}: {below}{'s' * (size.num_subgroups != 1)} below", write_table(table))


def write_leaf(leaf: Leaf[T]) -> Html:
    """A task with its value: as that shows itself, else in a line."""
    write = getattr(leaf.value, "_repr_html_", None)
    inside = Html(write()) if write is not None else escape_text("" if leaf.value is None else leaf.value)
    return write_panel(leaf.name, inside)


def _list_leaf(leaf: Leaf[T]) -> tuple[TreeLine, ...]:
    return ((0, leaf.name, False, ""),)


def _list_group(group: Group[T], parts: Sequence[tuple[TreeLine, ...]]) -> tuple[TreeLine, ...]:
    head = (0, alias_of(group), True, "; ".join(map(tell_average, group.metrics)))
    return (head, *((depth + 1, name, is_group, how) for part in parts for depth, name, is_group, how in part))


def tell_average(metric: GroupMetric) -> str:
    """How a group combines a metric, in a few words.

    >>> tell_average(GroupMetric("acc")), tell_average(GroupMetric("acc", ("strict",), weight_by_size=False))
    ('acc: mean, by size', 'acc,strict: mean')
    """
    rule = metric.aggregation if isinstance(metric.aggregation, str) else "a function of its own"
    filters = "" if metric.filters is None else f",{'|'.join(metric.filters)}"
    weights = ", by given weights" if metric.weights else ", by size" if metric.weight_by_size else ""
    return f"{metric.metric}{filters}: {rule}{weights}"
