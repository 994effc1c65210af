"""From a batch to scores: the metrics of each output type, and the scorers that ask them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec
import numpy as np
from pyrsistent import PMap, pmap

from evalcore.core.answers.batch import Batch, Problems, make_batch, split_documents, take_documents
from evalcore.core.answers.choice import MCBatch, mc_batch
from evalcore.core.answers.kind import AnyBatch, Build
from evalcore.core.answers.likelihood import LLBatch, RollingBatch, ll_batch, rolling_batch
from evalcore.core.answers.result import GenResult, LLResult, MCResult, Result, RollingResult
from evalcore.core.answers.text import GenBatch, gen_batch
from evalcore.core.metrics.choice import CHOICE_METRICS
from evalcore.core.metrics.custom import OWN, own_metric
from evalcore.core.metrics.form import EVERY, Records
from evalcore.core.metrics.likelihood import LIKELIHOOD_METRICS, ROLLING_METRICS
from evalcore.core.metrics.metric import Emitted, Marks, Metric, score_column
from evalcore.core.metrics.text import TEXT_METRICS
from evalcore.core.records.column import Column, emitted_part, merge_all
from evalcore.core.records.errors import RAISED, EntryError, EvalError, blame_entry, fails_alike, place, unknown
from evalcore.core.records.outcome import UNSCORABLE
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    Options,
    OutputType,
)
from evalcore.core.records.row import Floats, Labels, Objects, Stats, blank_rows
from evalcore.core.records.task import MetricSpec, Task

AnyMetric = Metric[MCBatch] | Metric[GenBatch] | Metric[LLBatch] | Metric[RollingBatch] | Metric[AnyBatch]
Known = PMap[str, AnyMetric]
Metrics = PMap[OutputType, Known]

METRICS: Metrics = pmap(
    {
        MULTIPLE_CHOICE: pmap(dict[str, AnyMetric](CHOICE_METRICS)),
        GENERATE_UNTIL: pmap(dict[str, AnyMetric](TEXT_METRICS)),
        LOGLIKELIHOOD: pmap(dict[str, AnyMetric](LIKELIHOOD_METRICS)),
        LOGLIKELIHOOD_ROLLING: pmap(dict[str, AnyMetric](ROLLING_METRICS)),
    }
)


NONE: Known = pmap()


class Score(msgspec.Struct, frozen=True):
    """One metric's column over the documents of a batch; ``spec`` is None if no one declared it.

    ``explain`` says how the score of the first document came about.
    """

    name: str
    column: Column
    spec: MetricSpec | None = None
    explain: Callable[[], str] | None = None


Scores = tuple[Score, ...]

Scorer = Callable[[Task, Sequence[MetricSpec], Batch], Scores]


class MetricScorer(msgspec.Struct, frozen=True):
    """A scorer that asks metrics: those set under each of ``kinds``, which ``score`` takes as its first argument.

    ``records`` are the kinds of result that a task's own function may take; if that is ``GenResult`` alone, it gets all
    replies of a document at once.

    The pipe binds it to the metrics of its tables; called as it is, it asks evalcore's own.
    """

    score: Callable[[Sequence[Known], Task, Sequence[MetricSpec], Batch], Scores]
    kinds: tuple[OutputType, ...]
    records: Records = EVERY

    def bind(self, metrics: Metrics, specs: Sequence[MetricSpec] = ()) -> Scorer:
        """Bind to a table's metrics; a task's own functions are entries under the names of their specs."""
        own, tables = self.list_own(specs), [metrics.get(kind, NONE) for kind in self.kinds]
        return partial(self.score, tuple(table.update(own) if own else table for table in tables))

    def list_own(self, specs: Sequence[MetricSpec]) -> Mapping[str, AnyMetric]:
        """The entries that a task's own functions stand for."""
        own = [spec for spec in specs if spec.function is not None]
        return {spec.name: own_metric(spec.function, self.records, spec.options) for spec in own}

    def __call__(self, task: Task, specs: Sequence[MetricSpec], batch: Batch) -> Scores:
        return self.bind(METRICS, specs)(task, specs, batch)


def by_metric(kind: OutputType, build: Build, record: type[Result]) -> MetricScorer:
    """A scorer that asks the metrics of one output type."""
    return MetricScorer(partial(score_by_metric, build), (kind,), (record,))


def score_by_metric(
    build: Build, known: Sequence[Known], task: Task, specs: Sequence[MetricSpec], batch: Batch
) -> Scores:
    """Ask every metric of the task; each kind of batch is built once, by ``build`` for metrics that name no other.

    >>> from evalcore.core.answers.batch import make_batch
    >>> task, asked = Task("t", GENERATE_UNTIL), [MetricSpec("exact_match"), MetricSpec("includes")]
    >>> scores = by_metric(GENERATE_UNTIL, gen_batch, GenResult)(task, asked, make_batch([["It is 4"]], ["4"]))
    >>> [one.column.rows for one in scores]
    [Floats(values=Array([0.])), Floats(values=Array([1.]))]
    """
    (metrics,) = known
    built: dict[Build, AnyBatch] = {}
    return tuple(score for spec in specs for score in _ask(task, spec, _find(spec, metrics, task), build, batch, built))


def _find(spec: MetricSpec, metrics: Known, task: Task) -> AnyMetric:
    """The metric that a name stands for."""
    metric = metrics.get(spec.name)
    if metric is None:
        raise unknown("metric", spec.name, metrics, place(f"{task.name} ({task.output_type})"))
    return metric


def _ask(
    task: Task, spec: MetricSpec, metric: AnyMetric, build: Build, batch: Batch, built: dict[Build, AnyBatch]
) -> Iterable[Score]:
    own: Build = metric.build or build
    try:
        emitted, given = _emit(task, spec, metric, own, batch, built)
    except EntryError as wrong:
        if not len(batch.samples) or fails_alike(wrong, partial(_emit, task, spec, metric, own, make_batch([]), {})):
            raise
        return _ask_each(task, spec, metric, build, batch, wrong)
    explain = None if metric.explain is None else partial(_explain, metric.explain, given, spec.options)
    return [
        msgspec.structs.replace(one, explain=explain)
        for one in _scores(spec, emitted, batch, given.problems, metric.finite)
    ]


def _explain(explain: Callable[..., str], built: AnyBatch, options: Options) -> str:
    return built.problems.get(0) or explain(built[0], options)


def _ask_each(
    task: Task, spec: MetricSpec, metric: AnyMetric, build: Build, batch: Batch, wrong: EntryError
) -> Iterable[Score]:
    """Ask a metric that failed on a batch document by document; those it fails on alone are unscorable."""
    if len(batch.samples) == 1:
        lost = Marks(blank_rows(1), {0: (UNSCORABLE, wrong.told)})
        return [Score(spec.name, score_column(lost, batch, {}), spec)]
    return _join_parts(part for one in split_documents(batch) for part in _ask(task, spec, metric, build, one, {}))


def _emit(
    task: Task, spec: MetricSpec, metric: AnyMetric, own: Build, batch: Batch, built: dict[Build, AnyBatch]
) -> tuple[Emitted, AnyBatch]:
    """What a metric gives for a batch, whoever wrote it: rows, one per document; and the batch as it takes it."""
    score: Callable[..., Emitted] = metric.score
    try:
        if own not in built:
            built[own] = own(batch)
        given = built[own]
        emitted = score(given, spec.options)
        for rows in emitted.values() if isinstance(emitted, Mapping) else (emitted,):
            plain = rows.rows if isinstance(rows, Marks) else rows
            if not isinstance(plain, Floats | Stats | Labels | Objects) or len(plain.values) != len(batch.samples):
                raise EvalError(f"expected {len(batch.samples)} rows from metric {spec.name!r}, got {plain!r:.200}")
    except RAISED as raised:
        raise blame_entry(raised, f"metric {spec.name!r}", place(task.name, key=spec.name)) from raised
    return emitted, given


def _scores(spec: MetricSpec, emitted: Emitted, batch: Batch, problems: Problems, finite: bool) -> Iterable[Score]:
    """One score, or of a metric that gives several one for each, holding only the documents that gave it."""
    if not isinstance(emitted, Mapping):
        yield Score(spec.name, score_column(emitted, batch, problems, finite=finite), spec)
        return
    apart = OWN in emitted  # the documents with problems are under the metric's own name
    columns: dict[str, Column] = {}
    for name, marks in emitted.items():
        wrong = problems if name == OWN or not apart else {}
        whole = emitted_part(score_column(marks, batch, wrong, finite=finite))
        named = name if name != OWN else spec.name  # which a function may give as a key, too
        columns[named] = merge_all((columns[named], whole)) if named in columns else whole
    yield from (Score(name, column, spec) for name, column in columns.items())


def _by_kind(known: Sequence[Known], task: Task, specs: Sequence[MetricSpec], batch: Batch) -> Scores:
    """A document with choices is scored as multiple choice, one with a single likelihood as a plain one.

    >>> from evalcore.core.answers.batch import make_batch
    >>> mixed = make_batch([[(-1.0, True)], [(-2.0, False), (-1.0, False)]], [None, 0])
    >>> SCORERS[LOGLIKELIHOOD](Task("t", LOGLIKELIHOOD), [MetricSpec("acc")], mixed)[0].column.rows
    Floats(values=Array([1., 0.]))
    """
    single, several = known
    for spec in specs:
        if spec.name not in single and spec.name not in several:
            raise unknown("metric", spec.name, {*single, *several}, place(f"{task.name} ({task.output_type})"))
    listed = np.fromiter((len(sample.choices) > 0 for sample in batch.samples), np.bool_, len(batch.samples))
    many = (np.diff(batch.offsets) > 1) | listed
    parts = (
        *_score_part(ll_batch, single, "one log-likelihood", task, specs, take_documents(batch, ~many)),
        *_score_part(mc_batch, several, "choices", task, specs, take_documents(batch, many)),
    )
    return _join_parts(parts)


def _join_parts(parts: Iterable[Score]) -> Scores:
    """Join the scores of parts of a batch."""
    by_name: dict[str, list[Score]] = {}
    for part in parts:
        by_name.setdefault(part.name, []).append(part)
    return tuple(
        msgspec.structs.replace(same[0], column=merge_all(one.column for one in same)) for same in by_name.values()
    )


def _score_part(
    build: Build, metrics: Known, what: str, task: Task, specs: Sequence[MetricSpec], batch: Batch
) -> Iterable[Score]:
    """Scores of a part of a task's documents; a metric that is not for their kind leaves them unscorable."""
    if not len(batch.samples):
        return
    ours = [spec for spec in specs if spec.name in metrics]
    yield from score_by_metric(build, (metrics,), task, ours, batch)
    for spec in specs:
        if spec not in ours:
            reason = (UNSCORABLE, f"{spec.name} is not a metric of {what}")
            missing = dict.fromkeys(range(len(batch.samples)), reason)
            yield Score(spec.name, score_column(Marks(blank_rows(len(batch.samples)), missing), batch, {}), spec)


SCORERS: PMap[OutputType, Scorer] = pmap(
    {
        MULTIPLE_CHOICE: by_metric(MULTIPLE_CHOICE, mc_batch, MCResult),
        GENERATE_UNTIL: by_metric(GENERATE_UNTIL, gen_batch, GenResult),
        LOGLIKELIHOOD: MetricScorer(_by_kind, (LOGLIKELIHOOD, MULTIPLE_CHOICE), (LLResult, MCResult)),
        LOGLIKELIHOOD_ROLLING: by_metric(LOGLIKELIHOOD_ROLLING, rolling_batch, RollingResult),
    }
)
