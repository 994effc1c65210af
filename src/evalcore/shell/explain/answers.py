"""Which documents of two logs were answered the same, found with as little decoding as possible."""

from __future__ import annotations

from collections.abc import Mapping, Set
from types import MappingProxyType

from evalcore.core.records.request import Failure, Reply
from evalcore.shell.explain.agreement import list_said_texts
from evalcore.shell.logs.log import AnswerHashes, Logged, LogTask, Picks


def hash_answers(
    a: LogTask, b: LogTask, raw: tuple[AnswerHashes | None, AnswerHashes | None]
) -> tuple[AnswerHashes, AnswerHashes]:
    """The documents of two logs: enough to see whether answers and extracted texts are the same.

    Where hashes of the bytes of rows are known, only documents are decoded whose bytes differ.
    """
    alike = a.output_type == b.output_type and a.config.get("repeats") == b.config.get("repeats")
    before, after = raw
    if before is None or after is None or not alike:
        return _hash_log(a, None), _hash_log(b, None)
    none: Mapping[int, int] = {}
    apart = _find_apart(before.answers, after.answers)
    for name in {*before.kept, *after.kept}:
        apart |= _find_apart(before.kept.get(name, none), after.kept.get(name, none))
    return _hash_log(a, apart, before), _hash_log(b, apart, after)


def _find_apart(a: Mapping[int, int], b: Mapping[int, int]) -> set[int]:
    return {key for key, _ in a.items() ^ b.items()}


def pick_documents(wanted: Set[int], hashes: AnswerHashes | None) -> Picks:
    """Pick documents by number; hashes tell where the last of them is."""
    lines: Mapping[int, int] = {} if hashes is None else hashes.lines
    last = max((lines[key] for key in wanted), default=None) if lines else None
    return Picks(lambda number, name: number in wanted, last)


def _hash_log(log: LogTask, wanted: set[int] | None, raw: AnswerHashes | None = None) -> AnswerHashes:
    answers: dict[int, int] = {}
    kept: dict[str, dict[int, int]] = {}
    found = log.rows() if wanted is None else log.read_some(pick_documents(wanted, raw)) if wanted else ()
    for row in found:
        if isinstance(row, Logged) and (wanted is None or row.doc_id in wanted):
            answers[row.doc_id] = _hash_answers(row)
            for name in row.kept:
                kept.setdefault(name, {})[row.doc_id] = hash(list_said_texts(row, name))
    return AnswerHashes(MappingProxyType(answers), MappingProxyType(kept))


def _hash_answers(row: Logged) -> int:
    """A hash of a document's replies; the same for all documents without any."""
    plain = [[_strip_reply(reply) for reply in replies] for replies in row.replies]
    known = any(reply is not None for replies in plain for reply in replies)
    return hash(repr(plain if known else []))  # of what is written: the hash of -1.0 is that of -2.0


def _strip_reply(reply: Reply | None) -> object:
    """A reply without what only some logs have: tokens of a likelihood, the reason of a failure."""
    if isinstance(reply, tuple):
        return float(reply[0]), bool(reply[1])
    return None if isinstance(reply, Failure) else reply
