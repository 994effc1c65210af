"""Groups from plain data and back, in lm-eval's schema (lm_eval/config/group.py)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Literal

from pyrsistent import PMap

from evalcore.core.groups.edit import names_of
from evalcore.core.groups.index import items
from evalcore.core.groups.rules import GROUP_TABLES, GroupTables
from evalcore.core.groups.tree import Group, GroupMetric, child_names
from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.request import Options, freeze_options

GROUP_KEYS = ("group", "group_alias", "task", "aggregate_metric_list", "metadata")
METRIC_KEYS = ("metric", "filter_list", "aggregation", "weight_by_size", "average", "weights", "missing")


def group_metric_from_config(config: Mapping[str, object], known: GroupTables = GROUP_TABLES) -> GroupMetric:
    """Read one entry of an ``aggregate_metric_list``; a bare filter name is a list of one.

    >>> group_metric_from_config({"metric": "acc", "filter_list": "none", "weight_by_size": False}).filters
    ('none',)
    >>> group_metric_from_config({"metric": "acc", "aggregation": "men"})
    Traceback (most recent call last):
    evalcore.EvalError: unknown group aggregation 'men'; did you mean 'mean'? Known: macro, ...
    """
    name = config.get("metric")
    if not isinstance(name, str):
        raise EvalError(f"expected metric: a name, got {name!r} - at aggregate_metric_list")
    where = f" - at aggregate_metric_list {name}"
    _refuse_unknown("group metric key", config, METRIC_KEYS, where)
    return GroupMetric(
        metric=name,
        filters=_read_filters(config.get("filter_list"), where),
        aggregation=_read_aggregation(config.get("aggregation", "mean"), known, where),
        weight_by_size=_read_flag(config.get("weight_by_size", True), where),
        average=_read_average(config.get("average", "leaves"), known, where),
        weights=_read_weights(config.get("weights"), where),
        missing=_read_missing(config.get("missing", "flag"), where),
    )


def group_from_config(config: object, known: GroupTables = GROUP_TABLES) -> Group[Options]:
    """Read a group without its children, as lm-eval's ``Group.from_config``; ``add_child`` fills it.

    Its config is a mapping, or an object that has the same by ``to_dict``, such as lm-eval's ``GroupConfig``.

    >>> shell = group_from_config({"group": "g", "task": ["a"], "aggregate_metric_list": {"metric": "acc"}})
    >>> shell, shell.listed, shell.metrics[0].metric
    (Group('g', 0 children: [], version=N/A), ('a',), 'acc')
    """
    given = _read_fields(config)
    if given is None:
        raise EvalError(f"expected a group's config, got {config!r}")
    name, alias, metadata = given.get("group"), given.get("group_alias"), given.get("metadata")
    if not isinstance(name, str):
        raise EvalError(f"expected group: a name, got {name!r}")
    where = f" - at group {name}"
    _refuse_unknown("group key", given, (*GROUP_KEYS, "path"), where)
    if alias is not None and not isinstance(alias, str):
        raise EvalError(f"expected group_alias: a text, got {alias!r}{where}")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise EvalError(f"expected metadata: a mapping, got {metadata!r}{where}")
    strange = next((item for item in items(given) if not isinstance(item, str | Mapping)), None)
    if strange is not None:
        raise EvalError(f"expected task: names, or mappings with task or group, got {strange!r}{where}")
    metrics = tuple(_read_metrics(given.get("aggregate_metric_list"), known, where))
    return Group(name, (), metrics, alias, freeze_options(metadata), tuple(items(given)))


def group_to_dict(group: Group[object]) -> dict[str, object]:
    """Write a group in lm-eval's ``to_dict`` schema: plain data, no empty keys.

    ``task`` has what the group's config lists, then the names of its other children. Keys that lm-eval does not know
    (average, weights, missing) appear only if they differ from the default; a callable aggregation is written by its
    qualified name.

    >>> group_to_dict(Group("g", metrics=(GroupMetric("acc"),), alias="G"))["aggregate_metric_list"]
    [{'metric': 'acc', 'filter_list': None, 'aggregation': 'mean', 'weight_by_size': True}]
    """
    listed = {name for item in group.listed for name in names_of(group, item)}
    known: dict[str, object] = {
        "task": [*map(_make_plain, group.listed), *(name for name in child_names(group) if name not in listed)],
        "group_alias": group.alias,
        "aggregate_metric_list": [_metric_to_dict(metric) for metric in group.metrics],
        "metadata": _make_plain(group.metadata),
    }
    return {"group": group.name} | {key: value for key, value in known.items() if value}


def _metric_to_dict(metric: GroupMetric) -> dict[str, object]:
    plain: dict[str, object] = {
        "metric": metric.metric,
        "filter_list": None if metric.filters is None else list(metric.filters),
        "aggregation": _make_plain(metric.aggregation),
        "weight_by_size": metric.weight_by_size,
    }
    ours, usual = ("average", "weights", "missing"), GroupMetric(metric.metric)
    changed = [key for key in ours if getattr(metric, key) != getattr(usual, key)]
    return plain | {key: _make_plain(getattr(metric, key)) for key in changed}


def _make_plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _make_plain(value[key]) for key in _list_in_order(value)}
    if isinstance(value, list | tuple | set | frozenset):
        return [_make_plain(item) for item in _list_in_order(value)]
    if callable(value):
        kind = value if hasattr(value, "__qualname__") else type(value)
        return f"{kind.__module__}.{kind.__qualname__}"
    return value


def _list_in_order(given: Iterable[object]) -> Iterable[object]:
    """List items in their order, or sorted if that would be another in every process."""
    return sorted(given, key=str) if isinstance(given, PMap | set | frozenset) else given


def _read_fields(given: object) -> Mapping[str, object] | None:
    """Read a mapping, or an object's fields as it writes them, or those of a dataclass; None of anything else."""
    write = getattr(given, "to_dict", None)
    if not isinstance(given, Mapping) and callable(write):
        given = write()
    elif is_dataclass(given):
        given = {one.name: getattr(given, one.name) for one in fields(given)}
    return given if isinstance(given, Mapping) else None


def _read_metrics(given: object, known: GroupTables, where: str) -> Iterable[GroupMetric]:
    several = given if isinstance(given, list | tuple) else () if given is None else (given,)
    for entry in several:
        if isinstance(entry, GroupMetric):
            yield entry
        elif (told := _read_fields(entry)) is not None:
            yield group_metric_from_config(told, known)
        else:
            raise EvalError(f"expected {{metric: acc, ...}}, got {entry!r} - at aggregate_metric_list{where}")


def _refuse_unknown(kind: str, config: Mapping[str, object], known: Collection[str], where: str) -> None:
    for key in config:
        if key not in known:
            raise unknown(kind, str(key), known, where)


def _read_filters(given: object, where: str) -> tuple[str, ...] | None:
    if given is None:
        return None
    several = [given] if isinstance(given, str) else given
    if isinstance(several, list | tuple) and all(isinstance(one, str) for one in several):
        return tuple(several)
    raise EvalError(f"expected filter_list: names of filters, got {given!r}{where}")


def _read_aggregation(given: object, known: GroupTables, where: str) -> str | Callable[..., object]:
    if callable(given):
        return given
    if not isinstance(given, str) or given not in known.rules:
        where = f", or a callable of (values, sizes){where}"
        raise unknown("group aggregation", str(given), known.rules, where)
    return str(given)


def _read_flag(given: object, where: str) -> bool:
    if isinstance(given, bool):
        return given
    raise EvalError(f"expected weight_by_size: true or false, got {given!r}{where}")


def _read_average(given: object, known: GroupTables, where: str) -> str:
    if isinstance(given, str) and given in known.averages:
        return given
    raise unknown("average", str(given), known.averages, where)


def _read_missing(given: object, where: str) -> Literal["flag", "fail"]:
    if given == "flag" or given == "fail":
        return "flag" if given == "flag" else "fail"
    raise unknown("way to treat missing", str(given), ("flag", "fail"), where)


def _read_weights(given: object, where: str) -> Options:
    if given is None:
        return freeze_options()
    if isinstance(given, Mapping) and all(_is_weight(weight) for weight in given.values()):
        return freeze_options({str(name): weight for name, weight in given.items()})
    raise EvalError(f"expected weights: a number of at least 0 for each child's name, got {given!r}{where}")


def _is_weight(weight: object) -> bool:
    return isinstance(weight, int | float) and not isinstance(weight, bool) and 0 <= weight < float("inf")
