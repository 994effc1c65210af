"""The tasks of sample logs: what their config says, and which files are shards of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    OutputType,
)
from evalcore.shell.data.unpack import open_bytes
from evalcore.shell.data.wire import decode_line, encode_line
from evalcore.shell.logs.json_records import Record, problem_at, read_records
from evalcore.shell.logs.kind import Found
from evalcore.shell.logs.lm_eval.lmms import is_lmms, with_arguments
from evalcore.shell.logs.lm_eval.pages import Pages
from evalcore.shell.logs.lm_eval.past import read_past
from evalcore.shell.logs.lm_eval.rows import asked_as
from evalcore.shell.logs.lm_eval.samples import SampleLog, read_samples
from evalcore.shell.logs.log import LogTask, Problem
from evalcore.shell.logs.paths import NO_MODEL, Placed, Results, place_log
from evalcore.shell.logs.runs.source import stamp_of, task_of_log
from evalcore.shell.logs.runs.tasks import RENAMED, filter_names

__all__ = ["Pool", "open_lmms_json", "open_samples", "pool_samples"]

SHOWN = 5
ASKED = (
    *("model_name", "system_instruction", "system_instruction_sha", "chat_template", "chat_template_sha"),
    "fewshot_as_multiturn",
)
SET = ("model", "model_args", "gen_kwargs", "random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
"""The keys of results, and of their config, that are the same in all files of one run."""

KINDS = frozenset({GENERATE_UNTIL, LOGLIKELIHOOD, LOGLIKELIHOOD_ROLLING, MULTIPLE_CHOICE})


class _Id(Struct, gc=False):
    doc_id: int


ADDRESS = re.compile(rb" at 0x[0-9a-f]+")
ID = msgspec.json.Decoder(_Id)


def open_samples(
    found: Sequence[Found], results_in: Callable[[Path], Results], *, scores: bool, requests: bool
) -> list[LogTask]:
    """The tasks of sample logs."""
    return [_task(pool, scores, requests) for pool in pool_samples(found, results_in)]


class Pool(Struct, frozen=True):
    """The files of one task of one run, what stands beside the first, and how many documents several of them have."""

    files: tuple[Found, ...]
    placed: Placed
    documents: int = 0
    same: bool = True
    """Whether the results beside all of them are the same."""

    @property
    def told(self) -> tuple[str, ...]:
        """What there is to say where several files are one task."""
        if len(self.files) < 2:
            return ()
        names = ", ".join(str(one.path) for one in self.files[:SHOWN]) + (", ..." if len(self.files) > SHOWN else "")
        what = f"{len(self.files)} files were taken as one task of {self.documents:,} documents"
        return (f"{self.placed.task}: {what} (no document is in two of them): {names}",)


def pool_samples(found: Sequence[Found], results_in: Callable[[Path], Results]) -> list[Pool]:
    """Sample logs by task; several files are one task if they are of one run and no document is in two of them."""
    tasks: dict[str, dict[object, list[tuple[Found, Placed]]]] = {}
    for one in found:
        place = place_log(one.path, results_in)
        # Without a model, nothing but the same folder (without results: and time) tells that two files are of one run.
        run = run_of(place) if place.results else stamp_of(one.path.name)
        where = None if names_model(place.results) else one.path.resolve().parent
        tasks.setdefault(place.task, {}).setdefault((where, run), []).append((one, place))
    return [pool for runs in tasks.values() for run in runs.values() for pool in _pooled(run)]


def _pooled(run: Sequence[tuple[Found, Placed]]) -> list[Pool]:
    files, placed = tuple(one for one, _ in run), run[0][1]
    count = count_apart(files) if len(files) > 1 else None
    if count is None:
        return [Pool((one,), place) for one, place in run]
    return [Pool(files, placed, count, all(place.results == placed.results for _, place in run))]


def names_model(results: Mapping[str, object]) -> bool:
    """Whether results tell which model answered.

    >>> names_model({"model_name": "a"}), names_model({"config": {"model": "recorded"}}), names_model({})
    (True, False, False)
    """
    told = (results.get("model_name"), *(_config(results).get(key) for key in ("model", "model_args")))
    return any(one and one != NO_MODEL for one in told)


def run_of(placed: Placed) -> bytes:
    """What shards of one task have in common: model, prompts, config, without where in memory its functions were.

    >>> run_of(Placed("t", {"model_name": "a"})) == run_of(Placed("t", {"model_name": "b"}))
    False
    """
    given = _config(placed.results)
    asked = [*map(placed.results.get, ASKED), *map(given.get, SET)]
    return ADDRESS.sub(b"", encode_line([asked, placed.config]))


def _config(results: Mapping[str, object]) -> Mapping[str, object]:
    found = results.get("config")
    return found if isinstance(found, Mapping) else {}


def _task(pool: Pool, scores: bool, requests: bool) -> LogTask:
    files, placed = pool.files, pool.placed
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
        warnings=pool.told,
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


def count_apart(files: Sequence[Found]) -> int | None:
    """How many documents files have, None if one is in two of them. The first documents mostly tell that they have the
    same; if not, the files are gone through once.
    """
    starts = [one.first.get("doc_id") for one in files]
    if len(set(map(str, starts))) < len(starts):
        return None
    seen, count = Pages(), 0
    for number, one in enumerate(files, 1):
        for key in _ids(one.path):
            known = seen.get(key)
            if known not in (0, number):
                return None
            seen.put(key, number)
            count += not known
    return count


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
