"""Two runs of one model on two backends: at which stage each document parts first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from evalcore.core.explain.stages import (
    AnsweredDocument,
    Exchange,
    FirstDifference,
    count_stages,
    find_first_difference,
)
from evalcore.core.records.document import digest_requests
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.request import Likelihood, Reply
from evalcore.shell.answerlog.fold import read_log
from evalcore.shell.answerlog.line import LoggedAnswer, name_model
from evalcore.shell.data.wire import decode_line
from evalcore.shell.explain.agreement import list_said_texts
from evalcore.shell.explain.run_source import RunSource
from evalcore.shell.logs.log import Logged, LogTask
from evalcore.shell.models import MODELS

ANSWER_LOG, RUN_FILE = "answers.jsonl", "run.json"


class Parted(Struct, frozen=True):
    """A document by its number on either side, and where the sides part on it first."""

    a: int
    b: int
    first: FirstDifference


class TaskStages(Struct, frozen=True):
    """The documents of a task that part, out of all that both sides have."""

    task: str
    both: int
    parted: tuple[Parted, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Documents by the stage at which they part."""
        return count_stages(one.first for one in self.parted)


class BackendDiff(Struct, frozen=True):
    """Two backends by name, task by task; ``silent`` are sides without an answer log, which alone has token counts
    and finish reasons.
    """

    before: str
    after: str
    tasks: tuple[TaskStages, ...]
    silent: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Documents of all tasks by the stage at which they part."""
        return count_stages(one.first for task in self.tasks for one in task.parted)


AnswerBook = Mapping[tuple[str, int], LoggedAnswer]
"""The answers of a log by the digest of the request and the number of the repeat."""


def name_backend(run: RunSource) -> str:
    """The backend that a run's results name; an empty text where they name none."""
    config = run.recorded.results.get("config") if run.recorded is not None else None
    named = config.get("model") if isinstance(config, Mapping) else None
    return named if isinstance(named, str) else ""


def are_apart(before: str, after: str) -> bool:
    """Whether two names are of different backends.

    >>> are_apart("hf", "llama"), are_apart("hf", "huggingface"), are_apart("", "hf")
    (True, False, False)
    """
    return bool(before and after) and MODELS.get(before, before) != MODELS.get(after, after)


def diff_backends(a: RunSource, b: RunSource, pairs: Mapping[str, Sequence[tuple[int, int]]]) -> BackendDiff:
    """Find for each of these documents of each task where both runs part."""
    books = _read_book(a.path), _read_book(b.path)
    silent = tuple(str(run.path) for run, book in zip((a, b), books, strict=True) if book is None)
    tasks = tuple(_diff_task(a.log(name), b.log(name), name, some, books) for name, some in pairs.items())
    return BackendDiff(name_backend(a), name_backend(b), tasks, silent)


def _diff_task(
    a: LogTask,
    b: LogTask,
    name: str,
    pairs: Sequence[tuple[int, int]],
    books: tuple[AnswerBook | None, AnswerBook | None],
) -> TaskStages:
    before, after = (_read_documents(log, book or FrozenDict()) for log, book in zip((a, b), books, strict=True))
    known = [(one, two) for one, two in pairs if one in before and two in after]
    found = ((one, two, find_first_difference(before[one], after[two])) for one, two in known)
    return TaskStages(name, len(known), tuple(Parted(one, two, first) for one, two, first in found if first))


def _read_documents(log: LogTask, book: AnswerBook) -> dict[int, AnsweredDocument]:
    rows = (row for row in log.rows() if isinstance(row, Logged))
    return {row.doc_id: AnsweredDocument(_list_exchanges(row, book), _list_kept(row)) for row in rows}


def _list_kept(row: Logged) -> FrozenDict[str, tuple[str, ...]]:
    return FrozenDict({name: list_said_texts(row, name) or () for name in row.kept})


def _list_exchanges(row: Logged, book: AnswerBook) -> tuple[Exchange, ...]:
    out = list[Exchange]()
    replies = row.replies if row.replies else ((),) * len(row.requests)
    for request, digest, some in zip(row.requests, digest_requests(row.requests), replies, strict=False):
        for repeat, reply in enumerate(some or (None,)):
            known = book.get((digest, repeat))
            if known is None:
                out.append(Exchange(request, reply))
            else:
                read = known.spent.prompt if known.spent is not None else None
                out.append(Exchange(request, _count_reply(reply, known.reply), known.finish, read))
    return tuple(out)


def _count_reply(reply: Reply | None, logged: Reply) -> Reply | None:
    """A reply of a sample log; a likelihood with the tokens that the answer log counted."""
    if isinstance(reply, tuple) and isinstance(logged, Likelihood):
        return Likelihood(float(reply[0]), bool(reply[1]), logged.tokens)
    return logged if reply is None else reply


def _read_book(path: Path) -> AnswerBook | None:
    """The answers in the log of a run's folder, those of the run's own model; None without a log."""
    folder = path if path.is_dir() else path.parent
    if not (folder / ANSWER_LOG).is_file():
        return None
    state, mine = read_log(folder / ANSWER_LOG), _find_model(folder / RUN_FILE)
    own = (one for one in state.answers.values() if not mine or not one.model or one.model == mine)
    return {(one.request, one.repeat): one for one in own}


def _find_model(path: Path) -> str:
    """The short name of the model that a run names as its own."""
    if not path.is_file():
        return ""
    read = decode_line(path.read_bytes(), str(path))
    identity = read.get("model_identity") if isinstance(read, dict) else None
    return name_model(identity) if isinstance(identity, str) else ""
