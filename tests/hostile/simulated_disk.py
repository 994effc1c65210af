"""A disk that fails on request, and that after a crash holds what was synced and a part of the rest."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch


class Crash(BaseException):
    """The power is gone: no handler below may go on as if it were an error."""


class SimulatedDisk:
    """Files below ``folder``, real but for when they are durable. Counts its operations, and fails at a given one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.synced: dict[str, bytes] = {}
        self.renamed: dict[str, bytes | None] = {}
        self._real = {name: getattr(os, name) for name in ("write", "fsync", "ftruncate", "replace")}
        self._operations, self._fault = 0, (-1, "")

    @contextmanager
    def mounted(self, fault: tuple[int, str] = (-1, "")) -> Iterator[None]:
        """Go through this disk; ``fault`` is the number of an operation, and ``crash``, ``full`` or ``broken``."""
        self._operations, self._fault = 0, fault
        with patch.multiple(os, write=self._write, fsync=self._fsync, ftruncate=self._ftruncate, replace=self._replace):
            yield

    def _meets(self) -> str:
        self._operations += 1
        return self._fault[1] if self._operations == self._fault[0] else ""

    def _holds(self, fd: int) -> str:
        path = os.readlink(f"/proc/self/fd/{fd}")
        return path if path.startswith(str(self.folder)) else ""

    def _write(self, fd: int, data: bytes) -> int:
        fault = self._meets() if self._holds(fd) else ""
        if fault:
            self._real["write"](fd, data[: len(data) // 2])
            raise Crash if fault == "crash" else OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return int(self._real["write"](fd, data))

    def _fsync(self, fd: int) -> None:
        path = self._holds(fd)
        fault = self._meets() if path else ""
        if fault == "crash":
            raise Crash
        if fault:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if path and os.path.isdir(path):
            self.renamed = {one: old for one, old in self.renamed.items() if os.path.dirname(one) != path}
        elif path:
            self.synced[path] = Path(path).read_bytes()

    def _ftruncate(self, fd: int, size: int) -> None:
        if self._holds(fd) and self._meets() == "crash":
            raise Crash
        self._real["ftruncate"](fd, size)

    def _replace(self, source: os.PathLike[str], target: os.PathLike[str]) -> None:
        old, new = str(source), str(target)
        inside = new.startswith(str(self.folder))
        if inside and self._meets() == "crash":
            raise Crash
        if inside:
            self.renamed.setdefault(new, Path(new).read_bytes() if os.path.exists(new) else None)
            self.synced[new] = self.synced.pop(old, b"")
        self._real["replace"](source, target)

    def lose_power(self, luck: float) -> None:
        """Leave what a crash may leave: all that was synced, by luck a part of what was not."""
        for path, old in self.renamed.items():
            if luck < 0.5 and old is None:
                Path(path).unlink(missing_ok=True)
            elif luck < 0.5 and old is not None:
                Path(path).write_bytes(old)
                self.synced[path] = old
        self.renamed = {}
        for file in self.folder.rglob("*"):
            if file.is_file():
                self._forget(file, luck)

    def _forget(self, file: Path, luck: float) -> None:
        now, durable = file.read_bytes(), self.synced.get(str(file), b"")
        if now.startswith(durable):
            file.write_bytes(now[: len(durable) + int(luck * (len(now) - len(durable)))])
        elif luck < 0.5:  # it was cut after the last sync
            file.write_bytes(durable)
        self.synced[str(file)] = file.read_bytes()
