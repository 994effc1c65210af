"""Laws of merging: any split, order and number of shards gives the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from evalcore.core.answers.group import group_by_doc
from evalcore.core.pipeline import score_doc, score_task
from evalcore.core.records.column import EMPTY, Column, list_outcomes, merge_all, merge_columns
from evalcore.core.records.outcome import NotEmitted
from evalcore.core.records.request import Answer, Sample
from evalcore.core.records.score import Scored, merge_scored
from evalcore.core.records.task import Task
from evalcore.core.tables import EVALCORE, Tables
from evalcore.testing.fingerprints import fingerprint


def check_merge(columns: Sequence[Column]) -> None:
    """Check that merging these columns is associative, commutative and idempotent, with the empty column as identity.

    >>> from evalcore.stats import Array, Floats, build_column
    >>> check_merge([build_column([i], Floats(Array([i / 2]))) for i in range(3)])
    """
    before = fingerprint(columns)
    whole = merge_all(columns)
    ways = {
        "associative (from the left)": reduce(merge_columns, columns, EMPTY),
        "associative (from the right)": reduce(lambda done, one: merge_columns(one, done), columns[::-1], EMPTY),
        "commutative": merge_all(columns[::-1]),
        "idempotent": merge_all([*columns, *columns]),
        "idempotent (with the whole)": merge_columns(whole, merge_all(columns[:1])),
        "with an identity": merge_columns(EMPTY, merge_columns(whole, EMPTY)),
    }
    for law, other in ways.items():
        assert fingerprint(other) == fingerprint(whole), f"merging is {law}: expected {whole}, got {other}"
    assert fingerprint(columns) == before, "merging leaves its parts unchanged"


def check_task(
    task: Task,
    samples: Sequence[Sample],
    answers: Sequence[Answer],
    *,
    tables: Tables = EVALCORE,
    shards: int = 3,
    seed: int = 0,
) -> Scored:
    """Check that scoring gives the same bits whole, shuffled, in small chunks, in shards and document by document.

    Point it at your own task, ``process_results``, metrics or tables; it returns the scores.

    >>> from evalcore import GENERATE_UNTIL, Generate, Instance
    >>> done = [Answer(Instance("t", i, 0, Generate("Q")), ("4",)) for i in range(3)]
    >>> check_task(Task("t", GENERATE_UNTIL), [Sample(i, gold="4") for i in range(3)], done).task.name
    't'
    """
    before = fingerprint((samples, answers))
    whole = score_task(task, samples, answers, tables=tables, keep_replies=True)
    dice = np.random.Generator(np.random.PCG64(seed))
    mixed = [samples[i] for i in dice.permutation(len(samples)).tolist()]
    moved = [answers[i] for i in dice.permutation(len(answers)).tolist()]
    owner = dict(zip([one.doc_id for one in mixed], dice.integers(0, shards, len(mixed)).tolist(), strict=True))
    parts = [
        score_task(
            task,
            [one for one in mixed if owner[one.doc_id] == shard],
            [one for one in moved if owner[one.doc_id] == shard],
            tables=tables,
            keep_replies=True,
        )
        for shard in set(owner.values())
    ]
    ways = {
        "in any order": score_task(task, mixed, moved, tables=tables, keep_replies=True),
        "in chunks of any size": score_task(task, samples, answers, tables=tables, chunk=2, keep_replies=True),
        "in any shards": merge_scored(parts),
        "with the shards in any order": merge_scored(parts[::-1]),
    }
    for law, other in ways.items():
        _check_scores(whole, other, f"a task scores the same {law}")
    _check_documents(task, samples, answers, tables, whole)
    assert fingerprint((samples, answers)) == before, "scoring leaves samples and answers unchanged"
    return whole


def _check_scores(whole: Scored, other: Scored, law: str) -> None:
    wanted, got = ([str(one.key) for one in scored.columns] for scored in (whole, other))
    assert wanted == got, f"{law}: expected {wanted}, got {got}"
    for one, two in zip(whole.columns, other.columns, strict=True):
        assert fingerprint(one) == fingerprint(two), f"{law}: expected {one}, got {two}"
    kept = fingerprint(whole.provenance), fingerprint(other.provenance)
    assert kept[0] == kept[1], f"{law}, replies too: expected {whole.provenance}, got {other.provenance}"


def _check_documents(
    task: Task, samples: Sequence[Sample], answers: Sequence[Answer], tables: Tables, whole: Scored
) -> None:
    by_doc = group_by_doc(answers)
    wanted = {one.key: dict(list_outcomes(one.column)) for one in whole.columns}
    for sample in samples:
        alone = score_doc(task, sample, by_doc.get(sample.doc_id, ()), tables=tables)
        for key, found in wanted.items():
            one, two = found.get(sample.doc_id, NotEmitted()), alone.get(key, NotEmitted())
            assert fingerprint(one) == fingerprint(two), (
                f"a batch scores as its documents do one by one: expected {two}, got {one}"
                f" - at doc {sample.doc_id} {key}"
            )
