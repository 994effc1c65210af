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

from evalcore.core.records.errors import EvalError, MissingExtra, require
from evalcore.shell.data.unpack import limit_unpacked, refuse_unpacked
from evalcore.shell.data.wire import decode_line
from evalcore.shell.logs.inspect.samples import SampleKey

SAMPLE = re.compile(r"samples/(.+)_epoch_(\d{1,9})\.json", re.DOTALL)
HEADERS = ("header.json", "_journal/start.json")
"""The second exists from the start; a run that was stopped has only that."""


BROKEN = (BadZipFile, OSError, EOFError, zlib.error, RuntimeError, ValueError, KeyError, IndexError, struct.error)
"""What Python's reader raises for truncated or altered files."""

ZSTD = 93
LOCAL = struct.Struct("<4s22xHH")
"""The beginning of a member: its signature, and the lengths of its name and extra field."""


class Member(NamedTuple):
    """A sample in a zip file: its key and where it is."""

    key: SampleKey
    info: ZipInfo


def read_header(path: Path) -> dict[str, object]:
    """Read what a log says of its run: eval, plan, results."""
    with open_zip(path) as zipped:
        names = set(zipped.namelist())
        name = next((one for one in HEADERS if one in names), None)
        if name is None:
            raise EvalError(f"{path}: expected an Inspect log with {' or '.join(HEADERS)}, got a zip without them")
        try:
            data = read_member(zipped, zipped.getinfo(name))
        except EvalError as wrong:
            raise type(wrong)(f"{path}: {wrong}") from wrong
        found = decode_line(data, f"{path}: {name}")
    if not isinstance(found, dict):
        raise EvalError(f"{path}: {name}: expected a JSON object, got {str(found)[:60]!r}")
    return found


def list_samples(zipped: ZipFile) -> list[Member]:
    """List the samples of a log in the order in which they finished; nothing is unpacked."""
    found = [(SAMPLE.fullmatch(one.filename), one) for one in zipped.infolist()]
    return [Member(SampleKey(match[1], int(match[2])), one) for match, one in found if match is not None]


def read_member(zipped: ZipFile, info: ZipInfo) -> bytes:
    """Read a member of at most 256 MB or 200 times its compressed size."""
    most = limit_unpacked(info.compress_size)
    try:
        if info.compress_type == ZSTD:
            data = _read_zstd(zipped, info, most)
        else:
            with zipped.open(info) as file:
                data = file.read(most + 1)
    except MissingExtra as wrong:
        raise MissingExtra(f"{info.filename}: packed with Zstandard: {wrong}") from wrong
    except (*BROKEN, NotImplementedError) as wrong:
        raise EvalError(f"{info.filename}: cannot be unpacked: {wrong}") from wrong
    if len(data) > most:
        raise refuse_unpacked(info.filename, most)
    return data


def _read_zstd(zipped: ZipFile, info: ZipInfo, most: int) -> bytes:
    """A member in Zstandard, as Inspect writes since 2026; Python's own reader supports it from 3.14 on."""
    zstd, file = require("zstandard", "zstd"), zipped.fp
    if file is None:
        raise ValueError("the zip file is closed")
    file.seek(info.header_offset)
    mark, name, added = LOCAL.unpack(file.read(LOCAL.size))
    if mark != b"PK\x03\x04":
        raise BadZipFile(f"no member at byte {info.header_offset:,}")
    file.seek(name + added, 1)
    packed = file.read(info.compress_size)
    try:
        data = bytes(zstd.ZstdDecompressor().stream_reader(packed, read_across_frames=True).read(most + 1))
    except zstd.ZstdError as wrong:
        raise BadZipFile(str(wrong)) from wrong
    if len(data) <= most and zlib.crc32(data) != info.CRC:
        raise BadZipFile("its checksum is another")
    return data


@contextmanager
def open_zip(path: Path) -> Iterator[ZipFile]:
    """Open a zip file; every error names the file."""
    try:
        file = path.open("rb")
        zipped = ZipFile(file)
    except (*BROKEN, NotImplementedError) as wrong:
        raise EvalError(f"{path}: cannot be read as a zip file: {wrong}") from wrong
    with file, zipped:
        yield zipped
