"""Files as streams of bytes, decompressed on the way and stopped if they grow without end."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, cast

from evalcore.core.records.errors import EvalError, require
from evalcore.shell.data.wire import MOST_BYTES

FREE_BYTES = 256 << 20
MOST_FOLD = 200
LINE_WEIGHT = 64
"""A compressed file may grow to 256 MB, and beyond that to 200 times its size; real text grows 3 to 20 times.

Every line counts as 64 bytes more, for it becomes a document or takes the time of one.
"""
RAISED = "EVALCORE_MAX_UNPACKED"


def limit_unpacked(size: int) -> int:
    """Limit the bytes that a packed file of this size may unfold to; the environment may raise the limit."""
    raised = os.environ.get(RAISED, "0").replace("_", "")
    if not raised.isdecimal():
        raise EvalError(f"expected a number of bytes in the environment variable {RAISED}, got {raised[:40]!r}")
    return max(FREE_BYTES, MOST_FOLD * size, int(raised))


def refuse_unpacked(where: object, most: int) -> EvalError:
    """The error of a file that unfolds to more than its limit."""
    return EvalError(
        f"{where}: unpacks to more than {most:,} bytes, {MOST_FOLD} times its size; if that is right, set the "
        f"environment variable {RAISED} to more"
    )


def _open_gzip(file: IO[bytes]) -> IO[bytes]:
    import gzip

    return cast(IO[bytes], gzip.open(file, "rb"))


def _open_bz2(file: IO[bytes]) -> IO[bytes]:
    import bz2

    return bz2.open(file, "rb")


def _open_xz(file: IO[bytes]) -> IO[bytes]:
    import lzma

    return lzma.open(file, "rb")


PACKED: dict[str, Callable[[IO[bytes]], IO[bytes]]] = {
    ".gz": _open_gzip,
    ".bz2": _open_bz2,
    ".xz": _open_xz,
    ".zst": lambda file: cast(IO[bytes], require("zstandard", "zstd").open(file, "rb")),
}

MAGIC = {b"\x1f\x8b\x08": ".gz", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
MAGIC |= {b"BZh%d1AY&SY" % level: ".bz2" for level in range(1, 10)}
"""The first bytes of compressed files, whatever their names."""

UNPACKERS = frozenset({"zlib", "lzma", "_lzma", "zstandard"})


def strip_packing(name: str) -> str:
    """Remove the suffix of the compression from a file name.

    >>> strip_packing("test.jsonl.gz"), strip_packing("test.csv")
    ('test.jsonl', 'test.csv')
    """
    return name[: name.rindex(".")] if Path(name).suffix.lower() in PACKED else name


class _Capped(io.RawIOBase):
    """A stream that refuses to yield more than a limit."""

    def __init__(self, inner: IO[bytes], most: int, path: Path) -> None:
        self._inner, self._left, self._most, self._path = inner, most, most, path

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer))
        data = self._inner.read(len(view))
        self._left -= len(data) + LINE_WEIGHT * data.count(b"\n")
        if self._left < 0:
            raise refuse_unpacked(self._path, self._most)
        view[: len(data)] = data
        return len(data)


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, decompressed if its first bytes say so; every error of reading it names the file."""
    try:
        if not path.is_file():
            raise EvalError(f"{path}: no such file" if not path.exists() else f"{path}: not a file")
        with path.open("rb", buffering=0) as plain:
            opener = _choose_opener(plain.read(10) or b"", path.suffix.lower())
            size = plain.seek(0, io.SEEK_END)
            plain.seek(0)
            if opener is None:
                with io.BufferedReader(plain) as file:
                    yield file
                return
            capped = partial(_Capped, most=limit_unpacked(size), path=path)
            with opener(plain) as packed, io.BufferedReader(capped(packed), 1 << 20) as file:
                yield file
    except (EvalError, UnicodeError):
        raise
    except (OSError, EOFError) as wrong:
        raise EvalError(f"{path}: cannot be read: {getattr(wrong, 'strerror', None) or wrong}") from wrong
    except Exception as wrong:
        if type(wrong).__module__.partition(".")[0] in UNPACKERS:  # their errors have no common class but Exception
            raise EvalError(f"{path}: cannot be unpacked: {wrong}") from wrong
        raise


def find_packing(path: Path) -> str:
    """Find by what a file is compressed, as the suffix of such files; empty if it is not."""
    with path.open("rb", buffering=0) as file:
        opener = _choose_opener(file.read(10) or b"", path.suffix.lower())
    return next((suffix for suffix, one in PACKED.items() if one is opener), "")


def _choose_opener(head: bytes, suffix: str) -> Callable[[IO[bytes]], IO[bytes]] | None:
    """Choose what decompresses a file: by its first bytes or, if they are neither known nor JSON, by its suffix."""
    known = next((PACKED[suffix] for magic, suffix in MAGIC.items() if head.startswith(magic)), None)
    plain = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
    return known or (None if plain else PACKED.get(suffix))


class LineFault(EvalError):
    """An error in a line of a file, with its number and, if known, the byte."""

    def __init__(self, where: str, line: int, message: str, byte: int = 0) -> None:
        self.line, self.byte = line, byte
        super().__init__(f"{where}:{line}: {message}")


def read_lines(file: IO[bytes], where: str) -> Iterator[bytes]:
    """Read the lines of a file; none may be longer than fits into memory.

    >>> list(read_lines(io.BytesIO(b"1\\n2"), "x.jsonl"))
    [b'1\\n', b'2']
    """
    most = MOST_BYTES
    for number, line in enumerate(iter(partial(file.readline, most + 1), b""), 1):
        if len(line) > most:
            message = (
                f"expected a line of at most {most:,} bytes, found a longer one; write each record in its own line"
            )
            raise LineFault(where, number, message)
        yield line
