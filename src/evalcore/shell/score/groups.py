"""Groups over the tasks of logs: those of a file, of the results beside a log, or one over the values of a field."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path

from msgspec.structs import replace
from toolz import concat

from evalcore.core.groups.build import build_trees
from evalcore.core.groups.tree import Group, GroupMetric, Leaf, Tree, fold_group, map_leaves
from evalcore.core.lm_eval.result_row import leaf_from_flat
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.report import TaskReport
from evalcore.core.records.task import MetricKey
from evalcore.core.tables import Tables
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.logs.log import Logged, LogTask
from evalcore.shell.score.labels import find_recorded_name
from evalcore.shell.score.sample import decode_document

Plain = Mapping[str, object]
MOST = 10
"""How many names of tasks an error shows."""


def find_recorded_count(log: LogTask, key: str) -> int | None:
    """Find how many documents (``original``, ``effective``) the results beside a log count, if they do."""
    found = find_part(log.results, "n-samples", find_recorded_name(log)).get(key)
    return found if isinstance(found, int) else None


# --- by a field --------------------------------------------------------------------------------------------------


def group_by_field(task: str, field: str) -> Callable[[Logged], str]:
    """Group documents by a field: return the function that names their task after the log and the value.

    >>> group_by_field("mmlu", "subject")(Logged(doc_id=0, doc=b'{"subject": "law"}', gold=None))
    'mmlu_law'
    """
    value_of = make_field_reader(field)
    known: dict[str, object] = {}

    def name_of(one: Logged) -> str:
        doc = decode_document(one)
        try:
            found = value_of(doc)
        except EvalError as wrong:
            raise EvalError(f"--group_by {str(wrong).removeprefix('cluster: ')}{place(task, one.doc_id)}") from wrong
        if not isinstance(found, str | int | float):
            told = f"expected a text or a number in the field {field!r} of a document"
            shown = ", ".join(_fields(doc))
            raise EvalError(f"{told}, got {found!r}; fields: {shown}{place(task, one.doc_id)}")
        name = f"{task}_{found}"
        first = known.setdefault(name, found)
        if type(first) is not type(found):
            told = f"expected texts or numbers in the field {field!r}, got {first!r} and {found!r}"
            as_text = f"--group_by '{{{{{field}}}}}' takes both as text"
            raise EvalError(f"{told}, which would be one task; {as_text}{place(task, one.doc_id)}")
        return name

    return name_of


def make_field_reader(field: str) -> Callable[[Plain], object]:
    """Make the function that reads a field, a dotted path or a template from a document.

    >>> doc = {"metadata": {"topic": "law"}}
    >>> [make_field_reader(one)(doc) for one in ("metadata.topic", "{{metadata.topic}}", "topic")]
    ['law', 'law', None]
    """
    if "{" not in field:
        return lambda doc: _at_path(doc, field)
    from evalcore.shell.logs.runs.identity import make_cluster_reader

    template = make_cluster_reader(field)
    return lambda doc: doc[field] if field in doc else template(doc)


def _at_path(doc: object, path: str) -> object:
    """The value under a dotted path; a name with dots may also be a field."""
    if not isinstance(doc, Mapping):
        return None
    if path in doc:
        return doc[path]
    head, dot, rest = path.partition(".")
    return _at_path(doc.get(head), rest) if dot else None


def _fields(doc: Plain) -> list[str]:
    """The fields of a document and, one level below, those in them.

    >>> _fields({"id": 1, "metadata": {"topic": "law"}})
    ['id', 'metadata.topic']
    """
    inner = {key: value for key, value in doc.items() if isinstance(value, Mapping) and value}
    return [name for key in doc for name in ([f"{key}.{one}" for one in inner[key]] if key in inner else [str(key)])]


def group_tasks(name: str, tasks: Iterable[TaskReport], *, by_size: bool, alias: str | None = None) -> Group[object]:
    """Make one group over tasks, with every number that any of them has; ``alias`` is displayed."""
    below = sorted(tasks, key=lambda one: one.name)
    keys = {key: one.scale.average for task in below for key, one in task.estimates}
    metrics = tuple(_group_metric(key, mean, by_size) for key, mean in keys.items())
    return Group(name, tuple(Leaf(one.name, None) for one in below), metrics, alias=alias)


def _group_metric(key: MetricKey, mean: bool, by_size: bool) -> GroupMetric:
    """Numbers other than averages (BLEU, F1) are pooled over all documents, or averaged as they are."""
    aggregation = "mean" if mean else "pool" if by_size else "macro"
    return GroupMetric(key.metric, (key.filter,), aggregation, weight_by_size=by_size)


# --- of a file, of results --------------------------------------------------------------------------------------


def read_groups(path: Path, tasks: Iterable[str], tables: Tables) -> tuple[Tree[object], ...]:
    """Read the trees over these tasks from a file with a group config of lm-eval or a list of them."""
    names = list(tasks)
    from evalcore.shell.config.yaml_file import read_yaml

    try:
        found = read_yaml(path.read_text("utf-8-sig"), str(path)).value
    except (OSError, UnicodeDecodeError) as wrong:
        raise EvalError(f"cannot read the groups {path}: {wrong}") from wrong
    groups = found if isinstance(found, list) else [found]
    if not all(isinstance(one, Mapping) and "group" in one for one in groups):
        raise EvalError(f"{path}: expected a group (group, task, aggregate_metric_list) or a list of them")
    try:
        built = build_trees([*groups, *({"task": name} for name in names)], known=tables.group_tables)
    except EvalError as wrong:
        raise EvalError(f"{path}: {wrong}; the tasks here are {', '.join(map(repr, names[:MOST]))}") from wrong
    return tuple(map_leaves(lambda leaf: None, tree) for tree in built if isinstance(tree, Group))


def build_recorded_trees(results: Plain, tables: Tables) -> tuple[tuple[Tree[object], ...], tuple[str, ...]]:
    """Build the trees of the results beside a log, fitted to their numbers; also return warnings."""
    from evalcore.shell.logs.runs.trees import grow_trees

    rows, counts = find_part(results, "results"), find_part(results, "n-samples")
    sized = {str(name): {**row, **_size(counts.get(name))} for name, row in rows.items() if isinstance(row, Mapping)}
    grown = grow_trees(results, [leaf_from_flat(name, row).value for name, row in sized.items()], tables=tables)
    versions = find_part(results, "versions")
    return tuple(_versioned(tree, versions) for tree in grown.trees), grown.warnings


def _versioned(tree: Tree[object], versions: Plain) -> Tree[object]:
    """A tree whose groups have the versions in the results.

    >>> _versioned(Group("g", (Group("h"), Leaf("a", None))), {"g": "0", "h": "N/A", "a": 1})
    Group('g', 2 children: [h, a], version=0)
    """

    def group(node: Group[object], parts: tuple[Tree[object], ...]) -> Tree[object]:
        told = versions.get(node.name, "N/A")
        metadata = node.metadata if told == "N/A" else node.metadata.set("version", told)
        return replace(node, children=parts, metadata=metadata)

    return fold_group(tree, lambda leaf: leaf, group)


def _size(counts: object) -> dict[str, object]:
    n = counts.get("effective") if isinstance(counts, Mapping) else None
    return {"sample_len": n} if isinstance(n, int) else {}


Whole = tuple[bool, tuple[Tree[object], ...], tuple[str, ...]]
"""Whether all tasks of a tree are at hand, its largest groups of which that is true, and the names of the others."""


def find_whole_groups(tree: Tree[object], tasks: Set[str]) -> tuple[tuple[Tree[object], ...], tuple[str, ...]]:
    """Find the largest groups of a tree that have all their tasks, and the names of the others.

    >>> tree = Group("g", (Group("h", (Leaf("a", None),)), Leaf("b", None)))
    >>> [one.name for one in find_whole_groups(tree, {"a"})[0]], find_whole_groups(tree, {"a"})[1]
    (['h'], ('g',))
    """

    def leaf(node: Leaf[object]) -> Whole:
        return node.name in tasks, (), ()

    def group(node: Group[object], parts: tuple[Whole, ...]) -> Whole:
        whole, found, lost = zip(*parts, strict=True) if parts else ((), (), ())
        return (True, (node,), ()) if all(whole) else (False, tuple(concat(found)), (node.name, *concat(lost)))

    return fold_group(tree, leaf, group)[1:]


def regroup(
    tree: Tree[object], names: Mapping[str, str], suffix: str = "", keys: Sequence[MetricKey] = (), label: str = ""
) -> Tree[object]:
    """Rename the tasks of a tree; with ``keys``, groups average these in place of their own numbers.

    ``suffix`` goes to the names of groups, ``label`` to their aliases.

    >>> tree = Group("g", (Leaf("a", None),), (GroupMetric("acc", weight_by_size=False),))
    >>> made = regroup(tree, {"a": "a (run)"}, " (run)", [MetricKey("f1", "strict")])
    >>> made.name, made.children[0].name, made.metrics[0].metric, made.metrics[0].weight_by_size
    ('g (run)', 'a (run)', 'f1', False)
    """

    def group(node: Group[object], parts: tuple[Tree[object], ...]) -> Tree[object]:
        metrics, first = node.metrics, node.metrics[0] if node.metrics else None
        if keys and first is not None:
            metrics = tuple(replace(first, metric=key.metric, filters=(key.filter,)) for key in keys)
        alias = f"{node.alias or node.name} ({label})" if label else node.alias
        return replace(node, name=node.name + suffix, children=parts, metrics=metrics, alias=alias)

    return fold_group(tree, lambda leaf: Leaf(names.get(leaf.name, leaf.name + suffix), None), group)
