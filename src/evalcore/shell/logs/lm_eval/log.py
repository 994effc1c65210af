"""The tasks of sample logs: their config, their results and their model, from what lies beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import freeze_dict
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    OutputType,
)
from evalcore.shell.data.unpack import open_bytes
from evalcore.shell.data.wire import decode_line, encode_line
from evalcore.shell.logs.head import FileHead, LogFile
from evalcore.shell.logs.json_records import Record, find_part, locate_problem
from evalcore.shell.logs.lm_eval.lmms import add_arguments, is_lmms
from evalcore.shell.logs.lm_eval.names import RENAMED, list_filters, name_task
from evalcore.shell.logs.lm_eval.past import find_past, pick_records, read_past
from evalcore.shell.logs.lm_eval.pools import Pool, pool_samples, read_first_row
from evalcore.shell.logs.lm_eval.requests import guess_output_type
from evalcore.shell.logs.lm_eval.results import Placed, tell_contradictions
from evalcore.shell.logs.lm_eval.rows import recognise_samples
from evalcore.shell.logs.lm_eval.samples import SampleLog, read_samples
from evalcore.shell.logs.log import Logged, LogTask, Opening, Picks, Problem, Reader
from evalcore.shell.logs.units.sample_unit import cut_samples

KINDS = frozenset({GENERATE_UNTIL, LOGLIKELIHOOD, LOGLIKELIHOOD_ROLLING, MULTIPLE_CHOICE})
LMMS_KEY = re.compile(rb'"model_configs"\s*:')


def open_samples(files: Sequence[LogFile], opening: Opening) -> list[LogTask]:
    """Open the tasks of sample logs."""
    return [_task(pool, opening) for pool in pool_samples(files, opening.results_in)]


def _tell_numbers(log: LogTask, name: str, estimates: Numbers) -> tuple[str, ...]:
    placed = Placed(str(log.recorded.get("task")), log.results)
    return tell_contradictions(placed, name, estimates, shards=len(log.paths) > 1)


SAMPLES = Reader(
    recognises=recognise_samples,
    tell_numbers=_tell_numbers,
    opens=open_samples,
    order=10,
    title="a sample log",
    shards=True,
    results_beside=True,
    sample_rows=True,
)

if TYPE_CHECKING:
    from evalcore.shell.logs.log import Numbers
"""Rows of lm-eval, evalcore and lmms-eval since 0.2.4."""


def _task(pool: Pool, opening: Opening) -> LogTask:
    files, placed = pool.files, pool.placed
    first = next((row for row in map(read_first_row, files) if row), {})
    paths, config, row = tuple(one.path for one in files), placed.config, placed.row
    kind = find_output_type(config, first)
    named = list_filters(config, row) if row else ()
    log = SampleLog(
        paths=paths,
        output_type=kind,
        config=config,
        filters=named,
        past=partial(read_past, paths, named) if opening.scores else None,
        requests=opening.requests,
    )
    return LogTask(
        name=placed.task,
        path=paths[0],
        paths=paths,
        output_type=kind,
        rows=partial(read_samples, log),
        some=partial(_read_some, log),
        config=config,
        results=placed.results,
        model=find_model_facts(placed.results),
        warnings=pool.told,
        past=partial(find_past, paths),
        recorded={"task": placed.task},
        cut=cut_samples(log, first.get("filter")),
    )


def _read_some(log: SampleLog, picks: Picks) -> Iterator[Logged | Problem]:
    """The documents of a log that are picked; what came of others is not held in memory either."""
    past = partial(read_past, log.paths, log.filters, lambda path: pick_records(log.records(path), picks))
    return read_samples(replace(log, picks=picks, past=past if log.past is not None else None))


def find_model_facts(results: Mapping[str, object]) -> Mapping[str, object]:
    """Find the model in results, its arguments and its name."""
    config = find_part(results, "config")
    return {**{key: config.get(key) for key in ("model", "model_args")}, "model_name": results.get("model_name")}


def find_output_type(config: Mapping[str, object], first: Mapping[str, object]) -> OutputType:
    """Find the output type: the config's if it is known, else a guess from the first row.

    >>> find_output_type({"output_type": "greedy_until"}, {})
    'generate_until'
    >>> find_output_type({}, {"input": "Q", "filtered_resps": ["A"]})
    'generate_until'
    """
    given = config.get("output_type")
    named = RENAMED.get(given, given) if isinstance(given, str) else None
    if named in KINDS:
        return OutputType(named)
    shown = add_arguments(dict(first)) if is_lmms(first) else first
    return guess_output_type(shown) if shown else GENERATE_UNTIL


# --- lmms-eval before 0.2.4 -----------------------------------------------------------------------------------------


class _Whole(Struct, gc=False):
    model_configs: dict[str, object]
    logs: list[Raw]


WHOLE = msgspec.json.Decoder(_Whole)


def recognise_lmms(head: FileHead) -> bool:
    """Whether a file is one object of lmms-eval."""
    if head.first is None:
        return head.form in ("json", "results") and LMMS_KEY.search(head.start) is not None
    return head.form != "results" and isinstance(head.first.get("logs"), tuple) and "model_configs" in head.first


def open_lmms(files: Sequence[LogFile], opening: Opening) -> list[LogTask]:
    """Open the task of lmms-eval's first layout: a JSON object with config and documents, held in memory."""
    path = files[0].path
    whole = _read_whole(path)
    config = freeze_dict(whole.model_configs)
    name = config.get("task")
    task = name if isinstance(name, str) and name else name_task(path)
    kind = find_output_type(config, {})
    log = SampleLog(
        paths=(path,),
        output_type=kind,
        config=config,
        past=partial(read_past, (path,), (), _log_records) if opening.scores else None,
        records=_log_records,
    )
    made = LogTask(
        name=task,
        path=path,
        output_type=kind,
        rows=partial(read_samples, log),
        config=config,
        past=_find_none,
    )
    return [made]


def _find_none(doc_id: int) -> None:
    """What came of a document takes the whole log."""


LMMS = Reader(recognises=recognise_lmms, opens=open_lmms, order=30, title="lmms-eval's samples", results_beside=True)


def _log_records(path: Path) -> Iterator[Record | Problem]:
    try:
        items = _read_whole(path).logs
    except EvalError as wrong:
        yield locate_problem(path, Record(1, 0, b""), wrong)
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
