"""Group trees: frozen values, one recursion over them, and algebras passed to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr
from toolz import concat, unique

from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.request import Options, freeze_options

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
        filters = getattr(self, "filters")  # noqa: B009  # it may not be of its declared type
        if isinstance(filters, str):
            force_setattr(self, "filters", (filters,))
        if self.missing not in ("flag", "fail"):
            where = f" - at group metric {self.metric}"
            raise unknown("rule for missing tasks", str(self.missing), ("flag", "fail"), where)


class Leaf(Struct, Generic[T_co], frozen=True):
    """A task in a tree, with a value."""

    name: str
    value: T_co


class Group(Struct, Generic[T_co], frozen=True):
    """A named collection of tasks and groups."""

    name: str
    children: tuple[Leaf[T_co] | Group[T_co], ...] = ()
    metrics: tuple[GroupMetric, ...] = ()
    alias: str | None = None
    metadata: Options = field(default_factory=freeze_options)

    def __post_init__(self) -> None:
        for child in self.children:
            if not isinstance(child, Leaf | Group):
                raise EvalError(f"expected Leaf or Group as children, got {child!r} - at group {self.name}")

    def __repr__(self) -> str:
        names = ", ".join(child.name for child in self.children)
        return f"Group({self.name!r}, {len(self.children)} children: [{names}], version={version_of(self)})"


Tree = Leaf[T] | Group[T]


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
        return tuple(unique(leaves(tree), key=_name))
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
    return tuple(unique(groups[1:], key=_name))


def parents_of(tree: Tree[T], name: str) -> tuple[str, ...]:
    """List the groups that contain this task or group directly.

    >>> parents_of(Group("g", (Leaf("a", 1), Group("h", (Leaf("a", 1),)))), "a")
    ('g', 'h')
    """
    groups = (tree, *all_groups(tree)) if isinstance(tree, Group) else ()
    return tuple(group.name for group in groups if name in child_names(group))


def find(tree: Tree[T], name: str) -> Tree[T] | None:
    """Find the first node of this name.

    >>> find(Group("g", (Leaf("a", 1),)), "a")
    Leaf(name='a', value=1)
    """
    return fold_group(
        tree,
        lambda leaf: leaf if leaf.name == name else None,
        lambda group, parts: group if group.name == name else next((part for part in parts if part), None),
    )


def map_leaves(function: Callable[[Leaf[T]], U], tree: Tree[T]) -> Tree[U]:
    """Map the leaves of a tree to other values.

    >>> map_leaves(lambda leaf: leaf.value + 1, Leaf("a", 1))
    Leaf(name='a', value=2)
    """

    def leaf(node: Leaf[T]) -> Tree[U]:
        return Leaf(node.name, function(node))

    def group(node: Group[T], parts: tuple[Tree[U], ...]) -> Tree[U]:
        return Group(node.name, parts, node.metrics, node.alias, node.metadata)

    return fold_group(tree, leaf, group)


def qualified_names(tree: Tree[T], separator: str = "::") -> tuple[str, ...]:
    """Name every node by its path.

    >>> qualified_names(Group("mmlu", (Group("humanities", (Leaf("law", 1),)),)))
    ('mmlu', 'mmlu::humanities', 'mmlu::humanities::law')
    """
    return fold_group(
        tree,
        lambda leaf: (leaf.name,),
        lambda group, parts: (group.name, *(f"{group.name}{separator}{path}" for path in concat(parts))),
    )


class Statistics(Struct, frozen=True):
    """The size of a tree."""

    num_tasks: int
    num_subgroups: int
    total_samples: int


def statistics(tree: Tree[T], samples: Callable[[Leaf[T]], int]) -> Statistics:
    """Count the tasks, subgroups and documents of a tree, each task once.

    >>> statistics(Group("g", (Leaf("a", 10), Leaf("b", 20))), lambda leaf: leaf.value)
    Statistics(num_tasks=2, num_subgroups=0, total_samples=30)
    """
    tasks = all_tasks(tree)
    return Statistics(len(tasks), len(all_groups(tree)), sum(map(samples, tasks)))


def show(tree: Tree[T]) -> str:
    """Draw the tree as indented lines.

    >>> print(show(Group("g", (Leaf("a", 1),), alias="G")))
    G
      a
    """
    lines: tuple[str, ...] = fold_group(
        tree,
        lambda leaf: (leaf.name,),
        lambda group, parts: (alias_of(group), *(f"  {line}" for line in concat(parts))),
    )
    return "\n".join(lines)


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


def _name(node: Tree[T]) -> str:
    return node.name
