"""The numbers of a run for its page: where each stands in the group tree, and all that is known about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from math import isfinite

from evalcore.core.compare.gates import Number
from evalcore.core.lm_eval.errata import ERRATA
from evalcore.core.lm_eval.result_file import higher_is_better, num_fewshot, write_estimates
from evalcore.core.lm_eval.sample_log import thaw
from evalcore.core.records.report import TaskReport
from evalcore.core.records.task import MetricKey
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.logs.runs.totals import list_total_estimates
from evalcore.shell.logs.runs.trees import grow_trees
from evalcore.shell.output.files.results import UNFINISHED
from evalcore.shell.output.terminal.number_rows import list_places
from evalcore.shell.report.gathered_run import GatheredRun

Plain = dict[str, object]
Chosen = Callable[[Number], bool]
Rows = Mapping[str, Mapping[MetricKey, Plain]]


def list_numbers(run: GatheredRun) -> Rows:
    """Every number of a run: as its scores come to, else as its results have it."""
    rows = write_estimates(run.report) if run.sampled else _read_rows(run)
    known = higher_is_better(run.report)
    told = find_part(run.results, "higher_is_better")
    return {
        name: {
            key: _write_number(key, row, {**find_part(told, name), **known.get(name, {})})
            for text, row in below.items()
            if (key := read_key(text)) is not None
        }
        for name, below in rows.items()
    }


def read_key(text: str) -> MetricKey | None:
    """The metric and filter of a key of results.

    >>> read_key("acc,none"), read_key("alias")
    (MetricKey(metric='acc', filter='none'), None)
    """
    metric, comma, name = text.rpartition(",")
    return MetricKey(metric, name) if comma and metric else None


def _read_rows(run: GatheredRun) -> dict[str, dict[str, Plain]]:
    """The numbers of results without samples: those that evalcore wrote, else with intervals from their errors."""
    written = thaw(find_part(run.results, "evalcore", "estimates"))
    if isinstance(written, dict) and written and run.confidence == find_part(run.results, "evalcore").get("confidence"):
        return {
            name: {key: {**row} for key, row in below.items() if isinstance(row, dict)}
            for name, below in written.items()
            if isinstance(below, dict)
        }
    out: dict[str, dict[str, Plain]] = {}
    for (name, key), one in list_total_estimates(run.results).items():
        ci = None if one.ci is None else list(one.ci)
        found: Plain = {"value": one.value, "stderr": one.stderr, "ci": ci, "n": one.n, "reason": one.reason}
        out.setdefault(name, {})[str(key)] = found
    return out


def _write_number(key: MetricKey, row: Plain, directions: Mapping[str, object]) -> Plain:
    """A number with its direction; what is not finite is left out, and the reason says so."""
    lost = [f"{name} is {one}" for name, one in row.items() if isinstance(one, float) and not isfinite(one)]
    why = [str(row["reason"])] * bool(row.get("reason")) + lost
    kept = {name: one for name, one in row.items() if one not in (None, [], "")}
    kept |= {name: None for name, one in row.items() if isinstance(one, float) and not isfinite(one)}
    named = {"metric": key.metric, "filter": key.filter, "higher": directions.get(key.metric)}
    return {**named, **kept, **({"reason": "; ".join(why)} if why else {})}


# --- the tree ---------------------------------------------------------------------------------------------------------


def list_entries(run: GatheredRun, numbers: Rows, chosen: Chosen) -> list[Plain]:
    """The tree of a run, parents before children: every task and group with its depth and its chosen numbers.

    A task in two groups stands in both; a task without a number says why.
    """
    facts, missing = _list_facts(run), _list_missing(run)
    places = _list_places(run, numbers)
    seen = {name for _, name in places}
    places += [(0, name) for name in (*numbers, *missing) if name not in seen]
    below = _find_groups(places)
    out = []
    for depth, name in places:
        kept = [one for key, one in numbers.get(name, {}).items() if chosen((name, key))]
        if kept or name in below or name in missing or name not in numbers:
            why = {} if kept else {"reason": missing.get(name, "" if name in below else "not run")}
            out.append({"depth": depth, "name": name, "group": name in below, "numbers": kept, **facts(name), **why})
    return out


def place_numbers(runs: Sequence[GatheredRun], numbers: Sequence[Rows], chosen: Chosen) -> Plain:
    """The chosen numbers of runs that could not be compared, each once, as they stand side by side all the same."""
    found: dict[Number, Plain] = {}
    rows: list[Plain] = []
    for run, below in zip(runs, numbers, strict=True):
        places = _list_places(run, below)
        groups = _find_groups(places)
        placed = [(depth, name, key, one) for depth, name in places for key, one in below.get(name, {}).items()]
        for depth, name, key, one in placed:
            if chosen((name, key)) and (name, key) not in found:
                rows.append({"depth": depth, "number": len(found)})
                facts = {"task": name, "metric": key.metric, "filter": key.filter, "group": name in groups}
                values = [rows.get(name, {}).get(key, {}).get("value") for rows in numbers]
                found[name, key] = {**facts, "higher": one["higher"], "values": values}
    return {"numbers": [*found.values()], "rows": rows}


def _find_groups(places: Sequence[tuple[int, str]]) -> set[str]:
    return {name for (depth, name), (deeper, _) in pairwise(places) if deeper > depth}


def _list_places(run: GatheredRun, numbers: Rows) -> list[tuple[int, str]]:
    if run.sampled:
        return list_places(run.report.trees)
    groups = {*find_part(run.results, "group_subtasks")}
    tasks = [TaskReport(name=name) for name in numbers if name not in groups]
    return list_places(grow_trees(run.results, tasks).trees)


def _list_facts(run: GatheredRun) -> Callable[[str], Plain]:
    """What is known of a task or group besides numbers."""
    named = {one.name: one.alias for one in run.report.tasks} | {one.name: one.alias for one in run.report.groups}
    rows = find_part(run.results, "results")
    versions, shots = find_part(run.results, "versions"), find_part(run.results, "n-shot")
    known = num_fewshot(run.report)

    def find(name: str) -> Plain:
        alias = named.get(name) or str(find_part(rows, name).get("alias") or name).lstrip(" -")
        shown = {"alias": alias, "version": versions.get(name), "shots": known.get(name, shots.get(name))}
        return {key: one for key, one in shown.items() if isinstance(one, str | int | float)}

    return find


def _list_missing(run: GatheredRun) -> dict[str, str]:
    """The tasks of a run that have no numbers, and why."""
    own = find_part(run.results, "evalcore")
    late = own.get(UNFINISHED)
    out = {str(name): "not run yet: the run is unfinished" for name in (late if isinstance(late, list | tuple) else ())}
    return out | {name: str(why) for name, why in find_part(own, "failed_tasks").items()}


def explain_errata(numbers: Iterable[Plain]) -> dict[str, str]:
    """What the errata say that concern some numbers."""
    listed = (one.get("errata") for one in numbers)
    used = {str(name) for some in listed if isinstance(some, list | tuple) for name in some}
    return {name: ERRATA.get(name, "") for name in sorted(used)}
