"""What every reader of recorded answers gives: a task of a log, and its documents as they were asked and answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import force_setattr

from evalcore.core.records.request import OutputType, Reply, Request

__all__ = ["LogTask", "Logged", "Problem"]


NOTHING: Mapping[str, object] = MappingProxyType({})


class Problem(Struct, frozen=True):
    """A record that could not be read: where it is, what was expected and what was found.

    >>> Problem(Path("a.csv"), 7, 0, "").place, Problem(Path("a.parquet"), 7, 0, "", item=True).place
    ('a.csv:7', 'a.parquet: item 7')
    """

    path: Path
    line: int
    byte: int
    message: str
    item: bool = False

    @property
    def place(self) -> str:
        """The file and the line; where a file has no lines, the number of the record."""
        return f"{self.path}: item {self.line}" if self.item else f"{self.path}:{self.line}"


class Logged(Struct, frozen=True, kw_only=True, gc=False):
    """One document of a log. ``replies`` has the replies of each request in order, one per repeat.

    ``scores`` and ``kept`` are what the log says came of them, by ``metric,filter`` and by filter. ``path`` is the file
    of ``line`` where a task may have several, else None: the task's own.
    """

    doc_id: int
    doc: bytes
    gold: object
    choices: tuple[str, ...] = ()
    requests: tuple[Request, ...] = ()
    replies: tuple[tuple[Reply, ...], ...] = ()
    id: int | str | None = None
    cluster: int | str | None = None
    scores: Mapping[str, object] = NOTHING
    kept: Mapping[str, object] = NOTHING
    line: int = 0
    path: Path | None = None


class LogTask(Struct, frozen=True, kw_only=True):
    """A task of a log: its name, what is known of its config, and a way to go through its documents, again and again.

    ``paths`` are all of its files, of which ``path`` is the first.
    ``written`` are fields of its documents that the model or a scorer wrote: what is written down again lacks them.
    ``rows`` yields documents and, under ``--keep-going``, the problems it met on the way; else it raises the first.
    """

    name: str
    path: Path
    output_type: OutputType
    rows: Callable[[], Iterator[Logged | Problem]]
    config: Mapping[str, object] = field(default_factory=dict)
    results: Mapping[str, object] = field(default_factory=dict)
    source: str = "lm-eval"
    warnings: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()
    written: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not self.paths:
            force_setattr(self, "paths", (self.path,))
