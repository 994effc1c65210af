"""One group as a value: children added, removed, looked up."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from evalcore.core.groups.tree import Group, Tree, child_names

T = TypeVar("T")


def add_child(group: Group[T], child: Tree[T]) -> Group[T]:
    """Add a child, replacing one of the same name.

    >>> from evalcore.core.groups.tree import Leaf
    >>> child_names(add_child(Group("g", (Leaf("a", 1),)), Leaf("b", 2)))
    ('a', 'b')
    """
    if child.name in child_names(group):
        return replace(group, children=tuple(child if old.name == child.name else old for old in group.children))
    return replace(group, children=(*group.children, child))


def remove_child(group: Group[T], name: str) -> Group[T]:
    """Remove the child of this name.

    >>> from evalcore.core.groups.tree import Leaf
    >>> child_names(remove_child(Group("g", (Leaf("a", 1), Leaf("b", 2))), "a"))
    ('b',)
    """
    return replace(group, children=tuple(child for child in group.children if child.name != name))


def get_child(group: Group[T], name: str) -> Tree[T] | None:
    """Return the direct child of this name.

    >>> from evalcore.core.groups.tree import Leaf
    >>> get_child(Group("g", (Leaf("a", 1),)), "a")
    Leaf(name='a', value=1)
    """
    return next((child for child in group.children if child.name == name), None)


def missing_children(group: Group[T], listed: tuple[str, ...]) -> tuple[str, ...]:
    """List the named children that are missing.

    >>> from evalcore.core.groups.tree import Leaf
    >>> missing_children(Group("g", (Leaf("a", 1),)), ("a", "b"))
    ('b',)
    """
    present = set(child_names(group))
    return tuple(name for name in listed if name not in present)


def has_aggregation(group: Group[T]) -> bool:
    """Whether the group has numbers of its own."""
    return bool(group.metrics)
