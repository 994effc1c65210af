"""The state of a run as a fold over the lines of its answer log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.shell.answerlog.line import (
    FORMAT,
    HEADER,
    VERSION,
    Line,
    LoggedAnswer,
    ModelLine,
    decode_record,
    is_intact,
)
from evalcore.shell.files.given import parse_path

MOST_PROBLEMS = 100
CONFLICT = "another reply to a question answered before; the later one counts"


class LogState(Struct, frozen=True):
    """The content of a log.

    ``answers``: the last valid record of each key, where a success outranks any failure and a withdrawn record is as if
    it had never been; ``superseded``: the others, which were paid for as well. ``models``: identities by short name.
    ``problems``: damaged lines and conflicts, by line. ``torn``: a last line that was left half written.
    ``whole``: the number of bytes before that; ``ends``: whether they end in a newline.
    """

    answers: FrozenDict[str, LoggedAnswer] = FrozenDict()
    models: FrozenDict[str, str] = FrozenDict()
    problems: tuple[str, ...] = ()
    torn: bytes = b""
    whole: int = 0
    ends: bool = True
    superseded: tuple[LoggedAnswer, ...] = ()


def fold_lines(lines: Iterable[bytes], path: str = "answers.jsonl") -> LogState:
    """Fold lines, each with its newline, into a state.

    >>> from evalcore.shell.answerlog.line import encode_record, make_record
    >>> good = encode_record(make_record("k", "r", 0, "m", "four"))
    >>> state = fold_lines([HEADER, good, good.replace(b"four", b"five"), good[:20]])
    >>> state.answers["k"].reply, state.torn
    ('four', b'{"sum":"9114abd3","k')
    >>> print(*state.problems)
    answers.jsonl:3: damaged line (its checksum differs), not used: b'...
    """
    answers: dict[str, LoggedAnswer] = {}
    models: dict[str, str] = {}
    problems: list[str] = []
    superseded: list[LoggedAnswer] = []
    torn, whole, known, ends = b"", 0, False, True
    for number, line in enumerate(lines, 1):
        ends = line.endswith(b"\n")
        try:
            record = _read_record(line[:-1] if ends else line)
        except DamagedLine as wrong:
            if not ends:
                torn, ends = line, True
                break
            problems.append(f"{path}:{number}: {wrong}")
        else:
            known = True
            if isinstance(record, LoggedAnswer):
                if _enter_answer(answers, superseded, record):
                    problems.append(f"{path}:{number}: {CONFLICT} (key {record.key[:12]})")
            elif isinstance(record, ModelLine):
                models[record.model] = record.identity
            elif (record.format, record.version) != (FORMAT, VERSION):
                raise EvalError(f"{path}:{number}: {record.format} {record.version}; expected {FORMAT} {VERSION}")
        whole += len(line)
    if not known and (problems or not HEADER.startswith(torn.rstrip(b"\0"))):
        raise EvalError(f"{path}: not an answer log (no line of it is one); name another file or move this one away")
    told = _cap_problems(problems, path)
    return LogState(FrozenDict(answers), FrozenDict(models), told, torn, whole, ends, tuple(superseded))


class DamagedLine(EvalError):
    """A line that was changed after it was written."""


def _read_record(body: bytes) -> Line:
    if not is_intact(body):
        raise DamagedLine(f"damaged line (its checksum differs), not used: {body[:60]!r}")
    try:
        return decode_record(body)
    except EvalError as wrong:
        raise DamagedLine(f"line not used: {wrong}") from wrong


def _enter_answer(answers: dict[str, LoggedAnswer], superseded: list[LoggedAnswer], new: LoggedAnswer) -> bool:
    """Enter an answer and return whether it contradicts an earlier one; no failure replaces a success."""
    old = answers.get(new.key)
    if new.withdrawn is not None:
        if old is not None:
            superseded.append(answers.pop(new.key))
        return False
    if old is None:
        answers[new.key] = new
        return False
    if new.failure is not None and old.failure is None:
        superseded.append(new)
        return False
    superseded.append(old)
    if old.failure is not None:
        answers[new.key] = new
        return False
    answers[new.key] = new
    return old.said != new.said


def _cap_problems(problems: list[str], path: str) -> tuple[str, ...]:
    more = len(problems) - MOST_PROBLEMS
    return (*problems[:MOST_PROBLEMS], *((f"{path}: and {more:,} more such lines",) if more > 0 else ()))


def read_log(path: str | Path) -> LogState:
    """Read the state of a log file. It takes no lock: a line that is being written appears as torn."""
    try:
        with parse_path(path).open("rb") as file:
            return fold_lines(file, str(path))
    except OSError as wrong:
        raise EvalError(f"{path}: cannot read the answer log: {wrong.strerror}") from wrong
