"""One document of a log, found by its own id, its number, a name in its data, or what it says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import msgspec
from msgspec.structs import replace

from evalcore.core.records.document import DocumentRow, decode_doc
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Answer, Generate, Instance, Reply, Request, Sample
from evalcore.shell.logs.json_records import Record, read_records
from evalcore.shell.logs.lm_eval.forms import read_place
from evalcore.shell.logs.lm_eval.rows import read_row, read_value
from evalcore.shell.logs.log import Logged, LogTask, Picks, Problem
from evalcore.shell.logs.runs.identity import hash_content

OWN = ("id", "_id", "uid", "question_id", "task_id", "qid", "key", "idx")
"""Fields under which data sets commonly name their documents."""
MARK, NUMBER = "hash:", "#"
SHOWN = 8


def find_document(
    log: LogTask, wanted: str, table: Sequence[DocumentRow] = (), *, intact: bool = False
) -> tuple[Logged, str]:
    """A document and what it was found by: the id that its log gives it, else its number, else a name in its data.

    ``#N`` is a number and nothing else, ``hash:PREFIX`` the hash of what a document says. Of a log that is known to be
    ``intact``, only rows are decoded that may be meant.
    """
    if wanted.startswith(MARK):
        prefix, known = wanted.removeprefix(MARK).lower(), list_hashes(table)
        hashed = [one for one in _read_documents(log) if known.get(one.doc_id, hash_document(one)).startswith(prefix)]
        return _pick_only(log, wanted, hashed), "hash"
    number, called = wanted.removeprefix(NUMBER), []
    numbered: Logged | None = None
    sought = number.encode() if number.isascii() and number.isalnum() else b""
    picks = Picks(lambda key, name: str(key) == number or str(name) == wanted, sought=sought)
    for logged in log.read_some(picks) if intact else _read_documents(log):
        if logged.id is not None and str(logged.id) == wanted:
            called.append(logged)
        if str(logged.doc_id) == number:
            numbered = logged
            if logged.id is None or number != wanted:  # no other document can be meant
                break
    if called:
        return _pick_only(log, wanted, called), "id"
    if numbered is not None:
        return numbered, "number"
    return _pick_only(log, wanted, [one for one in _read_documents(log) if wanted in list_own_ids(one)]), "name"


def add_past(log: LogTask, logged: Logged) -> Logged | None:
    """A document with what its log says came of it; None where that takes the whole log."""
    past = {} if log.past is None else log.past(logged.doc_id)
    return None if past is None else replace(logged, **past)


def list_hashes(table: Sequence[DocumentRow]) -> Mapping[int, str]:
    """Document -> the hash of what it says.

    >>> list_hashes([DocumentRow(7, None, None, "c0ffee", 0)])
    {7: 'c0ffee'}
    """
    return {row.key: row.content for row in table}


def _read_documents(log: LogTask) -> Iterator[Logged]:
    return (one for one in log.rows() if not isinstance(one, Problem))


def _pick_only(log: LogTask, wanted: str, matches: Sequence[Logged]) -> Logged:
    if len(matches) == 1:
        return matches[0]
    if matches:
        numbers = ", ".join(f"'{NUMBER}{one.doc_id}'" for one in matches[:SHOWN])
        raise EvalError(f"--doc {wanted}: {len(matches)} documents of {log.name} are called so; say which: {numbers}")
    raise EvalError(f"--doc {wanted}: {log.name} has no such document; {_tell_known(log, wanted)}")


def _tell_known(log: LogTask, wanted: str) -> str:
    """What the log has instead: how many documents, the nearest numbers, a few names."""
    numbers = sorted(one.doc_id for one in _read_documents(log))
    if not numbers:
        return "it has none at all"
    spread = f"it has {len(numbers):,} documents, numbered {numbers[0]} to {numbers[-1]}"
    number = wanted.removeprefix(NUMBER)
    if number.removeprefix("-").isdecimal() and len(number) < 20:
        near = sorted(numbers, key=lambda at: abs(at - int(number)))[:3]
        return f"{spread}; the nearest are {', '.join(map(str, near))}"
    names = [name for one in islice(_read_documents(log), SHOWN) for name in list_own_ids(one)[:1]]
    return spread + (f"; some of their own names: {', '.join(names)}" if names else "; none has a name of its own")


def list_own_ids(logged: Logged) -> tuple[str, ...]:
    """What a document calls itself.

    >>> list_own_ids(Logged(doc_id=0, doc=b'{"question_id": "q7", "text": "?"}', gold="4"))
    ('q7',)
    """
    doc = decode_doc(build_sample(logged))
    fields = [doc[name] for name in OWN if name in doc] if isinstance(doc, Mapping) else []
    named = [one for one in (logged.id, *fields) if isinstance(one, str | int) and not isinstance(one, bool)]
    return tuple(dict.fromkeys(map(str, named)))


def hash_document(logged: Logged) -> str:
    """The hash of what a document says, the same in every log of it.

    >>> one, two = (Logged(doc_id=0, doc=doc, gold=4) for doc in (b'{"a": 1, "b": 2}', b'{"b":2, "a":1}'))
    >>> hash_document(one) == hash_document(two)
    True
    """
    return hash_content(decode_doc(build_sample(logged)), logged.gold)


def hash_row(files: Sequence[Path], doc_id: int) -> str | None:
    """The hash of what the first row of a document says; None if sample logs have none of it."""
    for path in files:
        for at in read_records(path):
            if not isinstance(at, Record) or b"%d" % doc_id not in at.data:
                continue
            place = read_place(at.data)
            row = read_row(at.data, at.line, str(path)) if place is None or place.doc_id == doc_id else None
            if row is not None and row.key == doc_id:
                return hash_content(read_value(row.fields, "doc"), read_value(row.fields, "target"))
    return None


def build_sample(logged: Logged) -> Sample:
    """The document as scoring takes it."""
    return Sample(
        logged.doc_id,
        logged.gold,  # type: ignore[arg-type]  # whatever it is: scoring says so where it cannot be a gold
        logged.choices,
        logged.doc if isinstance(logged.doc, bytes) else msgspec.json.encode(logged.doc),
        logged.id,
        logged.cluster,
    )


def build_answers(task: str, logged: Logged) -> tuple[Answer, ...]:
    """What was asked and replied, as scoring takes it."""
    return tuple(
        Answer(Instance(task, logged.doc_id, i, request, len(replies)), replies)
        for i, (request, replies) in enumerate(pair_replies(logged))
    )


def pair_replies(logged: Logged) -> list[tuple[Request, tuple[Reply, ...]]]:
    """Every request with its replies; an empty one for each where a log does not say what was asked.

    >>> pair_replies(Logged(doc_id=0, doc=b"{}", gold="4", replies=(("4",),)))
    [(Generate(prompt='', options=pmap({})), ('4',))]
    """
    asked = logged.requests or (Generate(""),) * len(logged.replies)
    return list(zip(asked, logged.replies, strict=False))
