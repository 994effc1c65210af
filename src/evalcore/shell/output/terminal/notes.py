"""Warnings, each once, with the tasks they are about."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from evalcore.core.records.estimate import Estimate
from evalcore.core.records.report import GroupReport, Report, TaskReport

AT = " - at "
MOST = 3


def collect_notes(report: Report, more: Iterable[str] = ()) -> tuple[str, ...]:
    """Warnings of a report and of its run; one that many tasks share stands once."""
    rows: list[TaskReport | GroupReport] = [*report.tasks, *report.groups]
    recorded = _is_only_recorded(report)
    own = [(row.name, warning) for row in (report.tasks if recorded else rows) for warning in _join_numbers(row)]
    why = [
        (row.name, f"{key.metric}: {_tell_lack(estimate)} ({estimate.reason})")
        for row in rows
        for key, estimate in row.estimates
        if estimate.reason and estimate.scale.measures
    ]
    beside = [
        (row.name, f"{key.metric}: {of} would get {value:.3g}")
        for row in rows
        for key, estimate in row.estimates
        for of, value in ((estimate.reference,) if estimate.reference is not None else ())
    ]
    names = {row.name for row in rows}
    only = [("", "nothing was measured, as asked: n counts the documents whose answers were recorded")] * recorded
    return group_texts([*only, *own, *why, *beside, *_find_subjects(more, names)])


def _join_numbers(row: TaskReport | GroupReport) -> Iterator[str]:
    """Warnings of a row, one that several of its numbers share only once, after the names of these."""
    heads = {f"{row.name}: {key}: ": str(key) for key, _ in row.estimates}
    about: dict[str, list[str]] = {}
    for text in row.warnings:
        head = next((head for head in heads if text.startswith(head)), "")
        about.setdefault(text.removeprefix(head), []).extend([heads[head]] if head else [])
    for text, keys in about.items():
        yield f"{_list_names(keys, MOST)}: {text}" if keys else text


def group_warnings(texts: Iterable[str], names: Collection[str]) -> tuple[str, ...]:
    """Warnings, each of which may begin or end with the name of its task; one that many tasks share stands once.

    >>> group_warnings(["a: odd", "b: odd", "all the same - at a", "all the same - at b", "slow"], ["a", "b"])
    ('odd (a, b)', 'all the same (a, b)', 'slow')
    """
    return group_texts(_find_subjects(texts, names))


def _tell_lack(estimate: Estimate) -> str:
    if estimate.value is None:
        return "no value"
    return "no interval" if estimate.ci is None else "another interval than asked for"


def _is_only_recorded(report: Report) -> bool:
    """Whether no task measures anything (``predict_only``), so that no group can either."""
    estimates = [estimate for task in report.tasks for _, estimate in task.estimates]
    return bool(report.tasks) and not any(estimate.scale.measures for estimate in estimates)


def _find_subjects(texts: Iterable[str], names: Collection[str]) -> Iterator[tuple[str, str]]:
    for text in texts:
        ends = (text.partition(": ")[0], text.rpartition(AT)[2])
        yield next((end for end in ends if end in names), ""), text


def group_texts(texts: Iterable[tuple[str, str]], *, most: int = MOST) -> tuple[str, ...]:
    """Each text once, in the order of its first occurrence, with the names it is about.

    >>> group_texts([("a", "a: odd"), ("b", "b: odd"), ("", "slow"), ("a", "odd")])
    ('odd (a, b)', 'slow')
    """
    about: dict[str, dict[str, None]] = {}
    for name, text in texts:
        bare = text.removeprefix(f"{name}: ").removeprefix(f"group {name}: ").removesuffix(f"{AT}{name}")
        about.setdefault(bare, {})[name] = None
    return tuple(text + _name_subjects([name for name in names if name], most) for text, names in about.items())


def _name_subjects(names: Sequence[str], most: int) -> str:
    return f" ({_list_names(names, most)})" if names else ""


def _list_names(names: Sequence[str], most: int) -> str:
    left = len(names) - most
    return f"{', '.join(names[:most])}{f' and {left} more' if left > 0 else ''}"
