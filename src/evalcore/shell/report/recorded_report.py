"""A results file, evalcore's or lm-eval's, back to the report that it was written from, its numbers as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evalcore.core.groups.report import place_tasks
from evalcore.core.ledger import Ledger, sum_ledgers
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Estimate, Scale
from evalcore.core.records.outcome import Counts
from evalcore.core.records.report import Estimates, GroupReport, Report, TaskReport
from evalcore.core.records.task import MetricKey
from evalcore.core.tables import EVALCORE
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.logs.lm_eval.rows import read_float
from evalcore.shell.logs.runs.totals import list_total_estimates
from evalcore.shell.logs.runs.trees import grow_trees
from evalcore.shell.output.terminal.losses import WORDS, Lost

Plain = Mapping[str, object]


def read_report(results: Plain) -> Report:
    """The report behind results. lm-eval's have no intervals: these are made from its standard errors and counts.

    >>> row = {"alias": "t", "acc,none": 0.5, "acc_stderr,none": 0.05, "sample_len": 101}
    >>> read_report({"results": {"t": row}, "n-shot": {"t": 3}}).tasks[0]["acc,none"]
    Estimate(0.5 ± 0.05, n=101)
    """
    numbers = _list_estimates(results)
    rows, warnings = find_part(results, "results"), _read_texts(find_part(results, "evalcore").get("warnings"))
    below = {name for name, given in find_part(results, "group_subtasks").items() if given}
    below |= {str(one.get("group")) for one in _list_maps(find_part(results, "evalcore").get("groups"))}
    versions = find_part(results, "versions")
    tasks = tuple(
        TaskReport(
            name=name,
            estimates=numbers.get(name, ()),
            n_docs=_count(find_part(results, "evalcore", "documents", name).get("all")) or 0,
            alias=_read_alias(name, rows),
            version=_read_version(versions.get(name)),
            num_fewshot=_count(find_part(results, "n-shot").get(name)),
            warnings=_choose_warnings(name, numbers.get(name, ()), warnings),
        )
        for name in dict.fromkeys((*rows, *numbers))
        if name not in below
    )
    groups = tuple(
        GroupReport(
            name=name,
            alias=_read_alias(name, rows),
            estimates=numbers.get(name, ()),
            version=str(_read_version(versions.get(name)) or "N/A"),
            warnings=_choose_warnings(name, numbers.get(name, ()), warnings),
        )
        for name in dict.fromkeys((*rows, *numbers))
        if name in below
    )
    try:
        trees = place_tasks(grow_trees(results, tasks).trees, tasks)
    except EvalError:  # of a damaged file; its numbers are shown all the same
        trees = ()
    return Report(tasks=tasks, groups=groups, trees=trees)


def _read_alias(name: str, rows: Plain) -> str:
    """lm-eval indents the aliases of groups' tasks."""
    return str(find_part(rows, name).get("alias") or name).lstrip(" -") or name


def _read_version(value: object) -> str | int | float | None:
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def _choose_warnings(name: str, numbers: Estimates, warnings: Iterable[str]) -> tuple[str, ...]:
    """The warnings about the numbers of a task or group, which begin with its name; others are about its answers."""
    heads = (*(f"{name}: {key}: " for key, _ in numbers), f"group {name}: ", f"group {name!r}: ")
    return tuple(one for one in warnings if one.startswith(heads))


# --- numbers ----------------------------------------------------------------------------------------------------------


Numbers = dict[str, Estimates]


def _list_estimates(results: Plain) -> Numbers:
    """Every number as evalcore wrote it; of lm-eval's files, with the interval that its error gives."""
    own = find_part(results, "evalcore", "estimates")
    if not own:
        out: Numbers = {}
        for (name, number), one in list_total_estimates(results).items():
            higher = find_part(results, "higher_is_better", name).get(number.metric)
            pointed = Estimate(
                value=one.value, stderr=one.stderr, ci=one.ci, n=one.n, reason=one.reason, scale=_point(higher)
            )
            out[name] = (*out.get(name, ()), (number, pointed))
        return out
    return {
        name: tuple(
            (key, _read_estimate(find_part(below, text), find_part(results, "higher_is_better", name).get(key.metric)))
            for text in below
            if (key := MetricKey.parse(text)) is not None
        )
        for name in own
        if (below := find_part(own, name))
    }


def _point(higher: object, *, measures: bool = True) -> Scale:
    return Scale(higher_is_better=higher if isinstance(higher, bool) else None, measures=measures)


def _read_estimate(row: Plain, higher: object) -> Estimate:
    ci, reference = row.get("ci"), find_part(row, "reference")
    ends = [read_float(end) for end in ci] if isinstance(ci, list | tuple) and len(ci) == 2 else []
    beside = read_float(reference.get("value"))
    reason = row.get("reason")
    return Estimate(
        value=read_float(row.get("value")),
        stderr=read_float(row.get("stderr")),
        ci=_bound_ends(*ends) if ends else None,
        n=_count(row.get("n")),
        reason=reason if isinstance(reason, str) and reason else None,
        reference=(str(reference.get("of")), beside) if beside is not None else None,
        counts=Counts(
            scored=_count(row.get("n_scored")) or 0,
            unscorable=_count(row.get("n_unscorable")) or 0,
            failed=_count(row.get("n_failed")) or 0,
        ),
        scale=_point(higher, measures=_find_measures(str(row.get("signature") or ""))),
    )


def _bound_ends(low: float | None, high: float | None) -> tuple[float, float]:
    """An end that was not finite is written as null."""
    return float("-inf") if low is None else low, float("inf") if high is None else high


def _find_measures(signature: str) -> bool:
    """Whether the aggregation that a signature names measures anything."""
    name = next((part[4:] for part in signature.split("|") if part.startswith("agg:")), "")
    found = EVALCORE.aggregations.get(name)
    return found is None or found.measures


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


# --- what became of documents -----------------------------------------------------------------------------------------


def read_ledger(results: Plain) -> Ledger:
    """What became of all documents, as the results count them."""
    told = find_part(results, "evalcore", "documents")
    fields = Ledger.__struct_fields__
    return sum_ledgers(Ledger(*(_count(find_part(told, name).get(key)) or 0 for key in fields)) for name in told)


def read_losses(results: Plain) -> tuple[Lost, ...]:
    """The documents without a score, and why."""
    return tuple(
        Lost(str(one["task"]), str(one["kind"]), _count(one.get("documents")) or 0, _count(one.get("of")) or 0, reasons)
        for one in _list_maps(find_part(results, "evalcore").get("unscored"))
        if one.get("kind") in WORDS and "task" in one
        for reasons in [tuple(_read_reasons(one.get("reasons")))]
    )


def _read_reasons(given: object) -> Iterable[tuple[str, int]]:
    for pair in given if isinstance(given, list | tuple) else ():
        if isinstance(pair, list | tuple) and len(pair) == 2:
            yield str(pair[0]), _count(pair[1]) or 0


def _list_maps(value: object) -> list[Plain]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list | tuple) else []


def _read_texts(value: object) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list | tuple) else ()
