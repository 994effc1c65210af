"""What the verbs on recorded runs share: the flags that say how to read runs, and the reading."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from evalcore.core.records.errors import EvalError

if TYPE_CHECKING:
    from evalcore.core.compare.lines import Side
    from evalcore.shell.logs.runs.run_record import Recorded
if TYPE_CHECKING:
    from evalcore.shell.logs.tables.column_map import ColumnMap

__all__ = ["COLUMNS", "add_choice", "add_reading", "columns_of", "read_runs", "split_names"]


def add_choice(parser: argparse.ArgumentParser, what: str = "") -> None:
    """Flags that choose numbers."""
    parser.add_argument(
        "--task", action="append", default=[], metavar="GLOB,GLOB", help=f"only these tasks and groups{what}"
    )
    parser.add_argument(
        "--metric", action="append", default=[], metavar="NAME", help=f"only these: acc, or acc,none{what}"
    )


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Flags for what no log tells: what belongs together, what is the same, which way a metric points."""
    parser.add_argument("--cluster", metavar="FIELD", help="documents with the same value there count together")
    parser.add_argument(
        "--match", metavar="FIELD,FIELD", help="documents are the same if these fields are (id, prompt or content)"
    )
    for way, what in (("higher", "more"), ("lower", "less")):
        parser.add_argument(
            f"--{way}_is_better", action="append", default=[], metavar="METRIC", help=f"{what} of it is better"
        )


def split_names(typed: Iterable[str]) -> tuple[str, ...]:
    """Names that were typed one by one, or with commas between.

    >>> split_names(["a,b", "c"])
    ('a', 'b', 'c')
    """
    return tuple(name.strip() for text in typed for name in text.split(",") if name.strip())


def read_runs(given: argparse.Namespace, paths: Sequence[str]) -> tuple[tuple[Recorded, ...], tuple[Side, ...]]:
    """Each run, read once, and its scores as they are compared: counted as the run did, metrics pointing as asked."""
    from evalcore.shell.compare.alike import read_together
    from evalcore.shell.logs.runs.directions import point_sides
    from evalcore.shell.logs.runs.run_record import comparable_side, run_path

    match = split_names([given.match]) if given.match is not None else ()
    if given.match is not None and not match:
        raise EvalError(f"expected --match with a field of the documents, got {given.match!r}")
    runs = read_together([run_path(path) for path in paths], cluster=given.cluster, match=match)
    return runs, point_sides([comparable_side(run) for run in runs], given.higher_is_better, given.lower_is_better)


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
    from evalcore.shell.logs.tables.column_map import ColumnMap

    scores = [given.score] if isinstance(given.score, str) else given.score or [None]
    columns = {name.removesuffix("_column"): getattr(given, name) for name in COLUMNS} | {"score": scores[0]}
    if not any(columns.values()):
        return None
    return ColumnMap(**columns, cluster=getattr(given, "cluster", None), more_scores=tuple(scores[1:]))
