"""A batch of answers scored into one small row: what Ray Data, Spark, Daft or Dask call on their workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Unpack

import numpy as np
from msgspec.structs import replace

from evalcore.core.partials.partial import Partial, encode_partial
from evalcore.core.records.array import Array
from evalcore.core.records.errors import EvalError, require
from evalcore.core.records.task import Task
from evalcore.core.tables import Tables
from evalcore.shell.config.values import Names, list_names
from evalcore.shell.run.collector import without_collector
from evalcore.shell.score.hosts.batch_rows import BatchDocuments, read_block
from evalcore.shell.score.recipes import choose_config
from evalcore.shell.score.units.kept import describe_plan, list_makers
from evalcore.shell.score.units.log_plan import ScorePlan, plan_log, select_chosen
from evalcore.shell.score.units.score_keys import NumberKeys, TableKeys, plan_scoring
from evalcore.shell.score.units.unit_score import WorkItem, score_unit

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-untyped]

    from evalcore.shell.score.hosts.batch_rows import Batch

INFERENCE_ERROR = "__inference_error__"
"""The column in which Ray Data LLM says why a row has no answer."""

REFUSED: Mapping[str, str] = {
    "task_column": "score one task at a time, or split its documents by group_by",
    "repeat": "rows of one document may be in several batches; put the repeats into one row, as a list",
    "limit": "batches have no order; limit the rows that are given",
    "tally": "a batch that is scored twice would count twice",
    "keep_going": "a row that cannot be read is an error; filter such rows out",
}


class BatchKeys(TableKeys, total=False):
    """The keys of ``score`` on tables, and a host's own tables."""

    tables: Tables


class ScorePartial:
    """Scores batches of answers: of an Arrow table or record batch it makes a table of one row with a partial.

    ``task`` is a ``Task``, or what ``score`` takes: a task file, its code only with ``trust``; or there is none, and
    ``metric``, ``filter`` and other keys say what to measure. The keys name the columns, as in ``score`` on tables.
    ``id`` is needed: it is what makes a batch that is scored twice count once, and documents are in its order (texts in
    that of their hashes, so bootstraps draw others than in a table as it is). Rows with a text under ``error``, by
    default what Ray Data LLM writes there, have failed. ``name`` is what the task is called, if not by its own name.

    >>> import pyarrow
    >>> rows = pyarrow.table({"n": [1, 2], "reply": ["4", "5"], "gold": ["4", "4"]})
    >>> score = ScorePartial(name="sums", metric="exact_match", answer="reply", gold="gold", id="n")
    >>> score(rows).select(["documents", "failed"]).to_pylist()
    [{'documents': 2, 'failed': 0}]
    """

    def __init__(self, task: Task | Names | None = None, *, name: str | None = None, **keys: Unpack[BatchKeys]) -> None:
        for key, instead in REFUSED.items():
            if keys.get(key):
                raise EvalError(f"{key} is not for batches: {instead}")
        if keys.get("id") is None:
            raise EvalError("expected the column of ids (id=...): batches have no order, so ids tell documents apart")
        self.task, self.name, self.keys = task, name, keys
        self._plan()

    def __getstate__(self) -> dict[str, object]:
        """What goes to a worker: what was given, not what was loaded for it."""
        return {key: vars(self)[key] for key in ("task", "name", "keys")}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        vars(self).update(state)
        self._plan()

    def _plan(self) -> None:
        """Find out here what is wrong with the keys, and load what they name."""
        self._own = self.task if isinstance(self.task, Task) else None
        files = () if self.task is None or isinstance(self.task, Task) else list_names(self.task)
        keys: NumberKeys = {"error": INFERENCE_ERROR, **self.keys, **({"task": files} if files else {})}  # type: ignore[typeddict-unknown-key]
        self._asked: ScorePlan = plan_scoring(keys)  # type: ignore[arg-type]
        selected = select_chosen(self._asked) if files else None
        self._configs: Mapping[str, Mapping[str, object]] = selected.configs if selected else {}
        if selected:
            self._asked = replace(self._asked, code=selected.trusted)
        self._name = self.name or (self._own.name if self._own else next(iter(self._configs), ""))
        if not self._name or len(self._configs) > 1:
            raise EvalError("expected one task with a name, or name=..., what to call it in the results")

    def __call__(self, batch: Batch) -> pyarrow.Table:
        """Score a batch."""
        arrow, mapping = require("pyarrow", "parquet"), self._asked.columns
        if mapping is None or not hasattr(batch, "schema"):
            raise EvalError(f"expected an Arrow table or record batch, got {type(batch).__name__} (batch_format=)")
        if "error" not in self.keys and INFERENCE_ERROR not in batch.schema.names:
            mapping = replace(mapping, error=None)
        with without_collector():
            block = read_block(self._name, batch, mapping, self._own.output_type if self._own else None)
            made = self._score(block) if block.keys else Partial(made=list_makers())
        return arrow.table(
            {"partial": [encode_partial(made)], "documents": [len(block.keys)], "failed": [block.failed]},
            arrow.schema([("partial", arrow.binary()), ("documents", arrow.int64()), ("failed", arrow.int64())]),
        )

    def each(self, batches: Iterable[Batch]) -> Iterator[pyarrow.RecordBatch]:
        """Score batches one by one, as Spark's ``mapInArrow`` wants it."""
        return (row for batch in batches for row in self(batch).to_batches())

    def _score(self, block: BatchDocuments) -> Partial:
        planned = plan_log(block.log, self._asked, choose_config(block.log, self._configs), self._own)
        if planned.whole:
            raise EvalError(f"{self._name}: {planned.whole}; write all rows to a table, and score that")
        return replace(
            score_unit(planned, WorkItem(0, None, ())),
            head=describe_plan(0, planned),
            made=list_makers(),
            places=Array(np.array(block.keys, np.int64)),
            ids=Array(np.array(block.marks, np.int64)),
        )
