"""Files that a task file may name: those of some folders, wherever a ``..`` or a link leads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from evalcore.core.records.errors import EvalError
from evalcore.shell.files.given import parse_path
from evalcore.shell.files.remote_path import RemotePath

Allow = Callable[[Path], Path]
"""Passes a path on, or refuses it with an ``EvalError``."""

OPEN_SCHEMES = frozenset({"http", "https", "hf"})
"""Addresses that anybody may name: what is behind them is not on this machine, nor opened by a user's cloud account."""


def allow_any(path: Path) -> Path:
    """Pass on any path, as of a file that the user named."""
    return path


def find_inside(path: str | Path, folders: Iterable[str]) -> str | None:
    """Resolve a path that lies in one of these folders, or is one of these files; None of any other.

    The folders are given resolved (``os.path.realpath``).

    >>> find_inside("/usr/../usr/lib/x", ["/usr/lib"]), find_inside("/usr/lib/../bin/x", ["/usr/lib"])
    ('/usr/lib/x', None)
    """
    real = os.path.realpath(path)
    return real if any(real == one or real.startswith(one.rstrip("/") + "/") for one in folders) else None


def confine_paths(folders: Sequence[str], advice: str) -> Allow:
    """Refuse paths outside these files and folders; the error names the file, the folders, and ends in the advice."""
    given = [parse_path(one).expanduser() for one in folders]
    real = list(dict.fromkeys(os.path.realpath(one) for one in given if not isinstance(one, RemotePath)))
    stores = [str(one).rstrip("/") for one in given if isinstance(one, RemotePath)]

    def allow(path: Path) -> Path:
        if isinstance(path, RemotePath):
            inside = any(str(path) == one or str(path).startswith(f"{one}/") for one in stores)
            if not inside and path.host[0] not in OPEN_SCHEMES:
                raise _refuse(str(path), [*real, *stores], advice.format(path=path))
        elif find_inside(path, real) is None:
            leads = os.path.realpath(path)
            link = "" if leads == os.path.abspath(path) else f" (which leads to {leads})"
            raise _refuse(f"{path}{link}", [*real, *stores], advice.format(path=leads))
        return path

    return allow


def _refuse(shown: str, folders: Sequence[str], advice: str) -> EvalError:
    where = ", ".join(folders) or "no folder"
    return EvalError(f"a task file names data outside its folders: {shown}; it may name files in {where}. {advice}")
