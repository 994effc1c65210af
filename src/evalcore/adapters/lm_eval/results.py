"""A report in lm-eval's own result object, its groups as trees, and its sample log."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from evalcore.adapters.lm_eval.documents import Filled
from evalcore.adapters.lm_eval.host import LmChild, LmGroup, LmTask, import_lm_eval
from evalcore.core.groups.tree import Group, GroupMetric, Leaf
from evalcore.core.lm_eval.result_file import extras, higher_is_better, lm_eval_results, num_fewshot
from evalcore.core.lm_eval.sample_log import sample_rows
from evalcore.core.records.report import Report
from evalcore.core.records.request import Sample, freeze_options
from evalcore.core.records.score import Scored
from evalcore.core.tables import Tables

Plain = dict[str, object]
Rows = dict[str, list[Plain]]


def read_trees(groups: Mapping[str, LmGroup]) -> tuple[Group[object], ...]:
    """Read the groups that are in no other group, with all below them."""
    below = {name for group in groups.values() for name, child in _list_children(group) if _is_group(child)}
    return tuple(_read_tree(group) for name, group in groups.items() if name not in below)


def _list_children(group: LmGroup) -> Sequence[tuple[str, LmChild]]:
    return list(zip(group.child_names, group, strict=True))


def _is_group(child: LmChild) -> bool:
    return hasattr(child, "child_names")


def _read_tree(group: LmGroup) -> Group[object]:
    children = tuple(
        _read_tree(child) if _is_group(child) else Leaf(name, None)  # type: ignore[arg-type]  # just checked
        for name, child in _list_children(group)
    )
    metrics = tuple(
        GroupMetric(
            one.metric,
            None if one.filter_list is None else tuple(one.filter_list),
            one.aggregation,
            bool(one.weight_by_size),
        )
        for one in group.aggregate_metric_list or ()
    )
    return Group(group.name, children, metrics, group.alias, freeze_options(group.metadata))


def write_results(
    report: Report,
    tasks: Mapping[str, LmTask],
    groups: Mapping[str, LmGroup],
    tables: Tables,
    directions: Mapping[str, Mapping[str, bool]],
    samples: Rows | None,
) -> Plain:
    """Write lm-eval's results of these numbers, made by its own ``EvalAcc``, with evalcore's beside them.

    Under lm-eval's policy shots and directions reach groups only as far as lm-eval passes them up: its parents come
    before their children, which have none yet.
    """
    ours = lm_eval_results(report)
    made: Plain = (
        import_lm_eval("evaluator_utils")
        .EvalAcc(
            metrics=ours["results"],
            configs={name: dict(task.dump_config()) for name, task in tasks.items()},
            versions={
                **{name: task.VERSION for name, task in tasks.items()},
                **{group.name: group.version for group in report.groups},
            },
            num_fewshot={task.name: task.num_fewshot for task in report.tasks},
            higher_is_better={name: dict(found) for name, found in directions.items()},
            n_samples=ours["n-samples"],
            groups=dict(groups),
        )
        ._to_eval_results(samples=samples)
    )
    if not tables.as_host:
        names = {group.name for group in report.groups}
        for key, known in (("n-shot", num_fewshot(report)), ("higher_is_better", higher_is_better(report))):
            made[key] = _add_groups(made[key], known, names)
    return {**made, "evalcore": extras(report)}


def _add_groups(theirs: object, ours: Mapping[str, object], names: set[str]) -> Plain:
    kept = {name: value for name, value in theirs.items() if name not in names} if isinstance(theirs, dict) else {}
    return dict(sorted({**kept, **{name: value for name, value in ours.items() if name in names}}.items()))


def log_rows(
    scored: Scored,
    task: LmTask,
    filled: Filled,
    samples: Sequence[Sample],
    numbers: Mapping[int, int],
) -> list[Plain]:
    """Write lm-eval's sample log, a row per filter and document; ``numbers`` are the documents' names in it."""
    shared = {doc_id: _share_fields(task, filled, doc_id, numbers[doc_id]) for doc_id in filled.docs}
    rows = sample_rows(scored, samples, ())  # without replies, which are shared
    return [{**row, **shared[int(str(row["doc_id"]))]} for row in rows]


def _share_fields(task: LmTask, filled: Filled, doc_id: int, number: int) -> Plain:
    """Collect what lm-eval itself writes of a document, whatever its scores."""
    utils = import_lm_eval("utils")
    asked, doc = filled.asked[doc_id], filled.docs[doc_id]
    target = task.doc_to_target(doc)
    text = json.dumps(doc, indent=2, default=utils.handle_non_serializable, ensure_ascii=False)
    return {
        "doc_id": number,
        "doc": doc,
        "target": target,
        "arguments": [one.args for one in asked],
        "resps": [one.resps for one in asked],
        "doc_hash": utils.hash_string(text),
        "prompt_hash": utils.hash_string(asked[0].arguments[0]),
        "target_hash": utils.hash_string(str(target)),
    }
