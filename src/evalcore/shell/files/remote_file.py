"""The bytes of a file in a store, fetched block by block as they are read."""

from __future__ import annotations

import io
import shutil
from tempfile import TemporaryFile
from typing import Any, cast

from evalcore.shell.files.remote_path import RemotePath

BLOCK = 4 << 20


class RemoteFile(io.RawIOBase):
    """A file of a store, open to be read from any place; a read that fails is tried again where it was.

    A web server may give files in one piece only; such a file is fetched as a whole, to a file without a name.
    """

    def __init__(self, path: RemotePath) -> None:
        self._path, self._at = path, 0
        self._file: Any = path.ask(lambda store, name: store.open(name, "rb", block_size=BLOCK))
        if getattr(self._file, "size", 0) is None:
            self._fetch_whole()
        self._size: int = self._file.seek(0, io.SEEK_END)

    def _fetch_whole(self) -> None:
        def copy(store: Any, name: str) -> Any:
            whole = TemporaryFile()  # noqa: SIM115  # closed with this file
            with store.open(name, "rb", block_size=0) as stream:
                shutil.copyfileobj(stream, whole, BLOCK)
            return whole

        self._file = self._path.ask(copy)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer))
        try:
            data = self._read(len(view))
        except Exception:
            data = self._path.ask(lambda store, name: self._read(len(view)))
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _read(self, count: int) -> bytes:
        try:
            self._file.seek(self._at)
            return cast(bytes, self._file.read(count))
        except ValueError:  # fsspec's word for a server that sends no ranges
            self._fetch_whole()
            self._file.seek(self._at)
            return cast(bytes, self._file.read(count))

    def close(self) -> None:
        if not self.closed and hasattr(self, "_file"):
            self._file.close()
        super().close()
