"""Results files in lm-eval's form, and those that lie beside sample logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isclose, isnan
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import force_setattr

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord
from evalcore.shell.data.doubled_keys import decode_once
from evalcore.shell.data.unpack import open_bytes
from evalcore.shell.logs.head import read_head
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.logs.lm_eval.names import find_stamp, name_task
from evalcore.shell.logs.lm_eval.rows import read_float, recognise_samples
from evalcore.shell.safety.safe_text import slug

if TYPE_CHECKING:
    from evalcore.core.records.estimate import Estimate
    from evalcore.core.records.task import MetricKey

Plain = Mapping[str, object]
NO_MODEL = "recorded"
"""The model in results whose answers come from an unknown model."""

EXPECTED = "expected an evalcore run folder, an lm-eval output (a folder or its results_*.json) or a sample log"


class ResultsFile(FrozenRecord, frozen=True):
    """A results file beside logs: its content, its tasks by the possible names of their logs, or why it is unreadable.

    >>> ResultsFile(Path("results.json"), {"results": {"a": {}}}).tasks
    {'a': 'a'}
    """

    path: Path
    results: Plain
    fault: EvalError | None = None
    tasks: Mapping[str, str] = FrozenDict()

    def __post_init__(self) -> None:
        super().__post_init__()
        tasks = list_tasks(self.results)
        slugs = {slug(task): task for task in reversed(tasks)}
        force_setattr(self, "tasks", FrozenDict({**slugs, **{task: task for task in tasks}}))

    @property
    def stamp(self) -> str:
        return find_stamp(self.path.name)


Results = Sequence[ResultsFile]


class Placed(Struct, frozen=True):
    """The task of a sample log, and the results and config beside it, if any."""

    task: str
    results: Plain = FrozenDict()

    @property
    def config(self) -> Plain:
        return find_part(self.results, "configs", self.task)

    @property
    def row(self) -> Plain:
        return find_part(self.results, "results", self.task)


def place_log(path: Path, results_in: Callable[[Path], Results]) -> Placed:
    """Find the task of a log and the results of its run: those of the same time in the same folder.

    >>> file = ResultsFile(Path("results.json"), {"results": {"gsm8k": {}}})
    >>> place_log(Path("pretrained_gsm8k.jsonl"), lambda folder: [file]).task
    'gsm8k'
    """
    stem, stamp = name_task(path), find_stamp(path.name)
    for file in results_in(path.resolve().parent):
        named = _named(file, stem) if file.stamp == stamp else None
        if named is not None:
            return Placed(named, file.results)
    return Placed(stem)


def _named(file: ResultsFile, stem: str) -> str | None:
    """The task whose file may have this stem, the longest of several; logs of 2023 have the model before it."""
    ends = (stem[at + 1 :] for at, mark in enumerate(stem) if mark == "_")
    after = (end for end in ends if file.tasks.get(end) == end)
    return file.tasks.get(stem) or next(after, None)


def find_damaged(paths: Sequence[Path], results_in: Callable[[Path], Results]) -> dict[Path, EvalError]:
    """Find the unreadable results files of the runs of these logs."""
    runs = dict.fromkeys((path.resolve().parent, find_stamp(path.name)) for path in paths)
    files = [one for folder, stamp in runs for one in results_in(folder) if one.stamp == stamp]
    return {one.path: one.fault for one in files if one.fault is not None}


def read_folder_results(folder: Path) -> Results:
    """Read the results files of a folder in the order of their names.

    >>> read_folder_results(Path("no/such/folder"))
    ()
    """
    out: list[ResultsFile] = []
    for path in sorted(folder.glob("*.json")):
        if "results" in path.name or find_stamp(path.name):
            try:
                found = read_results(path)
            except EvalError as wrong:
                out.append(ResultsFile(path, FrozenDict(), wrong))
                continue
            if found is not None:
                out.append(ResultsFile(path, found))
    return tuple(out)


def list_tasks(results: Mapping[str, object]) -> list[str]:
    """List the tasks of results in the order of their numbers; groups have no config.

    >>> list_tasks({"results": {"g": {}, "a": {}}, "configs": {"a": {}}})
    ['a']
    """
    configs, rows, groups = (results.get(key) for key in ("configs", "results", "group_subtasks"))
    listed = [str(name) for name in rows] if isinstance(rows, Mapping) else []
    if isinstance(configs, Mapping) and configs:
        return [*(name for name in listed if name in configs), *(str(name) for name in configs if name not in listed)]
    above = {name for name, below in groups.items() if below} if isinstance(groups, Mapping) else set()
    return [name for name in listed if name not in above]


def read_results(path: Path) -> Mapping[str, object] | None:
    """Read a results file; None if it is something else.

    >>> read_results(Path("no/such.json"))
    Traceback (most recent call last):
    evalcore.EvalError: no/such.json: no such file
    """
    if recognise_samples(read_head(path)):
        return None
    found = _decode_file(path)
    return found if isinstance(found, dict) and not _find_misfit(found) else None


def _decode_file(path: Path) -> object:
    with open_bytes(path) as file:
        content = file.read()
    try:
        return decode_once(content, str(path))
    except EvalError as wrong:
        raise EvalError(f"{wrong}; {EXPECTED}") from wrong


def _find_misfit(found: object) -> str:
    """What of some JSON is not as in a results file; empty if it is one.

    >>> _find_misfit([]), _find_misfit({"acc": 1}), _find_misfit({"results": [1]}), _find_misfit({"results": {}})
    ('it is no object', 'it has no key "results"', 'its "results" is no object', '')
    """
    if not isinstance(found, dict):
        return "it is no object"
    if "results" not in found:
        return 'it has no key "results"'
    return "" if isinstance(found["results"], dict) else 'its "results" is no object'


def tell_misfit(path: Path) -> str:
    """Tell why a file that is called results is none."""
    return f"{path.name} is no results file: {_find_misfit(_decode_file(path))}"


# --- numbers that contradict the results ------------------------------------------------------------------------------


def tell_contradictions(
    placed: Placed,
    task: str,
    estimates: Iterable[tuple[MetricKey, Estimate]],
    *,
    source: str = "by the answers in the log",
    shards: bool = False,
    torn: bool = False,
) -> tuple[str, ...]:
    """Warn where the results have other numbers than these, which were made of the same documents.

    Of ``shards``, the results must count all documents; a log that is ``torn`` may lack some.

    >>> from evalcore.core.records.estimate import Estimate
    >>> from evalcore.core.records.task import MetricKey
    >>> placed = Placed("t", {"results": {"t": {"acc,none": 0.75}}})
    >>> tell_contradictions(placed, "t", [(MetricKey("acc"), Estimate(value=0.5, n=4))])
    ('t: acc,none is 0.75 in the results, but 0.5 by the answers in the log',)
    """
    from evalcore.core.lm_eval.errata import tell_errata  # only here: listing logs needs no tables
    from evalcore.core.tables import EVALCORE

    rows, own = placed.row, find_part(placed.results, "evalcore")
    counted = find_part(placed.results, "n-samples", placed.task).get("effective")
    told = []
    for key, estimate in estimates:
        stated, lost = rows.get(str(key)), estimate.counts.failed + estimate.counts.unscorable
        other = (
            isinstance(counted, int) or shards
        ) and counted != estimate.counts.scored + estimate.counts.not_emitted + lost
        if (
            (other and not torn)
            or (lost and own.get("on_unscorable") == "zero")
            or not _contradicts(estimate.value, stated)
        ):
            continue
        why = tell_errata(estimate.errata) if own.get("policy") != EVALCORE.name else ""
        text = f"{task}: {key} is {str(stated)[:60]} in the results, but {estimate.value} {source}"
        told.append(f"{text}: {why}" if why else text)
    return tuple(told)


def _contradicts(value: float | None, stated: object) -> bool:
    """Whether a recorded number is another, beyond what rounding to its digits explains.

    >>> _contradicts(1 / 3, 0.3333), _contradicts(1 / 3, 0.3334), _contradicts(0.5, "N/A"), _contradicts(0.52, 0.5)
    (False, True, False, True)
    """
    given = read_float(stated) if isinstance(stated, int | float) else None
    if value is None or given is None:
        return False
    digits = len(repr(given).partition(".")[2]) if "e" not in repr(given) else 0
    rounded = 0.501 * 10.0**-digits if digits >= FEWEST_DIGITS else 0.0
    same = isclose(value, given, rel_tol=1e-6, abs_tol=max(rounded, 1e-12))
    return not (same or (isnan(value) and isnan(given)))


FEWEST_DIGITS = 4
"""A number of fewer digits is taken for exact: a share of few documents, not a rounded one."""
