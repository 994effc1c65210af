"""One group as a value: children added, removed, looked up, compared with those its config lists, counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar, overload

from msgspec import Struct

from evalcore.core.groups.index import reference
from evalcore.core.groups.tree import SEPARATOR, Group, Leaf, Tree, all_groups, all_tasks, child_names, replace_children
from evalcore.core.records.errors import unknown

T = TypeVar("T")
D = TypeVar("D")
_REFUSE = object()


def add_child(group: Group[T], child: Tree[T]) -> Group[T]:
    """Add a child, replacing one of the same name.

    >>> add_child(Group("g", (Leaf("a", 1),)), Leaf("b", 2))
    Group('g', 2 children: [a, b], version=N/A)
    """
    if child.name in group:
        return replace_children(group, (child if old.name == child.name else old for old in group))
    return replace_children(group, (*group, child))


def remove_child(group: Group[T], name: str) -> Group[T]:
    """Remove the child of this name. If the group's config lists it, it is then missing.

    >>> remove_child(Group("g", (Leaf("a", 1), Leaf("b", 2))), "a")
    Group('g', 1 children: [b], version=N/A)
    >>> remove_child(Group("g", (Leaf("anatomy", 1),)), "anatmy")
    Traceback (most recent call last):
    evalcore.EvalError: unknown child 'anatmy'; did you mean 'anatomy'? Known: anatomy - at group g
    """
    return pop_child(group, name)[1]


@overload
def get_child(group: Group[T], name: str) -> Tree[T]: ...
@overload
def get_child(group: Group[T], name: str, default: D) -> Tree[T] | D: ...
def get_child(group: Group[T], name: str, default: object = _REFUSE) -> object:
    """Return the direct child of this name; without a default, an unknown name is an error.

    >>> get_child(Group("g", (Leaf("a", 1),)), "a")
    Leaf(name='a', value=1)
    """
    found = next((child for child in group if child.name == name), default)
    if found is _REFUSE:
        raise unknown("child", name, child_names(group), f" - at group {group.name}")
    return found


@overload
def pop_child(group: Group[T], name: str) -> tuple[Tree[T], Group[T]]: ...
@overload
def pop_child(group: Group[T], name: str, default: D) -> tuple[Tree[T] | D, Group[T]]: ...
def pop_child(group: Group[T], name: str, default: object = _REFUSE) -> tuple[object, Group[T]]:
    """Return the child of this name, and the group without it; without a default, an unknown name is an error.

    >>> pop_child(Group("g", (Leaf("a", 1), Leaf("b", 2))), "a")
    (Leaf(name='a', value=1), Group('g', 1 children: [b], version=N/A))
    """
    rest = (child for child in group if child.name != name)
    return get_child(group, name, default), replace_children(group, rest)


def missing_children(group: Group[T], listed: Iterable[object] | None = None) -> tuple[str, ...]:
    """List the children that are missing of those the group's config lists, or of others.

    >>> missing_children(Group("g", (Leaf("a", 1),), listed=("a", "b")))
    ('b',)
    """
    present = set(child_names(group))
    items = group.listed if listed is None else listed
    named = (names for item in items if (names := names_of(group, item)))
    return tuple(names[0] for names in named if present.isdisjoint(names))


def names_of(group: Group[T], item: object) -> tuple[str, ...]:
    """The names that a listed child may have in a group: its own or, if the group changes it, below the group's.

    >>> names_of(Group("g"), {"task": "a", "num_fewshot": 5})
    ('a', 'g::a')
    """
    name, _ = reference(item)
    return () if name is None else (name, f"{group.name}{SEPARATOR}{name}")


def has_aggregation(group: Group[T]) -> bool:
    """Whether the group has numbers of its own.

    >>> from evalcore.core.groups.tree import GroupMetric
    >>> has_aggregation(Group("g")), has_aggregation(Group("g", metrics=(GroupMetric("acc"),)))
    (False, True)
    """
    return bool(group.metrics)


class GroupStatistics(Struct, frozen=True):
    """The size of a tree."""

    num_tasks: int
    num_subgroups: int
    total_samples: int


def statistics_of(tree: Tree[T], samples: Callable[[Leaf[T]], int | None] | None = None) -> GroupStatistics:
    """Count the tasks, subgroups and documents of a tree, each task once; ``samples`` counts the documents of a task.

    Without it they are those of task reports; a task whose number of documents is not known adds none.

    >>> statistics_of(Group("g", (Leaf("a", 10), Leaf("b", 20))), lambda leaf: leaf.value)
    GroupStatistics(num_tasks=2, num_subgroups=0, total_samples=30)
    """
    tasks = all_tasks(tree)
    counts = (getattr(leaf.value, "sample_len", None) if samples is None else samples(leaf) for leaf in tasks)
    return GroupStatistics(len(tasks), len(all_groups(tree)), sum(count or 0 for count in counts))


def list_groups(trees: Iterable[Tree[T]]) -> list[Group[T]]:
    """List every group of some trees, parents first.

    >>> [group.name for group in list_groups([Group("g", (Group("h"),)), Leaf("a", None), Group("i")])]
    ['g', 'h', 'i']
    """
    return [group for tree in trees if isinstance(tree, Group) for group in (tree, *all_groups(tree))]
