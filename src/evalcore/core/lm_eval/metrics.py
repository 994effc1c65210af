"""lm-eval's filters and metrics where they differ (E10, E11, E13, E19, E21, E46, E48)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from msgspec.structs import replace
from pyrsistent import PMap, pmap

from evalcore.core.answers.batch import Batch, ResultBatch
from evalcore.core.answers.result import GenResult
from evalcore.core.answers.text import GenBatch, gen_batch
from evalcore.core.filters.reply import FilterFn, Replies, nested
from evalcore.core.metrics.corpus import CORPUS_KINDS
from evalcore.core.metrics.custom import PerDocument
from evalcore.core.metrics.dispatch import METRICS, AnyMetric, Metrics, MetricScorer, Scores, score_by_metric
from evalcore.core.metrics.likelihood import ROLLING_METRICS, per_unit
from evalcore.core.metrics.metric import Emitted, Marks, Metric
from evalcore.core.metrics.normalise import normaliser
from evalcore.core.metrics.text import TEXT_METRICS
from evalcore.core.records.array import Array, frozen
from evalcore.core.records.outcome import NOT_EMITTED
from evalcore.core.records.report import Directions
from evalcore.core.records.request import GENERATE_UNTIL, LOGLIKELIHOOD_ROLLING, NO_OPTIONS, Options, Sample
from evalcore.core.records.row import Floats, blank_rows
from evalcore.core.records.score import ScoredColumn
from evalcore.core.records.task import MetricSpec, Task


def majority_vote() -> FilterFn:
    """E19: the most frequent reply, fallback or not; of several, the one that came first."""

    def apply(given: Replies, docs: Sequence[Sample]) -> Replies:
        units = nested(given)
        at = [max(range(len(unit)), key=lambda i, unit=unit: (unit.count(unit[i]), -i)) for unit in units]  # type: ignore[misc]
        starts = given.offsets[:-1] + np.array(at, np.int64)
        return Replies(
            [unit[i] for unit, i in zip(units, at, strict=True)], np.arange(len(at) + 1), given.rules[starts]
        )

    return apply


def exact_match(batch: GenBatch, options: Options) -> Floats:
    """E13, E48: fixed-width numpy strings, which end at trailing NULs and keep their width when lowered."""
    flags = {name: bool(options.get(f"ignore_{name}", False)) for name in ("punctuation", "numbers")}
    strip = normaliser(tuple(options.get("regexes_to_ignore") or ()), case=False, punctuation=False, numbers=False)  # type: ignore[arg-type]
    delete = normaliser((), case=False, **flags)

    def as_numpy(texts: Sequence[str]) -> list[str]:
        kept = [text.rstrip("\0") for text in strip(texts)]
        width = max(map(len, kept))
        lowered = [text.lower()[:width] for text in kept] if options.get("ignore_case") else kept
        return [text.rstrip("\0") for text in delete(lowered)]

    def one(prediction: str, golds: Sequence[str]) -> float:
        return float(as_numpy([prediction])[0] in as_numpy(golds)) if golds else 0.0

    pairs = zip(batch.predictions, batch.golds, strict=True)
    return Floats(Array([one(prediction, golds) for prediction, golds in pairs]))


def any_nonzero(metric: Metric[GenBatch]) -> Metric[GenBatch]:
    """E10: with several golds, whatever is not 0 counts as 1."""
    return replace(metric, score=partial(_any_nonzero, metric))


def _any_nonzero(metric: Metric[GenBatch], batch: GenBatch, options: Options) -> Emitted:
    """A metric's scores with whatever is not 0 turned into 1, and 0 for a document with an empty list of golds."""
    emitted = metric.score(batch, options)
    if isinstance(emitted, Mapping):
        return emitted  # a dict of scores, which lm-eval cannot weigh either
    marks = emitted if isinstance(emitted, Marks) else Marks(emitted, {})
    if not isinstance(marks.rows, Floats):
        return emitted
    several = np.array([isinstance(sample.gold, tuple) for sample in batch.samples], np.bool_)
    none = {i for i, sample in enumerate(batch.samples) if sample.gold == ()}
    missing = {i: why for i, why in marks.missing.items() if i not in none}
    values = marks.rows.values.floats.copy()
    values[list(none)] = 0.0
    rows = Floats(frozen(np.where(several & (values != 0), 1.0, values)))
    return Marks(rows, missing) if missing else rows


def without_options(metric: Metric[GenBatch]) -> Metric[GenBatch]:
    """E46: the options of a metric that only passes pairs on are ignored."""
    return replace(metric, score=partial(_without_options, metric))


def _without_options(metric: Metric[GenBatch], batch: GenBatch, options: Options) -> Emitted:
    return metric.score(batch, NO_OPTIONS)


def silent(batch: ResultBatch, options: Options) -> Marks:
    """Nothing at all: lm-eval knows ``bypass`` in generated texts only, and leaves it out elsewhere."""
    count = len(batch.samples)
    return Marks(blank_rows(count), dict.fromkeys(range(count), (NOT_EMITTED, "")))


TEXTS: PMap[str, AnyMetric] = pmap(
    {
        name: any_nonzero(metric)
        for name, metric in TEXT_METRICS.set("exact_match", replace(TEXT_METRICS["exact_match"], score=exact_match))
        .set("bypass", replace(TEXT_METRICS["bypass"], higher_is_better=True))
        .update({name: without_options(TEXT_METRICS[name]) for name in CORPUS_KINDS})
        .items()
    }
)


def first_nonzero(scores: Sequence[float]) -> float:
    """A score that counts in Python's ``any``, which lm-eval asks of several golds; 0 if none does.

    >>> first_nonzero([0.0, -0.5, 1.0])
    -0.5
    """
    return next((score for score in scores if score), 0.0)


def as_lm_eval(metric: AnyMetric) -> Metric[GenBatch]:
    """A metric of the task's own as lm-eval asks it: a NaN is a score, and of several golds any counts (E10)."""
    score: Callable[..., Emitted] = metric.score
    own = replace(score, best=first_nonzero, finite=False) if isinstance(score, PerDocument) else score
    return any_nonzero(replace(metric, score=own, finite=False))  # type: ignore[arg-type]  # a batch of texts


def _generation(known: Sequence[PMap[str, AnyMetric]], task: Task, specs: Sequence[MetricSpec], batch: Batch) -> Scores:
    """E11: once exact_match has seen several golds, a user's metric after it gets the prediction as a list."""
    names = [spec.name for spec in specs]
    cut = names.index("exact_match") + 1 if "exact_match" in names else len(names)
    late = [spec for spec in specs[cut:] if spec.function is not None]
    early = [spec for spec in specs if spec not in late]
    (metrics,) = known
    own = {spec.name: as_lm_eval(metrics[spec.name]) for spec in specs if spec.function is not None}
    ours = (metrics.update(own),)
    scores = score_by_metric(gen_batch, ours, task, early, batch)
    return scores + (score_by_metric(listed, ours, task, late, batch) if late else ())


GENERATION = MetricScorer(_generation, (GENERATE_UNTIL,), (GenResult,))


def listed(batch: Batch) -> GenBatch:
    """A batch whose predictions are repeated once per gold, where there are several."""
    built = gen_batch(batch)
    predictions = [
        [text] * len(golds) if isinstance(sample.gold, tuple) else text
        for text, golds, sample in zip(built.predictions, built.golds, built.samples, strict=True)
    ]
    return replace(built, predictions=predictions)


def words(text: str) -> int:
    r"""E21: pieces between runs of white space, the empty ones at the ends included.

    >>> words(" a b ")
    4
    """
    return len(re.split(r"\s+", text))


LM_METRICS: Metrics = pmap(
    {
        **{
            kind: known.set("bypass", replace(known["bypass"], score=silent, higher_is_better=True))
            for kind, known in METRICS.items()
        },
        GENERATE_UNTIL: TEXTS,
    }
).transform(
    [LOGLIKELIHOOD_ROLLING, "word_perplexity"],
    replace(ROLLING_METRICS["word_perplexity"], score=per_unit(words, "words")),
)


# --- directions ---------------------------------------------------------------------------------------------------

REGISTERED: Mapping[str, bool] = {
    **dict.fromkeys(("acc", "acc_norm", "acc_mutual_info", "acc_bytes", "acc_all", "exact_match", "likelihood"), True),
    **dict.fromkeys(("mcc", "f1", "bleu", "chrf", "chrf++", "bypass"), True),
    **dict.fromkeys(("perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte", "ter", "brier_score"), False),
}
"""The metrics that lm-eval registers (lm_eval/api/metrics.py)."""


def list_directions(task: Task, columns: Sequence[ScoredColumn]) -> Directions:
    """List the direction of every metric that a task declares, emitted or not, and then of what these emit.

    None if neither the task nor lm-eval's registry says; what a task emits without declaring it is not listed.

    >>> from evalcore.core.records.request import GENERATE_UNTIL
    >>> list_directions(Task("t", GENERATE_UNTIL, (MetricSpec("ter"), MetricSpec("pass_at_k"))), ())
    (('ter', False), ('pass_at_k', None))
    """
    declared = {spec.name: _direct(spec) for spec in task.metrics if len(spec.reducers) < 2}
    return tuple((declared | {one.key.metric: _direct(one.spec) for one in columns if one.spec is not None}).items())


def _direct(spec: MetricSpec) -> bool | None:
    return REGISTERED.get(spec.name) if spec.higher_is_better is None else spec.higher_is_better
