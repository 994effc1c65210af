"""A file or folder of a store as a path. What a path can say of itself it says as every path does.

universal_pathlib has such paths, too; but those are no ``Path``, show their credentials, and try nothing again.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from evalcore.core.records.errors import EvalError
from evalcore.shell.files.address import Address
from evalcore.shell.files.faults import ask_store
from evalcore.shell.files.stores import Store, connect, find_store

if TYPE_CHECKING:
    LocalPath = Path
else:
    LocalPath = type(Path())

Result = TypeVar("Result")

VERSION = ("ETag", "etag", "generation", "size", "LastModified", "mtime", "created")

_users: dict[tuple[str, str], str] = {}


class RemotePath(LocalPath):
    """A path like ``/s3:/bucket/key``, shown as ``s3://bucket/key``.

    Nothing secret is part of it: who signs in to a host is held by this process, and a query by this path alone.
    """

    query = ""
    kind = ""
    """``file`` or ``directory``, as a listing said, or the store when it was asked."""

    @staticmethod
    def at(address: Address) -> RemotePath:
        """The path of an address."""
        made = RemotePath(f"/{address.scheme}:/{address.place}")
        made.query = address.query
        if address.user:
            _users[made.host] = address.user
        return made

    # --- as other paths ---------------------------------------------------------------------------------------------

    @property
    def host(self) -> tuple[str, str]:
        """The scheme, and the host or bucket."""
        scheme, host = (*self.parts[1:3], "", "")[:2]
        return scheme.removesuffix(":"), host

    def __str__(self) -> str:
        return f"{self.host[0]}://{'/'.join(self.parts[2:])}" if len(self.parts) > 1 else "/"

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    def __fspath__(self) -> str:
        raise EvalError(f"{self}: expected a local file here; copy it to this machine")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and (str(self), self.query) == (str(other), other.query)

    def __hash__(self) -> int:
        return hash((str(self), self.query))

    def __truediv__(self, other: str | os.PathLike[str]) -> Any:
        if isinstance(other, RemotePath):
            return other
        return Path(other) if os.path.isabs(other) else super().__truediv__(other)

    def __rtruediv__(self, other: object) -> RemotePath:
        return self

    def __reduce__(self) -> tuple[Callable[[Address], RemotePath], tuple[Address]]:
        return RemotePath.at, (self.address,)

    @property
    def address(self) -> Address:
        """The whole address, with what is secret."""
        return Address(self.host[0], "/".join(self.parts[2:]), _users.get(self.host, ""), self.query)

    def as_posix(self) -> str:
        return str(self)

    def resolve(self, strict: bool = False) -> RemotePath:
        return self

    def absolute(self) -> RemotePath:
        return self

    def expanduser(self) -> RemotePath:
        return self

    # --- the store --------------------------------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """What is known of such stores."""
        return find_store(self.host[0])

    def ask(self, action: Callable[[Any, str], Result]) -> Result:
        """Do something with the file system of the store and the name that this path has there."""
        address = self.address
        user, _, password = map(unquote, address.user.partition(":"))
        secrets = tuple(one for one in (address.user, address.query, password, user) if len(one) > 3)
        return ask_store(self, lambda: action(*connect(address)), secrets)

    def info(self) -> Mapping[str, object]:
        """What the store says of it; a ``FileNotFoundError`` if nothing is there."""
        found: Mapping[str, object] = self.ask(lambda store, name: store.info(name))
        return found

    def version(self) -> str:
        """A text that is another when the file is; empty of no file."""
        try:
            found = self.info()
        except FileNotFoundError:
            return ""
        return " ".join(f"{key}={found[key]}" for key in VERSION if found.get(key) is not None)

    def _find_kind(self) -> str:
        with suppress(FileNotFoundError):
            self.kind = self.kind or str(self.info()["type"])
        return self.kind

    def is_file(self) -> bool:
        return self._find_kind() == "file"

    def is_dir(self) -> bool:
        return self._find_kind() == "directory"

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        return bool(self._find_kind())

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        found = self.info()
        mode = stat.S_IFREG if found["type"] == "file" else stat.S_IFDIR
        size = found.get("size")
        times = (found.get(key) for key in ("LastModified", "mtime", "updated", "created"))
        changed = next((one.timestamp() for one in times if isinstance(one, datetime)), 0.0)
        return os.stat_result((mode, 0, 0, 1, 0, 0, size if isinstance(size, int) else 0, changed, changed, changed))

    # --- folders ----------------------------------------------------------------------------------------------------

    def iterdir(self) -> Generator[RemotePath, None, None]:
        yield from self._list(lambda store, name: {one["name"]: one for one in store.ls(name, detail=True)})

    def glob(self, pattern: str) -> Iterator[RemotePath]:  # type: ignore[override]
        yield from self._list(lambda store, name: store.glob(f"{escape(name)}/{pattern}", detail=True))

    def rglob(self, pattern: str) -> Iterator[RemotePath]:  # type: ignore[override]
        """The files of that name below; a store has no folders of its own."""
        below = self._list(lambda store, name: store.find(name, detail=True))
        yield from (one for one in below if fnmatchcase(one.name, pattern))

    def _list(self, find: Callable[[Any, str], Mapping[str, Mapping[str, object]]]) -> list[RemotePath]:
        if self.store.reads_only:
            return []

        def read(store: Any, name: str) -> list[RemotePath]:
            base = name.rstrip("/") + "/"
            found = {one.removeprefix(base).strip("/"): told for one, told in find(store, name).items()}
            return [self._within(one, told) for one, told in found.items() if one and one != name.strip("/")]

        try:
            return self.ask(read)
        except FileNotFoundError:
            return []

    def _within(self, name: str, told: Mapping[str, object]) -> RemotePath:
        made: RemotePath = self / name
        made.kind = str(told["type"])
        return made

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: a store makes folders of the names of its files."""

    # --- files ------------------------------------------------------------------------------------------------------

    def open(  # type: ignore[override]
        self,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """Open it to be read."""
        from evalcore.shell.files.remote_file import RemoteFile

        raw: Any = RemoteFile(self)
        if buffering == 0:
            return raw  # type: ignore[no-any-return]
        file = io.BufferedReader(raw, 1 << 18)
        return file if "b" in mode else io.TextIOWrapper(file, encoding, errors, newline)

    def put(self, draft: Path) -> None:
        """Put a local file here at once: what was here before stays until the new file is whole."""
        self.store.refuse_writing(self)
        whole = self.store.puts_whole
        part = self if whole else self.with_name(f".{self.name}.part")
        part.ask(lambda store, name: store.put_file(os.fspath(draft), name))
        if not whole:
            self.ask(lambda store, name: store.mv(part.ask(lambda _, temporary: temporary), name))

    def unlink(self, missing_ok: bool = False) -> None:
        self.kind = ""
        try:
            self.ask(lambda store, name: store.rm_file(name))
        except FileNotFoundError:
            if not missing_ok:
                raise
