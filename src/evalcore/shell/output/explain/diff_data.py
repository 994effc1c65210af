"""Changed verdicts for programs: the JSON of ``diff --json``, its keys those of docs/explain.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from evalcore.core.lm_eval.sample_log import thaw
from evalcore.core.records.request import Failure
from evalcore.shell.explain.changes import KINDS, Change, TaskDiff
from evalcore.shell.explain.diff import Detail, Diffed
from evalcore.shell.output.explain.document_data import describe_filter, describe_outcome
from evalcore.shell.output.explain.stage_page import describe_stages

Plain = dict[str, object]


def describe_diff(diffed: Diffed) -> Plain:
    """Two scorings as plain data."""
    details = {(one.task, one.change): one for one in diffed.details}
    return {
        "a": str(diffed.a.path),
        "b": str(diffed.b.path),
        "changed": diffed.changed,
        "warnings": list(dict.fromkeys((*diffed.a.warnings, *diffed.b.warnings))),
        "tasks_only_a": list(diffed.tasks_a),
        "tasks_only_b": list(diffed.tasks_b),
        "numbers": [
            {
                "name": one.name,
                "kind": "group" if one.group else "task",
                "metric": one.key.metric,
                "filter": one.key.filter,
                "before": one.before,
                "after": one.after,
            }
            for one in diffed.numbers
        ],
        "tasks": [_describe_task(one, {c: details.get((one.task, c)) for c in one.changes}) for one in diffed.tasks],
        "stages": describe_stages(diffed.stages),
    }


def _describe_task(diff: TaskDiff, details: Mapping[Change, Detail | None]) -> Plain:
    counts = Counter(change.kind for change in diff.changes)
    return {
        "task": diff.task,
        "documents": diff.both,
        "only_a": list(diff.only_a),
        "only_b": list(diff.only_b),
        "answers_differ": [a for a, _ in diff.answered],
        "metrics_only_a": list(map(str, diff.keys_a)),
        "metrics_only_b": list(map(str, diff.keys_b)),
        "filters_only_a": list(diff.filters_a),
        "filters_only_b": list(diff.filters_b),
        "counts": {kind: counts[kind] for kind in KINDS},
        "other_text_only": dict(diff.other_texts),
        "options_changed": [
            {"metric": key.metric, "filter": key.filter, "before": thaw(before), "after": thaw(after)}
            for key, before, after in diff.options
        ],
        "changes": [{**_describe_change(change), **_describe_detail(detail)} for change, detail in details.items()],
    }


def _describe_change(change: Change) -> Plain:
    before, after = describe_outcome(change.before), describe_outcome(change.after)
    return {
        "metric": change.key.metric,
        "filter": change.key.filter,
        "doc": change.a,
        "doc_b": change.b,
        "kind": change.kind,
        "before": before["score"],
        "after": after["score"],
        "reason_before": before["reason"],
        "reason_after": after["reason"],
    }


def _describe_detail(detail: Detail | None) -> Plain:
    if detail is None:
        return {}
    replies = [
        [one.reason if isinstance(one, Failure) else thaw(one) for one in some] for some in detail.logged.replies
    ]
    return {
        "answer": replies,
        "gold": thaw(detail.logged.gold),
        "extracted_before": None if detail.before is None else describe_filter(detail.before),
        "extracted_after": None if detail.after is None else describe_filter(detail.after),
    }
