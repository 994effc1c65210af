"""What every reader of logs returns: the tasks of a log, and their documents as asked, answered and scored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import force_setattr

from evalcore.core.records.frozen_dict import FrozenDict, freeze_dict
from evalcore.core.records.request import OutputType, Reply, Request
from evalcore.shell.logs.units.unit import UNCUT, Cut

if TYPE_CHECKING:
    from evalcore.core.records.estimate import Estimate
    from evalcore.core.records.task import MetricKey
    from evalcore.shell.logs.head import FileHead, LogFile
    from evalcore.shell.logs.lm_eval.results import Results
    from evalcore.shell.logs.tables.column_map import ColumnMap

    Numbers = Iterable[tuple[MetricKey, Estimate]]

NOTHING: Mapping[str, object] = FrozenDict()
RECORDED = "scores as they were recorded (evalcore score --score)"
"""Replaces missing code in the config of a task that was scored by recorded scores, so that they stand again."""


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
        """The file and the line, or the number of the record in a file without lines."""
        return f"{self.path}: item {self.line}" if self.item else f"{self.path}:{self.line}"


class Logged(Struct, frozen=True, kw_only=True, gc=False):
    """One document of a log. ``replies`` has the replies of each request in order, one per repeat.

    ``scores`` and ``kept`` are what the log says came of them, by ``metric,filter`` and by filter, as decoded:
    freezing them would slow down every row. ``path`` is the file of ``line`` where a task may have several, else None:
    the task's own.
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


class Picks(Struct, frozen=True):
    """Some documents of a log: ``fits`` takes the number of a document and the id that its log declares.

    None is after line ``last``, and the row of each has the bytes ``sought``, where these are known.
    """

    fits: Callable[[int, object], bool]
    last: int | None = None
    sought: bytes = b""


class AnswerHashes(Struct, frozen=True):
    """Documents of a log by number: a hash of the answers, and by filter one of what it left of them.

    ``lines`` has the last line of each, where that is known.
    """

    answers: Mapping[int, int]
    kept: Mapping[str, Mapping[int, int]]
    lines: Mapping[int, int] = FrozenDict()


class Epochs(Struct, frozen=True):
    """How often a harness asked each document, and the reducers that combined its scores, under our names.

    ``strange`` are its reducers without an equivalent here.
    """

    count: int = 1
    reducers: tuple[str, ...] = ("mean",)
    strange: tuple[str, ...] = ()


class Opening(Struct, frozen=True, kw_only=True):
    """How to open logs.

    ``columns`` declares what plain tables hold. With ``scores``, documents include their logged scores, even if these
    must be held in memory; without ``requests``, they omit what was asked and are read faster. ``results_in`` returns
    the results files of a folder, each read once.
    """

    columns: ColumnMap | None = None
    scores: bool = False
    requests: bool = True
    results_in: Callable[[Path], Results] = lambda folder: ()  # never sent to a worker


# Functions, not lambdas: tasks of logs are sent to workers.


def _recognise_none(head: FileHead) -> bool:
    return False


def _open_none(files: Sequence[LogFile], opening: Opening) -> Sequence[LogTask]:
    return ()


def _have_all(file: LogFile, columns: ColumnMap) -> bool:
    return True


def _cover_none(names: Sequence[str]) -> bool:
    return False


def _tell_none(log: LogTask, name: str, estimates: Numbers) -> tuple[str, ...]:
    return ()


class Reader(Struct, frozen=True, kw_only=True):
    """A format of logs: how to recognise and open it, and what holds for all its logs.

    ``recognises`` looks at the beginning of a file; readers are asked in their ``order``, then by name.
    ``opens`` returns the tasks of one file or, if files may be ``shards`` of one task, of all files together.
    ``title`` is what messages call such a log.
    ``tabular`` formats are opened only where columns are declared, which name their scores, too; a folder's files only
    if ``has_columns`` says that these are there.
    ``results_beside`` is whether results in lm-eval's form, with the rules of the tasks, may lie beside a log.
    ``harness`` is who recorded the scores of a log, which then stand where no flag names others; empty if they do not.
    ``sample_rows`` is whether a log has lm-eval's rows, with scores under the names of their metrics; of other formats
    documents have the scores that scoring gives. ``tell_numbers`` says where the numbers of a task differ from those
    that its log ``recorded``.
    """

    recognises: Callable[[FileHead], bool] = _recognise_none
    opens: Callable[[Sequence[LogFile], Opening], Sequence[LogTask]] = _open_none
    order: int = 0
    title: str = "a log of another format"
    shards: bool = False
    tabular: bool = False
    has_columns: Callable[[LogFile, ColumnMap], bool] = _have_all
    results_beside: bool = False
    harness: str = ""
    sample_rows: bool = False
    tell_numbers: Callable[[LogTask, str, Numbers], tuple[str, ...]] = _tell_none


class LogTask(Struct, frozen=True, kw_only=True):
    """A task of a log: its name, what is known of it, and a function that reads its documents any number of times.

    ``paths`` are its files; ``path`` is the first.
    ``config`` is the task's config and ``results`` the results of its run, in lm-eval's form; ``model`` has the
    ``model``, its ``model_args`` and its ``model_name``.
    ``written`` are the fields of documents that the model or a scorer wrote; they are not written again.
    ``rows`` yields documents and, under ``--keep-going``, problems; otherwise it raises the first problem.
    ``some`` reads the documents that are picked, and maybe others; it is None where that is not quicker than ``rows``.
    ``past`` finds what came of one document where ``rows`` was not asked for it; it is None where rows have it anyway,
    and gives None where that takes the whole log.
    ``covers`` is whether these are all scores that the log has, as far as its header tells; ``recorded`` is what its
    reader needs to compare numbers with.
    ``usual`` are the metrics of its answers where nothing names any, if not those of their kind; ``pointed`` finds the
    directions that the log declares of its recorded scores. ``cut`` says how its documents are read in parts.
    """

    name: str
    path: Path
    output_type: OutputType
    rows: Callable[[], Iterator[Logged | Problem]]
    some: Callable[[Picks], Iterator[Logged | Problem]] | None = None
    reader: Reader = Reader()
    config: Mapping[str, object] = NOTHING
    results: Mapping[str, object] = NOTHING
    model: Mapping[str, object] = NOTHING
    epochs: Epochs = Epochs()
    usual: tuple[str, ...] = ()
    pointed: Callable[[], Mapping[str, bool]] = FrozenDict
    warnings: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()
    written: frozenset[str] = frozenset()
    past: Callable[[int], Mapping[str, Mapping[str, object]] | None] | None = None
    covers: Callable[[Sequence[str]], bool] = _cover_none
    recorded: Mapping[str, object] = NOTHING
    cut: Cut = UNCUT

    def read_some(self, picks: Picks) -> Iterator[Logged]:
        """Read documents that are picked, and maybe others; under ``--keep-going`` problems are left out."""
        rows = self.rows() if self.some is None else self.some(picks)
        return (one for one in rows if isinstance(one, Logged))

    def __post_init__(self) -> None:
        if not self.paths:
            force_setattr(self, "paths", (self.path,))
        for name in ("config", "results", "model", "recorded"):
            given = getattr(self, name)
            if not isinstance(given, FrozenDict):  # which the tasks of one run share, too large to walk for each
                force_setattr(self, name, freeze_dict(given))

    def tell_numbers(self, name: str, estimates: Numbers) -> tuple[str, ...]:
        """Say where the numbers of a task of this name differ from those that were recorded."""
        return self.reader.tell_numbers(self, name, estimates)
