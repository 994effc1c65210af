"""The members of an Inspect ``.eval`` log, each read by itself and never unpacked to disk."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile, ZipInfo

from evalcore.core.errors import EvalError
from evalcore.shell.answers.inspect_samples import SampleKey
from evalcore.shell.data.opening import FREE_BYTES, MOST_FOLD
from evalcore.shell.wire import decode_line

__all__ = ["Member", "list_samples", "open_zip", "read_header", "read_member"]

SAMPLE = re.compile(r"samples/(.+)_epoch_(\d{1,9})\.json", re.DOTALL)
HEADERS = ("header.json", "_journal/start.json")
"""The second is there from the start; a run that was stopped has nothing else."""


BROKEN = (BadZipFile, OSError, EOFError, zlib.error, RuntimeError, ValueError, KeyError, IndexError, struct.error)
"""What Python's reader raises for files that are cut or changed."""


class Member(NamedTuple):
    """A sample in a zip file: its key and where it is."""

    key: SampleKey
    info: ZipInfo


def read_header(path: Path) -> dict[str, object]:
    """What a log says of its run: eval, plan, results."""
    with open_zip(path) as zipped:
        names = set(zipped.namelist())
        name = next((one for one in HEADERS if one in names), None)
        if name is None:
            raise EvalError(f"{path}: expected an Inspect log with {' or '.join(HEADERS)}, got a zip without them")
        found = decode_line(read_member(zipped, zipped.getinfo(name)), f"{path}: {name}")
    if not isinstance(found, dict):
        raise EvalError(f"{path}: {name}: expected a JSON object, got {str(found)[:60]!r}")
    return found


def list_samples(zipped: ZipFile) -> list[Member]:
    """The samples of a log in the order in which they were finished; nothing is unpacked, whatever it is called."""
    found = [(SAMPLE.fullmatch(one.filename), one) for one in zipped.infolist()]
    return [Member(SampleKey(match[1], int(match[2])), one) for match, one in found if match is not None]


def read_member(zipped: ZipFile, info: ZipInfo) -> bytes:
    """The bytes of a member, if they are no more than 256 MB, or 200 times what they are packed in."""
    most = max(FREE_BYTES, MOST_FOLD * info.compress_size)
    try:
        with zipped.open(info) as file:
            data = file.read(most + 1)
    except (*BROKEN, NotImplementedError) as wrong:
        raise EvalError(f"{info.filename}: cannot be unpacked: {wrong}") from wrong
    if len(data) > most:
        raise EvalError(f"{info.filename}: unpacks to more than {most:,} bytes")
    return data


@contextmanager
def open_zip(path: Path) -> Iterator[ZipFile]:
    """The zip file; every trouble of opening it names the file."""
    try:
        zipped = ZipFile(path)
    except (*BROKEN, NotImplementedError) as wrong:
        raise EvalError(f"{path}: cannot be read as a zip file: {wrong}") from wrong
    with zipped:
        yield zipped
