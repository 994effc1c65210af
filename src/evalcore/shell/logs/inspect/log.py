"""Inspect's logs, ``.eval`` (a zip of JSON) and ``.json``, without Inspect: epochs are repeats of a document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zipfile import is_zipfile

import msgspec
from msgspec import Raw, Struct

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import GENERATE_UNTIL
from evalcore.shell.data.doubled_keys import EVERY, refuse_doubled
from evalcore.shell.data.unpack import open_bytes
from evalcore.shell.data.wire import MOST_BYTES, decode_line, encode_line
from evalcore.shell.logs.head import FileHead, LogFile
from evalcore.shell.logs.inspect.archive import list_samples, open_zip, read_header, read_member
from evalcore.shell.logs.inspect.numbers import (
    names_all,
    read_directions,
    read_epochs,
    tell_numbers,
    tell_unfinished,
)
from evalcore.shell.logs.inspect.samples import InspectSample, SampleKey, list_spelled, log_samples, read_sample
from evalcore.shell.logs.json_records import Record, locate_problem
from evalcore.shell.logs.log import Logged, LogTask, Opening, Problem, Reader
from evalcore.shell.logs.units.unit import UNCUT, Cut, Unit, UnitNotes

if TYPE_CHECKING:
    from evalcore.shell.logs.log import Numbers

Plain = dict[str, object]


class _Log(Struct, gc=False):
    """A log that is one JSON object."""

    eval: Plain
    results: Plain | None = None
    samples: list[Raw] | None = None
    status: str = ""
    error: Plain | None = None


class _Key(Struct, gc=False):
    id: int | str
    epoch: int = 1


EVAL = re.compile(rb'"eval"\s*:\s*\{')
PARTS = ("results", "error")
LOG, KEY = msgspec.json.Decoder(_Log), msgspec.json.Decoder(_Key)


def recognise_inspect(head: FileHead) -> bool:
    """Whether a file is a zip, or one JSON object with ``eval``."""
    if head.first is None:
        return head.form == "zip" or (head.form in ("json", "results") and EVAL.search(head.start) is not None)
    return isinstance(head.first.get("eval"), Mapping) and ("samples" in head.first or "status" in head.first)


def open_inspect(files: Sequence[LogFile], opening: Opening) -> list[LogTask]:
    """Open the task of an Inspect log. A ``.eval`` is read sample by sample, a ``.json`` as a whole."""
    path, zipped = files[0].path, files[0].form == "zip"
    header = read_header(path) if zipped else msgspec.structs.asdict(_read_json(path))
    spec = header.get("eval")
    if not isinstance(spec, Mapping) or not isinstance(spec.get("task"), str):
        raise EvalError(f"{path}: expected an Inspect log with eval.task, got {str(spec)[:60]!r}")
    given, status = header.get("results"), header.get("status")
    results = given if isinstance(given, Mapping) else {}
    here = 0 if status == "success" else _count(path, header.get("samples"))
    made = LogTask(
        name=str(spec["task"]).rpartition("/")[2],
        path=path,
        output_type=GENERATE_UNTIL,
        rows=partial(_zip_rows if zipped else _json_rows, path, opening.requests),
        model={**{key: spec.get(key) for key in ("model", "model_args")}, "model_name": spec.get("model")},
        epochs=read_epochs(spec),
        pointed=partial(_read_pointed, path, results, zipped),
        warnings=tell_unfinished(status, header.get("error"), here, spec),
        covers=partial(names_all, results),
        recorded=results,
        cut=Cut(partial(_cut_zip, path), partial(_read_zip_unit, path, opening.requests)) if zipped else UNCUT,
    )
    return [made]


def _tell_numbers(log: LogTask, name: str, estimates: Numbers) -> tuple[str, ...]:
    return tell_numbers(log.recorded, name, estimates)


INSPECT = Reader(
    recognises=recognise_inspect,
    opens=open_inspect,
    order=20,
    title="an Inspect log",
    harness="Inspect",
    tell_numbers=_tell_numbers,
)


def _read_pointed(path: Path, results: Mapping[str, object], zipped: bool) -> Mapping[str, bool]:
    """Read the directions of scores, from the results and the first sample."""
    try:
        if zipped:
            with open_zip(path) as file:
                data = [read_member(file, one.info) for one in list_samples(file)[:1]]
        else:
            data = [bytes(raw) for raw in (_read_json(path).samples or [])[:1]]
        spelled = list_spelled(read_sample(data[0])) if data else {}
    except EvalError:  # reported where the samples are read
        spelled = {}
    return read_directions(results, spelled)


def _count(path: Path, samples: object) -> int:
    """Count the samples of a log; those of a ``.json`` are given."""
    if isinstance(samples, list):
        return len(samples)
    if not is_zipfile(path):
        return 0
    with open_zip(path) as zipped:
        return len(list_samples(zipped))


class StoredSample(NamedTuple):
    """A sample of a log, and a function that reads its bytes."""

    key: SampleKey
    at: Record
    read: Callable[[], bytes]


def _cut_zip(path: Path, size: int) -> tuple[Unit, ...]:
    """Cut a log at its documents, whose samples are members of a zip file."""
    with open_zip(path) as zipped:
        total = len({one.key.id for one in list_samples(zipped)})
    count = max(1, min(total, -(-path.stat().st_size // size)))
    ends = [total * at // count for at in range(count + 1)]
    return tuple(Unit(path, "documents", a, b, total) for a, b in pairwise(ends))


def _read_zip_unit(path: Path, requests: bool, unit: Unit, seen: UnitNotes) -> Iterator[Logged | Problem]:
    return _zip_rows(path, requests, unit.start, unit.stop)


def _zip_rows(path: Path, requests: bool, start: int = 0, stop: int | None = None) -> Iterator[Logged | Problem]:
    try:
        with open_zip(path) as zipped:
            places = (
                (Record(at, one.info.header_offset, b"", item=True), one)
                for at, one in enumerate(list_samples(zipped), 1)
            )
            stored = [StoredSample(one.key, at, partial(read_member, zipped, one.info)) for at, one in places]
            yield from _documents(path, stored, requests, start, stop)
    except EvalError as wrong:
        yield locate_problem(path, Record(1, 0, b""), wrong)


def _json_rows(path: Path, requests: bool) -> Iterator[Logged | Problem]:
    try:
        samples = _read_json(path).samples or []
    except EvalError as wrong:
        yield locate_problem(path, Record(1, 0, b""), wrong)
        return
    stored: list[StoredSample] = []
    for place, raw in enumerate(samples, 1):
        at = Record(place, 0, b"", item=True)
        try:
            key = _read_key(raw)
        except EvalError as wrong:
            yield locate_problem(path, at, wrong)
            continue
        stored.append(StoredSample(SampleKey(str(key.id), key.epoch), at, partial(bytes, raw)))
    yield from _documents(path, stored, requests)


def _read_key(raw: Raw) -> _Key:
    """The id and epoch of a sample, which may have NaN for a score."""
    try:
        return KEY.decode(raw)
    except (ValueError, RecursionError):
        pass
    try:
        return msgspec.convert(decode_line(bytes(raw), "the sample"), _Key)
    except (ValueError, TypeError, RecursionError) as wrong:
        raise EvalError(f"expected a sample with id and epoch: {wrong}") from wrong


def _documents(
    path: Path, stored: Sequence[StoredSample], requests: bool, start: int = 0, stop: int | None = None
) -> Iterator[Logged | Problem]:
    """The samples of each id as a document, epochs in order; an unreadable sample is a problem of its document."""
    groups: dict[str, list[StoredSample]] = {}
    for one in sorted(stored, key=lambda one: (one.key.order, one.key.epoch)):
        groups.setdefault(one.key.id, []).append(one)
    for number, group in islice(enumerate(groups.values()), start, stop):
        epochs: dict[int, InspectSample] = {}
        for one in group:
            try:
                if one.key.epoch in epochs:
                    raise EvalError(f"expected each sample once, got {one.key.id}, epoch {one.key.epoch} twice")
                data = one.read()
                if number < EVERY or not number % EVERY:
                    refuse_doubled(data)
                epochs[one.key.epoch] = read_sample(data)
            except EvalError as wrong:
                yield locate_problem(path, one.at, wrong)
        if epochs:
            yield log_samples(number, list(epochs.values()), group[0].at.line, requests=requests)


def _read_json(path: Path) -> _Log:
    with open_bytes(path) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise EvalError(f"{path}: an Inspect log in JSON of more than {MOST_BYTES:,} bytes; convert it to .eval")
    try:
        return LOG.decode(data)
    except (ValueError, RecursionError):
        pass
    found = decode_line(data, str(path))  # which says what is wrong, or takes the NaN that was
    if not isinstance(found, dict) or not isinstance(found.get("eval"), dict):
        raise EvalError(f"{path}: expected an Inspect log with eval and samples, got {str(found)[:60]!r}")
    samples = found.get("samples")
    items = [Raw(encode_line(one)) for one in samples] if isinstance(samples, list) else []
    results, error = (one if isinstance(one := found.get(key), dict) else None for key in PARTS)
    return _Log(found["eval"], results, items, str(found.get("status") or ""), error)
