"""Group trees: frozen values, one recursion over them, and algebras passed to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from operator import attrgetter
from typing import Generic, Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr
from toolz import concat, unique

from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.frozen_dict import Displayed, freeze_value
from evalcore.core.records.request import Options, freeze_options

SEPARATOR = "::"
"""Stands between the names of groups in a path, and between a group and what only it contains."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
B = TypeVar("B")


class GroupMetric(Struct, frozen=True):
    """How a group combines its tasks' metric into one number.

    ``filters=None`` discovers the filters among the group's own tasks. ``aggregation``: ``mean`` (of means; on the
    log scale for perplexities), ``macro`` (average task scores, whatever they are), ``pool`` (all documents as one
    task), or a callable of (values, sizes). ``average`` over ``leaves`` or ``children``; ``weights`` by child name
    override sizes; ``missing``: ``flag`` a partial value or ``fail``.
    """

    metric: str
    filters: tuple[str, ...] | None = None
    aggregation: str | Callable[..., object] = "mean"
    weight_by_size: bool = True
    average: str = "leaves"
    weights: Options = field(default_factory=freeze_options)
    missing: Literal["flag", "fail"] = "flag"

    def __post_init__(self) -> None:
        filters: object = self.filters
        if isinstance(filters, str | list):
            force_setattr(self, "filters", (filters,) if isinstance(filters, str) else tuple(filters))
        force_setattr(self, "weights", freeze_options(self.weights))
        if self.missing not in ("flag", "fail"):
            where = f" - at group metric {self.metric}"
            raise unknown("rule for missing tasks", str(self.missing), ("flag", "fail"), where)


class Leaf(Struct, Displayed, Generic[T_co], frozen=True):
    """A task in a tree, with a value."""

    name: str
    value: T_co

    def __post_init__(self) -> None:
        if isinstance(self.value, dict | list | set):
            force_setattr(self, "value", freeze_value(self.value))


class Group(Struct, Displayed, Generic[T_co], frozen=True):
    """A named collection of tasks and groups: it has a length, holds names, and iterates over its children.

    ``listed`` is what its config lists under ``task``, whether it is among the children or not.

    >>> group = Group("g", [Leaf("a", 1), Group("h")], metadata={"version": 2})
    >>> group, len(group), "h" in group, [child.name for child in group]
    (Group('g', 2 children: [a, h], version=2), 2, True, ['a', 'h'])
    """

    name: str
    children: tuple[Leaf[T_co] | Group[T_co], ...] = ()
    metrics: tuple[GroupMetric, ...] = ()
    alias: str | None = None
    metadata: Options = field(default_factory=freeze_options)
    listed: tuple[object, ...] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "children", _check_children(self.name, self.children))
        force_setattr(self, "metrics", tuple(self.metrics))
        force_setattr(self, "metadata", freeze_options(self.metadata))
        force_setattr(self, "listed", tuple(map(freeze_value, self.listed)))

    def __len__(self) -> int:
        return len(self.children)

    def __contains__(self, name: object) -> bool:
        return any(child.name == name for child in self.children)

    def __iter__(self) -> Iterator[Leaf[T_co] | Group[T_co]]:
        return iter(self.children)

    def __repr__(self) -> str:
        names = ", ".join(child_names(self))
        return f"Group({self.name!r}, {len(self)} children: [{names}], version={version_of(self)})"


Tree = Leaf[T] | Group[T]


def replace_children(group: Group[T], children: Iterable[Tree[T]]) -> Group[T]:
    """Replace a group's children; all else is frozen already and is not gone through again.

    >>> replace_children(Group("g", alias="G"), [Leaf("a", 1)])
    Group('g', 1 children: [a], version=N/A)
    """
    made = copy(group)
    force_setattr(made, "children", _check_children(group.name, children))
    return made


def _check_children(name: str, given: Iterable[Tree[T]]) -> tuple[Tree[T], ...]:
    children = tuple(given)
    for child in children:
        if not isinstance(child, Leaf | Group):
            raise EvalError(f"expected Leaf or Group as children, got {child!r} - at group {name}")
    return children


def fold_group(tree: Tree[T], leaf: Callable[[Leaf[T]], B], group: Callable[[Group[T], tuple[B, ...]], B]) -> B:
    """Fold a tree, the one recursion: ``leaf`` maps leaves, ``group`` combines the results of children.

    >>> tree = Group("g", (Leaf("a", 2), Group("h", (Leaf("b", 3),))))
    >>> fold_group(tree, lambda leaf: leaf.value, lambda group, parts: sum(parts))
    5
    """
    # An explicit stack: a hostile tree may be deeper than Python's own.
    done: list[B] = []
    todo: list[tuple[Tree[T], bool]] = [(tree, False)]
    while todo:
        node, ready = todo.pop()
        if isinstance(node, Leaf):
            done.append(leaf(node))
        elif ready:
            at = len(done) - len(node.children)
            parts = tuple(done[at:])
            del done[at:]
            done.append(group(node, parts))
        else:
            todo.append((node, True))
            todo.extend((child, False) for child in reversed(node.children))
    return done[0]


# --- algebras: what is in a tree ---------------------------------------------------------------------------


def leaves(tree: Tree[T]) -> tuple[Leaf[T], ...]:
    """List every leaf on every path, in order; a leaf reached twice appears twice.

    >>> [leaf.name for leaf in leaves(Group("g", (Leaf("a", 1), Group("h", (Leaf("a", 1),)))))]
    ['a', 'a']
    """
    return fold_group(tree, lambda leaf: (leaf,), lambda group, parts: tuple(concat(parts)))


def all_tasks(tree: Tree[T], *, recursive: bool = True) -> tuple[Leaf[T], ...]:
    """List each task once; with ``recursive=False`` only direct children.

    >>> [leaf.name for leaf in all_tasks(Group("g", (Leaf("a", 1), Group("h", (Leaf("a", 1), Leaf("b", 2))))))]
    ['a', 'b']
    """
    if recursive or isinstance(tree, Leaf):
        return tuple(unique(leaves(tree), key=attrgetter("name")))
    return tuple(child for child in tree.children if isinstance(child, Leaf))


def all_groups(tree: Tree[T], *, recursive: bool = True) -> tuple[Group[T], ...]:
    """List each group below this one once, parents before children.

    >>> [g.name for g in all_groups(Group("g", (Group("h", (Group("i"),)),)))]
    ['h', 'i']
    """
    if isinstance(tree, Leaf):
        return ()
    if not recursive:
        return tuple(child for child in tree.children if isinstance(child, Group))
    groups: tuple[Group[T], ...] = fold_group(tree, lambda leaf: (), lambda group, parts: (group, *concat(parts)))
    return tuple(unique(groups[1:], key=attrgetter("name")))


def parents_of(tree: Tree[T], name: str) -> tuple[str, ...]:
    """List the groups that contain this task or group directly.

    >>> parents_of(Group("g", (Leaf("a", 1), Group("h", (Leaf("a", 1),)))), "a")
    ('g', 'h')
    """
    found: tuple[str, ...] = fold_group(
        tree, lambda leaf: (), lambda group, parts: ((group.name,) if name in group else ()) + tuple(concat(parts))
    )
    return tuple(unique(found))


def map_leaves(function: Callable[[Leaf[T]], U], tree: Tree[T]) -> Tree[U]:
    """Map the leaves of a tree to other values.

    >>> map_leaves(lambda leaf: leaf.value + 1, Leaf("a", 1))
    Leaf(name='a', value=2)
    """

    def leaf(node: Leaf[T]) -> Tree[U]:
        return Leaf(node.name, function(node))

    def group(node: Group[T], parts: tuple[Tree[U], ...]) -> Tree[U]:
        return Group(node.name, parts, node.metrics, node.alias, node.metadata, node.listed)

    return fold_group(tree, leaf, group)


def qualified_names(tree: Tree[T], separator: str = SEPARATOR) -> tuple[str, ...]:
    """Name every node by its path.

    >>> qualified_names(Group("mmlu", (Group("humanities", (Leaf("law", 1),)),)))
    ('mmlu', 'mmlu::humanities', 'mmlu::humanities::law')
    """
    return fold_group(
        tree,
        lambda leaf: (leaf.name,),
        lambda group, parts: (group.name, *(f"{group.name}{separator}{path}" for path in concat(parts))),
    )


def child_names(group: Group[T]) -> tuple[str, ...]:
    """List the names of the direct children.

    >>> child_names(Group("g", (Leaf("a", 1), Group("h"))))
    ('a', 'h')
    """
    return tuple(child.name for child in group.children)


def alias_of(tree: Tree[T]) -> str:
    """The name of a node in tables: a group's alias, else its name."""
    return tree.alias or tree.name if isinstance(tree, Group) else tree.name


def version_of(group: Group[T]) -> str:
    """The version in the group's metadata.

    >>> version_of(Group("g", metadata=freeze_options(version=1.0)))
    '1.0'
    """
    return str(group.metadata.get("version", "N/A"))
