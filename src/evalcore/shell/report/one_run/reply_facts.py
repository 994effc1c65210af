"""What only the replies of a run tell: which of them a filter fell back on, scores by repeat, and confidences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from toolz import partition_all

from evalcore.core.answers.chunk import Chunk, sort_documents
from evalcore.core.answers.filtrate import Filtrate, filter_chunk
from evalcore.core.filters.reply import FELL_BACK
from evalcore.core.pipeline import score_repeats, score_task, tabulate_answers
from evalcore.core.records.array import Floats64, frozen
from evalcore.core.records.column import scored_part
from evalcore.core.records.errors import RAISED
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.request import MULTIPLE_CHOICE
from evalcore.core.records.row import Floats, Stats
from evalcore.core.records.task import MetricKey, MetricSpec, Task
from evalcore.core.tables import EVALCORE, BoundPipeline, Tables, bind_pipelines
from evalcore.shell.explain.lookup import build_answers, build_sample
from evalcore.shell.explain.run_source import find_tables, find_task
from evalcore.shell.logs.log import Logged, LogTask
from evalcore.shell.report.gathered_run import GatheredRun
from evalcore.shell.report.samples.filter_steps import PATIENCE
from evalcore.shell.safety.timer import TimeUp, allow_seconds, run_document

AT_ONCE = 2000
CONFIDENCE_METRIC = MetricSpec("ece")
"""The metric whose rows are (confidence, correct)."""


class ReplyFacts(Struct, frozen=True):
    """Facts of a task: documents with a fallback by filter, scores of each repeat by metric, confidences.

    ``repeats`` has a row per document and a column per repeat, NaN where there is no score; ``chances`` has rows of
    (confidence, correct).
    """

    fell_back: Mapping[str, int] = FrozenDict()
    repeats: Mapping[MetricKey, Floats64] = FrozenDict()
    chances: Floats64 | None = None


def gather_reply_facts(run: GatheredRun) -> dict[str, ReplyFacts]:
    """Read every log of a run once more for what its scores do not tell."""
    tables = find_tables(run.source)[0]
    return {log.name: _gather_facts(log, find_task(run.source, log), tables) for log in run.source.logs}


def _gather_facts(log: LogTask, task: Task | None, tables: Tables) -> ReplyFacts:
    if task is None or task.process_results is not None:  # which is code that is not here
        return ReplyFacts()
    fell: dict[str, int] = {}
    repeats: dict[MetricKey, list[Floats64]] = {}
    chances: list[Floats64] = []
    rows = (row for row in log.rows() if isinstance(row, Logged))
    try:
        pipelines = bind_pipelines(task, tables)
        for some in partition_all(AT_ONCE, rows):
            several = any(len(replies) > 1 for row in some for replies in row.replies)
            for bound, left, chunk in _filter_rows(task, pipelines, some):
                fell[bound.pipeline.name] = fell.get(bound.pipeline.name, 0) + _count_fallbacks(left)
                for key, matrix in _score_each_repeat(bound, left, chunk) if several else ():
                    repeats.setdefault(key, []).append(matrix)
            chances += _find_chances(task, some)
    except RAISED:  # a rule that is not here, or does not fit what was logged: its numbers stand as they are
        return ReplyFacts(fell_back=fell)
    except TimeUp:  # a filter that is stuck: how often it fell back is not known
        return ReplyFacts()
    return ReplyFacts(
        {name: count for name, count in fell.items() if count},
        {key: _stack(parts) for key, parts in repeats.items()},
        np.concatenate(chances) if chances else None,
    )


def _filter_rows(
    task: Task, pipelines: Sequence[BoundPipeline], rows: Sequence[Logged]
) -> Iterator[tuple[BoundPipeline, Filtrate, Chunk]]:
    docs, keys = sort_documents(task, map(build_sample, rows))
    table = tabulate_answers((one for row in rows for one in build_answers(task.name, row)), keep_requests=True)
    for bound in pipelines:
        chunk = Chunk(bound, docs, keys, table)
        with allow_seconds(PATIENCE):
            left = run_document(filter_chunk, chunk)
        yield bound, left, chunk


def _count_fallbacks(left: Filtrate) -> int:
    """How many documents have a reply that is a fallback."""
    ends = np.concatenate([[0], np.cumsum(left.units)])
    fell = np.concatenate([[0], np.cumsum(left.replies.rules == FELL_BACK)])
    return int(np.count_nonzero(np.diff(fell[left.replies.offsets[ends]])))


def _score_each_repeat(bound: BoundPipeline, left: Filtrate, chunk: Chunk) -> Iterator[tuple[MetricKey, Floats64]]:
    """The scores of each metric, a row per document and a column per repeat."""
    _, scores = score_repeats(bound, left, chunk.table)
    names = dict.fromkeys(one.name for repeat in scores for one in repeat if isinstance(one.column.rows, Floats))
    for name in names:
        out = np.full((len(left.keys), len(scores)), np.nan)
        for at, repeat in enumerate(scores):
            for one in repeat:
                if one.name == name and isinstance(one.column.rows, Floats):
                    known = scored_part(one.column)
                    out[np.searchsorted(left.keys, known.keys.ints), at] = _list_floats(known.rows)
        yield MetricKey(name, bound.pipeline.name), out


def _list_floats(rows: object) -> Floats64:
    return rows.values.floats if isinstance(rows, Floats | Stats) else np.zeros(0)


def _stack(parts: Iterable[Floats64]) -> Floats64:
    """Stack rows of different lengths; what is missing is NaN."""
    given = list(parts)
    width = max(part.shape[1] for part in given)
    wide = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=np.nan) for part in given]
    return frozen(np.concatenate(wide)).floats


def _find_chances(task: Task, rows: Sequence[Logged]) -> list[Floats64]:
    """The confidence in the choice that was taken, and whether it was right, of documents with likelihoods."""
    if task.output_type != MULTIPLE_CHOICE:
        return []
    plain = Task(task.name, task.output_type, metrics=(CONFIDENCE_METRIC,))
    answers = (one for row in rows for one in build_answers(task.name, row))
    scored = score_task(plain, map(build_sample, rows), answers, tables=EVALCORE)
    found = (scored_part(one.column).rows for one in scored.columns)
    return [some for one in found if len(some := _list_floats(one))]
