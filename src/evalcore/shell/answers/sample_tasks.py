"""The tasks of sample logs: what their config says, and which files are shards of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from evalcore.core.errors import EvalError
from evalcore.core.records import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    OutputType,
)
from evalcore.shell.answers.finding import Placed, Results, place_log
from evalcore.shell.answers.kinds import Found
from evalcore.shell.answers.lmms import is_lmms, with_arguments
from evalcore.shell.answers.past import read_past
from evalcore.shell.answers.record import LogTask, Problem
from evalcore.shell.answers.records import Record, problem_at, read_records
from evalcore.shell.answers.samples import SampleLog, read_samples
from evalcore.shell.answers.seen import Pages
from evalcore.shell.data.opening import open_bytes
from evalcore.shell.recorded.finding import task_of_log
from evalcore.shell.recorded.rows import asked_as
from evalcore.shell.recorded.tasks import RENAMED, filter_names
from evalcore.shell.wire import decode_line, encode_line

__all__ = ["open_lmms_json", "open_samples"]


KINDS = frozenset({GENERATE_UNTIL, LOGLIKELIHOOD, LOGLIKELIHOOD_ROLLING, MULTIPLE_CHOICE})


class _Id(Struct, gc=False):
    doc_id: int


ADDRESS = re.compile(rb" at 0x[0-9a-f]+")
ID = msgspec.json.Decoder(_Id)


def open_samples(
    found: Sequence[Found], results_in: Callable[[Path], Results], *, scores: bool, requests: bool
) -> list[LogTask]:
    """The tasks of sample logs; several files are one task if they are of one run and no document is in two of them."""
    groups: dict[str, list[tuple[Found, Placed]]] = {}
    for one in found:
        place = place_log(one.path, results_in)
        groups.setdefault(place.task, []).append((one, place))
    out: list[LogTask] = []
    for mine in groups.values():
        for run in _by_run(mine):
            shards = [run] if are_shards([one for one, _ in run]) else [[pair] for pair in run]
            out += [_task([one for one, _ in part], _told(part), scores, requests) for part in shards]
    return out


def _told(part: Sequence[tuple[Found, Placed]]) -> Placed:
    return next((place for _, place in part if place.results), part[0][1])


def _by_run(mine: Sequence[tuple[Found, Placed]]) -> list[list[tuple[Found, Placed]]]:
    """The logs whose results agree about the model and the task; those without results go with them if all agree."""
    runs: dict[bytes, list[tuple[Found, Placed]]] = {}
    for one, place in mine:
        runs.setdefault(run_of(place) if place.results else b"", []).append((one, place))
    return [list(mine)] if len(runs.keys() - {b""}) < 2 else list(runs.values())


def run_of(placed: Placed) -> bytes:
    """What shards of one task have in common: model and config, without where in memory its functions were.

    >>> run_of(Placed("t", {"model_name": "a"})) == run_of(Placed("t", {"model_name": "b"}))
    False
    """
    config = placed.results.get("config")
    given = config if isinstance(config, Mapping) else {}
    model = [placed.results.get("model_name"), given.get("model"), given.get("model_args")]
    return ADDRESS.sub(b"", encode_line([model, placed.config]))


def _task(files: Sequence[Found], placed: Placed, scores: bool, requests: bool) -> LogTask:
    first = next((one.first for one in files if one.first), {})
    paths, config, row = tuple(one.path for one in files), placed.config, placed.row
    kind = output_type_of(config, first)
    named = filter_names(config, row) if row else ()
    log = SampleLog(
        paths=paths,
        output_type=kind,
        config=config,
        filters=named,
        past=partial(read_past, paths, named) if scores else None,
        requests=requests,
    )
    source = "evalcore" if "evalcore" in placed.results else "lmms-eval" if is_lmms(first) else "lm-eval"
    return LogTask(
        name=placed.task,
        path=paths[0],
        paths=paths,
        output_type=kind,
        rows=partial(read_samples, log),
        config=config,
        results=placed.results,
        source=source,
    )


def output_type_of(config: Mapping[str, object], first: Mapping[str, object]) -> OutputType:
    """The output type that a config names, if it is one that is known, else the one that a first row looks like.

    >>> output_type_of({"output_type": "greedy_until"}, {}), output_type_of({}, {"input": "Q", "filtered_resps": ["A"]})
    ('generate_until', 'generate_until')
    """
    given = config.get("output_type")
    named = RENAMED.get(given, given) if isinstance(given, str) else None
    if named in KINDS:
        return OutputType(named)
    shown = with_arguments(dict(first)) if is_lmms(first) else first
    return asked_as(shown) if shown else GENERATE_UNTIL


# --- shards ---------------------------------------------------------------------------------------------------------


def are_shards(files: Sequence[Found]) -> bool:
    """Whether no document is in two files. The first documents mostly tell; if not, the files are gone through once."""
    if len(files) < 2:
        return True
    starts = [one.first.get("doc_id") for one in files]
    if len(set(map(str, starts))) < len(starts):
        return False
    seen = Pages()
    for number, one in enumerate(files, 1):
        for key in _ids(one.path):
            if seen.get(key) not in (0, number):
                return False
            seen.put(key, number)
    return True


def _ids(path: Path) -> Iterator[int]:
    """The documents of a log; lines that tell none are told of when they are read."""
    for one in read_records(path):
        if isinstance(one, Problem):
            return
        try:
            yield ID.decode(one.data).doc_id
        except (ValueError, RecursionError):
            continue


# --- lmms-eval before 0.2.4 -----------------------------------------------------------------------------------------


class _Whole(Struct, gc=False):
    model_configs: dict[str, object]
    logs: list[Raw]


WHOLE = msgspec.json.Decoder(_Whole)


def open_lmms_json(path: Path, *, scores: bool) -> LogTask:
    """The task of lmms-eval's first layout: one JSON object with its config and its documents, held in memory."""
    whole = _read_whole(path)
    name = whole.model_configs.get("task")
    task = name if isinstance(name, str) and name else task_of_log(path)
    kind = output_type_of(whole.model_configs, {})
    log = SampleLog(
        paths=(path,),
        output_type=kind,
        config=whole.model_configs,
        past=partial(read_past, (path,), (), _log_records) if scores else None,
        records=_log_records,
    )
    return LogTask(
        name=task,
        path=path,
        output_type=kind,
        rows=partial(read_samples, log),
        config=whole.model_configs,
        source="lmms-eval",
    )


def _log_records(path: Path) -> Iterator[Record | Problem]:
    try:
        items = _read_whole(path).logs
    except EvalError as wrong:
        yield problem_at(path, Record(1, 0, b""), wrong)
        return
    for place, item in enumerate(items, 1):
        yield Record(place, 0, bytes(item))


def _read_whole(path: Path) -> _Whole:
    with open_bytes(path) as file:
        data = file.read()
    try:
        return WHOLE.decode(data)
    except (ValueError, RecursionError):
        pass
    found = decode_line(data, str(path))  # which says what is wrong, or takes the NaN that was
    match found:
        case {"model_configs": dict(config), "logs": list(logs)}:
            return _Whole(config, [Raw(encode_line(one)) for one in logs])
    raise EvalError(f"{path}: expected model_configs and logs of lmms-eval, got {str(found)[:80]!r}")
