"""The flags that say which column of a plain table is what."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalcore.shell.logs.tables.mapping import ColumnMap

__all__ = ["COLUMNS", "columns_of"]

COLUMNS = {
    "answer": "the model's answer, or a list of repeated ones",
    "gold": "the right answer, or a list of right ones, or the number of the right choice",
    "id": "what a document is called",
    "choices": "the list of choices",
    "loglikelihoods": "the list of log-likelihoods, one for each choice",
    "repeat": "the number of the repeat, where each has its own row (needs --id)",
    "prompt": "what the model was asked",
    "task_column": "the task, where a file holds several",
}


def columns_of(given: argparse.Namespace) -> ColumnMap | None:
    """The columns that are declared, None without any."""
    from evalcore.shell.logs.tables.mapping import ColumnMap

    scores = [given.score] if isinstance(given.score, str) else given.score or [None]
    columns = {name.removesuffix("_column"): getattr(given, name) for name in COLUMNS} | {"score": scores[0]}
    if not any(columns.values()):
        return None
    return ColumnMap(**columns, cluster=getattr(given, "cluster", None), more_scores=tuple(scores[1:]))
