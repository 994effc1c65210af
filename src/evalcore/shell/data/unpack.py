"""Files as streams of bytes, unpacked on the way, and stopped if they unpack to no end."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, cast

from evalcore.core.records.errors import EvalError, require
from evalcore.shell.data.wire import MOST_BYTES

__all__ = ["PACKED", "LineFault", "lines_of", "open_bytes", "strip_packing"]

FREE_BYTES = 256 << 20
MOST_FOLD = 200
"""A packed file may grow to 256 MB, and beyond that to 200 times its size; real text grows 3 to 20 times."""


def _open_gzip(path: Path) -> IO[bytes]:
    import gzip

    return cast(IO[bytes], gzip.open(path, "rb"))


def _open_bz2(path: Path) -> IO[bytes]:
    import bz2

    return bz2.open(path, "rb")


def _open_xz(path: Path) -> IO[bytes]:
    import lzma

    return lzma.open(path, "rb")


def _open_zstd(path: Path) -> IO[bytes]:
    return cast(IO[bytes], require("zstandard", "zstd").open(path, "rb"))


PACKED: dict[str, Callable[[Path], IO[bytes]]] = {
    ".gz": _open_gzip,
    ".bz2": _open_bz2,
    ".xz": _open_xz,
    ".zst": _open_zstd,
}

MAGIC = {b"\x1f\x8b\x08": ".gz", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
MAGIC |= {b"BZh%d1AY&SY" % level: ".bz2" for level in range(1, 10)}
"""How packed files begin, whatever they are called."""

UNPACKERS = frozenset({"zlib", "lzma", "_lzma", "zstandard"})


def strip_packing(name: str) -> str:
    """A file's name without the suffix of its packing.

    >>> strip_packing("test.jsonl.gz"), strip_packing("test.csv")
    ('test.jsonl', 'test.csv')
    """
    return name[: name.rindex(".")] if Path(name).suffix.lower() in PACKED else name


class _Capped(io.RawIOBase):
    """A stream that refuses to give more than it may."""

    def __init__(self, inner: IO[bytes], most: int, path: Path) -> None:
        self._inner, self._left, self._path = inner, most, path

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer))
        data = self._inner.read(len(view))
        self._left -= len(data)
        if self._left < 0:
            raise EvalError(
                f"{self._path}: unpacks to more than {MOST_FOLD} times its size; unpack it by hand if that is right"
            )
        view[: len(data)] = data
        return len(data)


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The content of a file, unpacked if its first bytes say so; every trouble of reading it names the file."""
    try:
        if not path.is_file():
            raise EvalError(f"{path}: no such file" if not path.exists() else f"{path}: not a file")
        opener = _opener(path)
        if opener is None:
            with open(path, "rb") as plain:
                yield plain
            return
        most = max(FREE_BYTES, MOST_FOLD * path.stat().st_size)
        with opener(path) as packed, io.BufferedReader(_Capped(packed, most, path), 1 << 20) as file:
            yield file
    except (EvalError, UnicodeError):
        raise
    except (OSError, EOFError) as wrong:
        raise EvalError(f"{path}: cannot be read: {getattr(wrong, 'strerror', None) or wrong}") from wrong
    except Exception as wrong:
        if type(wrong).__module__.partition(".")[0] in UNPACKERS:  # their errors share no class but Exception
            raise EvalError(f"{path}: cannot be unpacked: {wrong}") from wrong
        raise


def _opener(path: Path) -> Callable[[Path], IO[bytes]] | None:
    """What unpacks a file: its first bytes say so, or its suffix where they are neither known nor JSON's."""
    with open(path, "rb", buffering=0) as file:
        head = file.read(10)
    known = next((PACKED[suffix] for magic, suffix in MAGIC.items() if head.startswith(magic)), None)
    plain = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
    return known or (None if plain else PACKED.get(path.suffix.lower()))


class LineFault(EvalError):
    """What is wrong with a line of a file, with its number and, where it is known, the byte."""

    def __init__(self, where: str, line: int, told: str, byte: int = 0) -> None:
        self.line, self.byte = line, byte
        super().__init__(f"{where}:{line}: {told}")


def lines_of(file: IO[bytes], where: str) -> Iterator[bytes]:
    """The lines of a file, none of them longer than may be held in memory.

    >>> list(lines_of(io.BytesIO(b"1\\n2"), "x.jsonl"))
    [b'1\\n', b'2']
    """
    most = MOST_BYTES
    for number, line in enumerate(iter(partial(file.readline, most + 1), b""), 1):
        if len(line) > most:
            told = f"expected a line of at most {most:,} bytes, found a longer one; write each record in its own line"
            raise LineFault(where, number, told)
        yield line
