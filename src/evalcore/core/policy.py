"""lm-eval 0.4.13 as tables: the default ones with an entry replaced for each of its errata."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import sqrt

import numpy as np
from msgspec.structs import replace
from pyrsistent import PMap, pmap

from evalcore.core.aggregations import AGGREGATIONS, from_callable
from evalcore.core.aggregations.corpora import answered
from evalcore.core.aggregations.ratios import ratio
from evalcore.core.aggregations.rows import numbers, two_of
from evalcore.core.arrays import Array, Floats64, Ints64, frozen
from evalcore.core.batches import Batch, GenBatch, RollingBatch, gen_batch, rolling_batch
from evalcore.core.columns import Floats, Rows, as_objects
from evalcore.core.estimate import Aggregation, Error, ErrorRule, Estimate, Resampling, Summary, smooth
from evalcore.core.filters import FILTERS, Filter, FilterFn, Replies, nested
from evalcore.core.groups import Group, GroupMetric, Leaf, Tree, fold_group, leaves
from evalcore.core.groups.rules import AVERAGES, GROUP_RULES, Share, Term, _weight
from evalcore.core.metrics.likelihood import ROLLING_METRICS, per_unit
from evalcore.core.metrics.metric import Emitted, Marks, Metric
from evalcore.core.metrics.normalise import normaliser
from evalcore.core.metrics.text import TEXT_METRICS
from evalcore.core.pipeline import report_group
from evalcore.core.records import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD_ROLLING,
    MetricKey,
    MetricSpec,
    Options,
    Pipeline,
    Sample,
    Task,
)
from evalcore.core.reports import GroupReport, TaskReport
from evalcore.core.scorers import SCORERS, Scores, by_metric
from evalcore.core.tables import EVALCORE, METRICS, TAKE_FIRST, Tables

__all__ = ["LM_EVAL_0_4_13", "POLICIES", "report_groups_by_children"]

LM_DRAWS = 100_000
LM_CORPUS_DRAWS = 100


# --- filters and metrics ------------------------------------------------------------------------------------------


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
    """E13: fixed-width numpy strings, which end at trailing NULs and keep their width when lowered."""
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

    def score(batch: GenBatch, options: Options) -> Emitted:
        emitted = metric.score(batch, options)
        rows = emitted.rows if isinstance(emitted, Marks) else emitted
        if not isinstance(rows, Floats):
            return emitted
        several = np.array([isinstance(sample.gold, tuple) for sample in batch.samples], np.bool_)
        values = Floats(frozen(np.where(several & (rows.values.floats != 0), 1.0, rows.values.floats)))
        return Marks(values, emitted.missing) if isinstance(emitted, Marks) else values

    return replace(metric, score=score)


TEXTS: PMap[str, Metric[GenBatch]] = pmap(
    {
        name: any_nonzero(metric)
        for name, metric in TEXT_METRICS.set(
            "exact_match", replace(TEXT_METRICS["exact_match"], score=exact_match)
        ).items()
    }
)


def generation(task: Task, specs: Sequence[MetricSpec], batch: Batch) -> Scores:
    """E11: once exact_match has seen several golds, a user's metric after it gets the prediction as a list."""
    names = [spec.name for spec in specs]
    cut = names.index("exact_match") + 1 if "exact_match" in names else len(names)
    late = [spec for spec in specs[cut:] if spec.function is not None]
    usual = by_metric(gen_batch, TEXTS)(task, [spec for spec in specs if spec not in late], batch)
    return usual + by_metric(listed, TEXTS)(task, late, batch) if late else usual


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


ROLLING: PMap[str, Metric[RollingBatch]] = ROLLING_METRICS.set(
    "word_perplexity", replace(ROLLING_METRICS["word_perplexity"], score=per_unit(words, "words"))
)


# --- aggregations ---------------------------------------------------------------------------------------------------


def left_fold(stats: Floats64) -> Floats64:
    """Sums in order of arrival, as Python's own sum before 3.12.

    >>> left_fold(np.array([[1e16], [1.0], [-1e16]])).tolist()
    [0.0]
    """
    return np.asarray(np.cumsum(stats, axis=0)[-1], np.float64)


def mean_error(rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
    """Sample sd / sqrt(n), every sum a left fold."""
    return _sample_error(summary.stats[:, 0])


def _sample_error(values: Floats64) -> Error:
    n = len(values)
    if n < 2:
        return Error(None, "N/A")
    squares = (values - np.cumsum(values)[-1] / n) ** 2
    return Error(float(sqrt(np.cumsum(squares)[-1] / (n - 1)) / sqrt(n)), "lm-eval")


def acc_all_error(rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
    """E03: questions of different paragraphs that share a number are one question."""
    right: dict[object, bool] = {}
    for hit, key in map(answered, two_of(rows, "(correct, question)")):
        question = key[-1] if isinstance(key, tuple) else key
        right[question] = right.get(question, True) and hit
    return _sample_error(np.array([float(hit) for hit in right.values()]))


def no_error(rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
    """lm-eval has no formula."""
    return Error(None, "N/A")


def replay(most: int = LM_DRAWS) -> ErrorRule:
    """lm-eval's own resamples, draw by draw, on sufficient statistics (E17: whole thousands; E18: uncorrected)."""

    def error(rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
        n = len(summary.stats)
        if n < 2:
            return Error(None, "N/A")
        asked = min(resampling.draws or LM_DRAWS, most)
        chunk = min(1000, asked)
        if asked < 2:
            return Error(None, "needs two draws, got 1")
        drawn = np.concatenate([_replicates(summary, seed, chunk, n) for seed in range(asked // chunk)])
        return Error(float(np.std(drawn, ddof=1)), f"lm-eval-bootstrap(draws={len(drawn)})")

    return error


def _replicates(summary: Summary, seed: int, chunk: int, n: int) -> Floats64:
    # A list, not a number: numpy's Mersenne Twister then starts where Python's random.Random(seed) does.
    stream = np.random.RandomState([seed])
    block = max(1, min(chunk, 4_000_000 // n))
    sizes = [min(block, chunk - start) for start in range(0, chunk, block)]
    return np.concatenate([summary.resampled(_indices(stream, size, n)) for size in sizes])


def _indices(stream: np.random.RandomState, size: int, n: int) -> Ints64:
    return np.floor(stream.random_sample((size, n)) * n).astype(np.int64)


def nanmean(rows: Rows, options: Options) -> Summary:
    """Rows that are NaN are drawn too, and count for nothing."""
    values = numbers(rows)
    known = ~np.isnan(values)
    return smooth(np.column_stack([np.where(known, values, 0.0), known.astype(np.float64)]), ratio)


def upper_median(rows: Rows, options: Options) -> Summary:
    """E01: the upper middle of an even number of scores."""
    values = numbers(rows)
    middle = len(values) // 2
    return Summary(
        values[:, None],
        lambda index: np.partition(values[index], middle, axis=1)[:, middle],
        np.arange(len(values)),
    )


def bypass(rows: Rows, options: Options) -> Summary:
    """E02: 999."""
    count = len(as_objects(rows))
    return smooth(np.ones((count, 1)), lambda sums: np.real(sums[..., 0]) * 0 + 999.0)


def from_callable_without_error(function: Callable[..., object]) -> Aggregation:
    """E24: lm-eval has no error for a callable."""
    return replace(from_callable(function), error=no_error)


def _as_lm_eval(name: str) -> Aggregation:
    changed: Mapping[str, Mapping[str, object]] = {
        "mean": {"error": mean_error},
        "acc_all": {"error": acc_all_error},
        "median": {"summarise": upper_median, "error": replay()},
        "bypass": {"summarise": bypass, "error": no_error},
        **{corpus: {"error": replay(LM_CORPUS_DRAWS)} for corpus in ("bleu", "chrf", "chrf++", "ter")},
        "nanmean": {"summarise": nanmean, "error": replay()},
        **{other: {"error": replay()} for other in ("perplexity", "f1", "matthews_corrcoef")},
    }
    return replace(AGGREGATIONS[name], **{"total": left_fold, "error": no_error, **changed.get(name, {})})


# --- groups -----------------------------------------------------------------------------------------------------------


def over_paths(
    group: Group[TaskReport], spec: GroupMetric, parts: Sequence[Share], sizes: Mapping[str, float]
) -> Share:
    """E05: a task counts once for every path that leads to it."""
    names = [name for part in parts for name, _ in part.terms]
    weights = [_weight(spec, name, sizes[name]) for name in names]
    total = sum(weights)
    missing = tuple(name for part in parts for name in part.missing)
    return Share(
        tuple((name, w / total if total else 0.0) for name, w in zip(names, weights, strict=True)),
        total,
        missing,
    )


def pooled_mean(spec: GroupMetric, terms: Sequence[Term]) -> Estimate:
    """E04, E08, E23: an arithmetic mean whatever was asked, with a pooled error under size weights."""
    values = [term.estimate.value or 0.0 for term in terms]
    sizes = [term.size if spec.weight_by_size else 1.0 for term in terms]
    counts = [term.size for term in terms]
    errors = [term.estimate.stderr for term in terms]
    value = sum(v * size for v, size in zip(values, sizes, strict=True)) / sum(sizes)
    known = [error for error in errors if error is not None]
    stderr = None if len(known) < len(terms) else _pooled(known, counts) if spec.weight_by_size else _unweighted(known)
    n = int(sum(counts))
    return Estimate(
        value=value,
        stderr=stderr,
        n=n,
        n_scored=n,
        size=float(n),
        signature="pooled" if spec.weight_by_size else "unweighted",
        reason=None if stderr is not None else "N/A",
    )


def _pooled(errors: Sequence[float], sizes: Sequence[float]) -> float | None:
    if sum(sizes) == len(sizes):
        return None
    variance = sum((n - 1) * error**2 * n for n, error in zip(sizes, errors, strict=True)) / (sum(sizes) - len(sizes))
    return float(np.sqrt(variance / sum(sizes)))


def _unweighted(errors: Sequence[float]) -> float:
    return float(np.sqrt(sum(error**2 for error in errors)) / len(errors))


def task_size(task: TaskReport, key: MetricKey) -> float:
    """E09: one count for every metric of a task."""
    return float(task.sample_len)


def report_groups_by_children(tree: Tree[TaskReport], *, tables: Tables) -> tuple[GroupReport, ...]:
    """Groups as lm-eval up to 0.4.3 made them: each from its direct children's numbers, not from its tasks'."""

    def group(
        node: Group[TaskReport], parts: tuple[tuple[Leaf[TaskReport], tuple[GroupReport, ...]], ...]
    ) -> tuple[Leaf[TaskReport], tuple[GroupReport, ...]]:
        made = report_group(replace(node, children=tuple(leaf for leaf, _ in parts)), tables=tables)
        as_task = TaskReport(name=node.name, estimates=made.estimates, n_docs=made.sample_len or 0)
        return Leaf(node.name, as_task), (*(one for _, below in parts for one in below), made)

    return fold_group(tree, lambda leaf: (leaf, ()), group)[1]


def take_first(task: Task) -> Pipeline:
    """lm-eval's implicit filter."""
    return TAKE_FIRST


LM_EVAL_0_4_13 = replace(
    EVALCORE,
    name="lm-eval-0.4.13",
    filters=FILTERS.set("majority_vote", Filter(majority_vote)),
    scorers=SCORERS.set(GENERATE_UNTIL, generation).set(LOGLIKELIHOOD_ROLLING, by_metric(rolling_batch, ROLLING)),
    metrics=METRICS.set(GENERATE_UNTIL, pmap(dict(TEXTS))).set(LOGLIKELIHOOD_ROLLING, pmap(dict(ROLLING))),
    aggregations=pmap({name: _as_lm_eval(name) for name in AGGREGATIONS}),
    averages=AVERAGES.set("leaves", over_paths),
    group_rules=GROUP_RULES.set("mean", pooled_mean).set("callable", pooled_mean),
    size_of=task_size,
    members=leaves,
    from_callable=from_callable_without_error,
    default_pipeline=take_first,
    unreduced="mean",
)

POLICIES: PMap[str, Tables] = pmap({"evalcore": EVALCORE, "lm-eval-0.4.13": LM_EVAL_0_4_13})
