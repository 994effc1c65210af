"""References to code that a task file names: where it is and what it is, not yet run."""

from __future__ import annotations

from msgspec import Struct

from evalcore.core.records.errors import EvalError


class FunctionRef(Struct, frozen=True):
    """``!function utils.name`` with the file it refers to and the hash of that file."""

    path: str
    name: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.path}:{self.name}"


class GroupFunction(Struct, frozen=True):
    """A group's own aggregation, until it is trusted and loaded."""

    ref: FunctionRef

    def __call__(self, *args: object) -> object:
        raise EvalError(f"{self.ref} is not trusted: --trust {self.ref.path}")
