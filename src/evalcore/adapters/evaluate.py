"""evalcore's metrics behind the calls of Hugging Face's ``evaluate``, each value with its error, interval and n."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isnan

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evalcore.adapters.texts import (
    FilterLike,
    list_answers,
    list_items,
    make_text_task,
    read_completion,
    read_gold,
    read_metric,
)
from evalcore.core.aggregate.aggregations import AGGREGATIONS
from evalcore.core.aggregate.clusters import cluster_codes
from evalcore.core.aggregate.inference import Inference
from evalcore.core.aggregate.value import aggregate_metric
from evalcore.core.metrics.normalise import refuse_unknown
from evalcore.core.metrics.text import TEXT_METRICS
from evalcore.core.pipeline import report_task, score_task
from evalcore.core.records.array import Array
from evalcore.core.records.column import Column, build_column
from evalcore.core.records.errors import EvalError, require_known
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.outcome import OK, UNSCORABLE, Failed
from evalcore.core.records.request import Failure, Options, Reply, Sample, freeze_options
from evalcore.core.records.row import Floats, Objects, Rows

Given = Sequence[object]
Clusters = Sequence[int | str | None] | None


class Measure(Struct, frozen=True):
    """One number to compute: its name in the result, what it is, and how it is computed."""

    name: str
    metric: str
    close: Callable[[Measure, Given, Given, Clusters], Estimate]
    filters: tuple[FilterLike, ...] = ()
    options: Options = freeze_options()
    inference: Inference = Inference()


class Evaluation:
    """Measures with the calls of ``evaluate``: everything at once, or pair by pair and then ``compute()``."""

    def __init__(self, measures: Iterable[Measure]) -> None:
        self.measures = tuple(measures)
        self._kept: list[tuple[object, object]] = []

    def add(self, *, prediction: object, reference: object) -> None:
        """Keep one pair for ``compute()``."""
        self._kept.append((prediction, reference))

    def add_batch(self, *, predictions: Iterable[object], references: Iterable[object]) -> None:
        """Keep many pairs for ``compute()``."""
        self._kept.extend(_list_pairs(predictions, references))

    def compute(
        self,
        *,
        predictions: Iterable[object] | None = None,
        references: Iterable[object] | None = None,
        clusters: Iterable[int | str] | None = None,
        **given: object,
    ) -> dict[str, object]:
        """Compute every measure with its error, interval and n, over these pairs and those kept before.

        ``clusters`` names for each pair the unit whose pairs count together; further options go to every measure.
        """
        if (predictions is None) != (references is None):
            raise EvalError("expected both predictions= and references=, got one of them")
        fresh = [] if predictions is None or references is None else _list_pairs(predictions, references)
        pairs = [*self._kept, *fresh]
        if not pairs:
            raise EvalError("expected predictions and references, got none: pass them, or add them before")
        units = None if clusters is None else list(clusters)
        if units is not None and len(units) != len(pairs):
            raise EvalError(f"expected a cluster for every prediction, got {len(units)} for {len(pairs)}")
        said, wanted = [one for one, _ in pairs], [two for _, two in pairs]
        closed = [(one, one.close(_add_options(one, given), said, wanted, units)) for one in self.measures]
        self._kept = []
        return _write_result(closed)


def load(
    name: str,
    *,
    filters: Iterable[FilterLike] = (),
    confidence: float = 0.95,
    interval: str = "wilson",
    stderr: str = "cr2",
    **given: object,
) -> Evaluation:
    """Load a metric by its name in ``evaluate``, with the filters before it and its options.

    >>> found = load("exact_match", ignore_case=True).compute(predictions=["A", "b"], references=["a", ["c", "d"]])
    >>> found["exact_match"], round(found["exact_match_stderr"], 3), found["n"]
    (0.5, 0.5, 2)
    >>> load("f1", average="macro").compute(predictions=[0, 1, 1], references=[0, 1, 0])["f1"]
    0.6666666666666666
    """
    require_known("metric", [name], MEASURES)
    inference, steps = Inference(confidence=confidence, interval=interval, stderr=stderr), tuple(filters)
    made = [_add_options(replace(one, filters=steps, inference=inference), given) for one in MEASURES[name]]
    for one in made:
        one.close(one, (), (), None)  # unknown names are errors now, not after the last prediction
    return Evaluation(made)


def combine(evaluations: Sequence[str | Evaluation] | Mapping[str, str | Evaluation]) -> Evaluation:
    """Combine several metrics; with names for them, each result goes by its own.

    >>> both = combine({"strict": "exact_match", "loose": load("exact_match", ignore_case=True)})
    >>> found = both.compute(predictions=["A"], references=["a"])
    >>> found["strict_exact_match"], found["loose_exact_match"]
    (0.0, 1.0)
    """
    named = evaluations.items() if isinstance(evaluations, Mapping) else (("", one) for one in evaluations)
    measures = [
        replace(one, name=f"{name}_{one.name}" if name else one.name)
        for name, given in named
        for one in (load(given) if isinstance(given, str) else given).measures
    ]
    names = [one.name for one in measures]
    for name in names:
        if names.count(name) > 1:
            raise EvalError(
                f"expected each metric once, got {name!r} twice; name them: combine({{'a': ..., 'b': ...}})"
            )
    return Evaluation(measures)


def _add_options(measure: Measure, given: Mapping[str, object]) -> Measure:
    return replace(measure, options=freeze_options({**measure.options, **given}))


def _list_pairs(predictions: Iterable[object], references: Iterable[object]) -> list[tuple[object, object]]:
    said, wanted = list_items(predictions, "predictions"), list_items(references, "references")
    if len(said) != len(wanted):
        raise EvalError(f"expected a reference for every prediction, got {len(wanted)} for {len(said)} predictions")
    return list(zip(said, wanted, strict=True))


def _write_result(closed: Sequence[tuple[Measure, Estimate]]) -> dict[str, object]:
    """Write the dictionary of the result; counts appear once if all measures agree on them."""
    out: dict[str, object] = {}
    for one, made in closed:
        ends = None if made.ci is None else list(made.ci)
        out |= {one.name: made.value, f"{one.name}_stderr": made.stderr, f"{one.name}_ci": ends}
    counts = [{"n": made.n, "n_unscored": made.counts.unscorable + made.counts.failed} for _, made in closed]
    if all(one == counts[0] for one in counts):
        return out | counts[0]
    return out | {
        f"{one.name}_{key}": n for (one, _), each in zip(closed, counts, strict=True) for key, n in each.items()
    }


# --- how measures are closed -------------------------------------------------------------------------------------


def _close_texts(measure: Measure, predictions: Given, references: Given, clusters: Clusters) -> Estimate:
    """Close a metric of texts as a task would."""
    task = make_text_task([read_metric(measure.metric, measure.options)], measure.filters, name=measure.name)
    if len(task.filters) > 1:
        raise EvalError(f"expected one pipeline of filters, got {len(task.filters)} - at {measure.name}")
    units = clusters or [None] * len(predictions)
    samples = [
        Sample(i, read_gold(gold), cluster=unit)  # type: ignore[arg-type]  # scoring reports what is no gold
        for i, (gold, unit) in enumerate(zip(references, units, strict=True))
    ]
    replies: list[list[Reply]] = [[_read_reply(text)] for text in predictions]
    scored = score_task(task, samples, list_answers(task.name, replies))
    return report_task(scored, inference=measure.inference).estimates[0][1]


def _read_reply(prediction: object) -> Reply:
    text = read_completion(prediction)
    return Failure(text.reason) if isinstance(text, Failed) else text


def _close_labels(measure: Measure, predictions: Given, references: Given, clusters: Clusters) -> Estimate:
    """Close a statistic of predicted and right classes."""
    if measure.filters:
        raise EvalError(f"expected no filters before labels, which are no texts - at {measure.name}")
    rows_of, aggregation, known = LABEL_METRICS[measure.metric]
    refuse_unknown(measure.name, measure.options, known)
    pairs = [(_read_label(gold), _read_label(said)) for gold, said in zip(references, predictions, strict=True)]
    kinds = {isinstance(one, str) for pair in pairs for one in pair if one is not None}
    if len(kinds) > 1:
        raise EvalError(f"expected labels of one kind, got texts and numbers - at {measure.name}")
    return aggregate_metric(
        AGGREGATIONS[aggregation],
        _pair_labels(pairs, rows_of),
        options=measure.options,
        inference=measure.inference,
        clusters=None if clusters is None else cluster_codes(clusters),
    )


def _read_label(value: object) -> object:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, list | tuple | dict | np.ndarray):
        raise EvalError(f"expected one label, got {plain!r}")
    return None if isinstance(plain, float) and isnan(plain) else plain


def _pair_labels(
    pairs: Sequence[tuple[object, object]], rows_of: Callable[[Sequence[tuple[object, object]]], Rows]
) -> Column:
    """Build a column of pairs of classes; a pair without a class has no score."""
    lost = {i: "expected two labels, got none or one" for i, pair in enumerate(pairs) if None in pair}
    status = np.array([UNSCORABLE if i in lost else OK for i in range(len(pairs))], np.uint8)
    return build_column(range(len(pairs)), rows_of(pairs), status, lost)


def _count_hits(pairs: Sequence[tuple[object, object]]) -> Rows:
    return Floats(Array([float(gold == said) for gold, said in pairs]))


def _list_columns(pairs: Sequence[tuple[object, object]]) -> Rows:
    return Objects(tuple(pairs))


LABEL_METRICS: Mapping[str, tuple[Callable[[Sequence[tuple[object, object]]], Rows], str, tuple[str, ...]]] = {
    "accuracy": (_count_hits, "mean", ()),
    "f1": (_list_columns, "f1", ("average", "pos_label")),
    "matthews_correlation": (_list_columns, "matthews_corrcoef", ()),
}

MEASURES: Mapping[str, tuple[Measure, ...]] = {
    **{
        name: (Measure(name, name, _close_texts),)
        for name, one in TEXT_METRICS.items()
        if AGGREGATIONS[one.aggregation].measures
    },
    **{name: (Measure(name, name, _close_labels),) for name in LABEL_METRICS},
    "squad_f1": (Measure("squad_f1", "f1", _close_texts),),
    "sacrebleu": (Measure("sacrebleu", "bleu", _close_texts),),
    "rouge": tuple(Measure(name, name, _close_texts) for name in ("rouge1", "rouge2", "rougeL")),
}
"""By their names in ``evaluate``, where ``f1`` is that of classes; that of words, as in SQuAD, is ``squad_f1``."""
