"""What the columns of a plain table hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypedDict

from msgspec.structs import asdict

from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.frozen_dict import FrozenRecord
from evalcore.shell.config.values import Names, list_names


class ColumnKeys(TypedDict, total=False):
    """The columns of plain tables (JSONL, CSV, Parquet)."""

    answer: str | None
    gold: str | None
    id: str | None
    choices: str | None
    loglikelihoods: str | None
    repeat: str | None
    prompt: str | None
    error: str | None
    task_column: str | None
    score: Names


class ColumnMap(FrozenRecord, frozen=True, kw_only=True):
    """The columns of a plain table by what they hold; None for what is missing.

    ``repeat`` numbers the rows of one ``id``; ``score`` is a recorded score, ``more_scores`` are others. ``error`` says
    why a row has no answer, and is empty if it has one.
    """

    answer: str | None = None
    gold: str | None = None
    id: str | None = None
    choices: str | None = None
    loglikelihoods: str | None = None
    repeat: str | None = None
    score: str | None = None
    prompt: str | None = None
    error: str | None = None
    task: str | None = None
    cluster: str | None = None
    more_scores: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.repeat is not None and self.id is None:
            raise EvalError(f"expected id with repeat ({self.repeat!r}): the column that rows of one document share")
        if self.repeat is not None and self.more_scores:
            names = ", ".join(self.scores)
            raise EvalError(f"expected one --score where rows are repeats (--repeat), got {names}")

    @property
    def scores(self) -> tuple[str, ...]:
        """Every column of scores."""
        return self.more_scores if self.score is None else (self.score, *self.more_scores)

    @property
    def alone(self) -> bool:
        """Whether a log-likelihood may be that of a text, in no list: there are no choices, and no answers."""
        return self.choices is None and self.answer is None

    @property
    def columns(self) -> tuple[str, ...]:
        """Every declared column."""
        return (*self.named.values(), *self.more_scores)

    @property
    def written(self) -> frozenset[str]:
        """The columns that the model or a scorer wrote, or that number repeats; they are not part of a document.

        >>> sorted(ColumnMap(answer="reply", gold="target", score="correct").written)
        ['correct', 'reply']
        """
        asked = {self.gold, self.id, self.choices, self.prompt, self.task, self.cluster}
        told = (self.answer, self.loglikelihoods, self.repeat, self.error, *self.scores)
        return frozenset(name for name in told if name is not None and name not in asked)

    @property
    def named(self) -> dict[str, str]:
        """The name of each declared column by what it holds."""
        return {key: name for key, name in asdict(self).items() if isinstance(name, str)}


def declare_columns(flags: Mapping[str, Any]) -> ColumnMap | None:
    """Read the columns that flags declare (``task_column`` holds the tasks); None if there are none.

    >>> declare_columns({"answer": "reply", "score": ["right", "f1"]}).columns
    ('reply', 'right', 'f1')
    """
    first, *more = list_names(flags.get("score") or ()) or (None,)
    flags = {**flags, "task": flags.get("task_column"), "score": first}
    names = {name: flags.get(name) for name in ColumnMap.__struct_fields__ if name not in ("cluster", "more_scores")}
    return ColumnMap(**names, cluster=flags.get("cluster"), more_scores=tuple(more)) if any(names.values()) else None


def check_columns(mapping: ColumnMap, columns: Collection[str], where: str) -> None:
    """Refuse a mapping that names a missing column, or nothing that could be scored.

    >>> check_columns(ColumnMap(answer="reply"), ["answer", "gold"], "a.jsonl:1")
    Traceback (most recent call last):
    evalcore.EvalError: unknown answer column 'reply'. Known: answer, gold - at a.jsonl:1
    """
    for key, name in (*mapping.named.items(), *(("score", name) for name in mapping.more_scores)):
        if name not in columns:
            raise unknown(f"{key} column", name, columns, f" - at {where}")
    if mapping.answer is None and mapping.loglikelihoods is None and mapping.score is None:
        raise EvalError(
            "expected the column of the answers, of the log-likelihoods or of the scores "
            f"(--answer, --loglikelihoods, --score), got none; columns: {', '.join(columns)} - at {where}"
        )
