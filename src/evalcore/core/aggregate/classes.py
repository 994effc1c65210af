"""F1 and MCC from class counts, and their intervals where classes are rare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt

import numpy as np
from msgspec import Struct

from evalcore.core.aggregate.clusters import renumber_codes
from evalcore.core.aggregate.numbers import is_pair, one_hot, read_objects, two_of
from evalcore.core.records.array import Floats64, Ints64, Sums, add_up, exact_sum, frozen
from evalcore.core.records.errors import EvalError, require_known
from evalcore.core.records.estimate import Bracket, Evidence, IntervalRule, Summary, smooth
from evalcore.core.records.request import Options
from evalcore.core.records.row import Labels, Rows, Stats, as_objects
from evalcore.core.stats.influence import gradient, multiply_columns, sum_clusters
from evalcore.core.stats.quantiles import normal_quantile, t_quantile

ENOUGH = 10
"""Documents of a class; of fewer, a class may be far from what its documents show."""
MOST_NAMED = 3


def _encode_classes(rows: Rows) -> tuple[Ints64, Ints64, Sequence[object]]:
    """Encode gold and predicted classes, and list the classes in order."""
    if isinstance(rows, Labels):
        classes, places = np.unique(rows.values.ints, return_inverse=True)
        both = places.reshape(-1, 2)  # numpy 1 gives them flat
        return both[:, 0], both[:, 1], classes.tolist()
    given = as_objects(rows) if isinstance(rows, Stats) else tuple(two_of(rows, "(gold, prediction)"))
    golds, predictions = [row[0] for row in given], [row[1] for row in given]  # type: ignore[index]
    plain = [value.item() if isinstance(value, np.generic) else value for value in [*golds, *predictions]]
    names = sorted(set(plain), key=lambda value: (not isinstance(value, int | float), value))
    code = {name: i for i, name in enumerate(names)}
    codes = np.array([code[value] for value in plain], np.int64)
    return codes[: len(golds)], codes[len(golds) :], names


def matthews(rows: Rows, options: Options) -> Summary:
    """Matthews' correlation of gold and predicted class; 0 if only one class is given or predicted.

    >>> from evalcore.core.aggregate.numbers import value_of
    >>> value_of(matthews, [(0, 0), (1, 1), (2, 2), (1, 1)]), value_of(matthews, [(0, 1), (1, 1)])
    (1.0, 0.0)
    """
    gold, predicted, names = _encode_classes(rows)
    k = len(names)
    hits = (gold == predicted).astype(np.float64)[:, None]
    return smooth(np.hstack([one_hot(gold, k), one_hot(predicted, k), hits]), lambda sums: _mcc(sums, k))


def _mcc(sums: Sums, k: int) -> Sums:
    """Multi-class MCC (Gorodkin 2004) from class counts; 0 if undefined."""
    true, predicted, hits = sums[..., :k], sums[..., k : 2 * k], sums[..., 2 * k]
    total = true.sum(axis=-1)
    cross = (true * predicted).sum(axis=-1)
    spread = (total**2 - (true**2).sum(axis=-1)) * (total**2 - (predicted**2).sum(axis=-1))
    defined = np.real(spread) > 0
    return np.where(defined, (hits * total - cross) / np.sqrt(np.where(defined, spread, 1.0)), 0.0)


def f1(rows: Rows, options: Options) -> Summary:
    """F1 of the positive class (``pos_label``, 1), or its macro, micro or weighted ``average`` over all classes.

    >>> from evalcore.core.aggregate.numbers import value_of
    >>> said = [(0, 0), (1, 1), (1, 1), (1, 0)]      # (gold, prediction)
    >>> [round(value_of(f1, said, average=how), 3) for how in ("binary", "macro", "micro", "weighted")]
    [0.8, 0.733, 0.75, 0.767]
    """
    gold, predicted, names = _encode_classes(rows)
    average = str(options.get("average", "binary"))
    require_known("average", [average], F1_AVERAGES)
    if average == "binary":
        return _binary_f1(gold, predicted, names, options.get("pos_label", 1))
    k = len(names)
    hits = (one_hot(gold, k) * (gold == predicted)[:, None]).astype(np.float64)
    finalise = F1_AVERAGES[average].finalise
    stats = np.hstack([hits, one_hot(predicted, k), one_hot(gold, k)])
    # An error of several classes is a false positive of one and a false negative of another: on the scale of Jaccard's
    # index, n documents without an error are worth n / 2.
    return smooth(stats, lambda sums: finalise(sums, k), trials=lambda sums: float(sums[2 * k :].sum()) / 2)


def _binary_f1(gold: Ints64, predicted: Ints64, names: Sequence[object], positive: object) -> Summary:
    if len(names) > 2:
        raise EvalError(
            f"f1 with average: binary needs two classes, got {len(names)}; set average: macro, micro or weighted"
        )
    code = next((i for i, name in enumerate(names) if name == positive), -1)
    if code < 0 and (len(names) > 1 or isinstance(names[0], str)):
        raise EvalError(f"f1 with average: binary needs the class {positive!r} among {list(names)}; set pos_label")
    true, claimed = gold == code, predicted == code
    stats = np.column_stack([true & claimed, claimed, true]).astype(np.float64)
    return smooth(
        stats,
        lambda sums: _f(sums[..., 0], sums[..., 1], sums[..., 2]),
        trials=lambda s: float(s[1] + s[2] - s[0]),
    )


def _f(hits: Sums, predicted: Sums, true: Sums) -> Sums:
    both = predicted + true
    some = np.real(both) > 0
    return np.where(some, 2 * hits / np.where(some, both, 1.0), 0.0)


def _each_f(sums: Sums, k: int) -> Sums:
    return _f(sums[..., :k], sums[..., k : 2 * k], sums[..., 2 * k :])


# --- intervals -------------------------------------------------------------------------------------------------------


def bracket_f1(evidence: Evidence, confidence: float) -> Bracket | None:
    """The interval of an F1 by the rule of its average; None where the general one will do."""
    rule = F1_AVERAGES[str(evidence.options.get("average", "binary"))].interval
    return None if rule is None else rule(evidence, confidence)


def _bracket_without_positives(evidence: Evidence, confidence: float) -> Bracket | None:
    """An F1 without any positive rests on nothing, so it could be anything."""
    if np.any(evidence.summary.stats):
        return None
    return Bracket(ci=(0.0, 1.0), method="none-positive", warnings=("no document is positive or predicted to be",))


def _bracket_each_f(evidence: Evidence, confidence: float) -> Bracket | None:
    k = evidence.summary.stats.shape[1] // 3
    layout = Layout(k, slice(2 * k, 3 * k), slice(k, 2 * k), slice(0, k))
    return _bracket_cells(evidence, confidence, layout, (0.0, 1.0)) if k > 1 else None


def _bracket_macro(evidence: Evidence, confidence: float) -> Bracket:
    return _bracket_each_f(evidence, confidence) or _bracket_one_class(0.0, 1.0)


def bracket_mcc(evidence: Evidence, confidence: float) -> Bracket:
    """The interval of Matthews' correlation."""
    k = evidence.summary.stats.shape[1] // 2
    layout = Layout(k, slice(0, k), slice(k, 2 * k), slice(2 * k, 2 * k + 1))
    return _bracket_cells(evidence, confidence, layout, (-1.0, 1.0)) if k > 1 else _bracket_one_class(-1.0, 1.0)


def _bracket_one_class(low: float, high: float) -> Bracket:
    """Where every class counts alike, one of which no document is known could make any difference."""
    return Bracket(ci=(low, high), method="one-class", warnings=("only one class occurs, so others are unknown",))


class Layout(Struct, frozen=True):
    """Where the statistics of k classes hold gold classes, predicted classes, and hits (by class, or all in one)."""

    k: int
    gold: slice
    predicted: slice
    hits: slice


def _bracket_cells(evidence: Evidence, confidence: float, layout: Layout, bounds: tuple[float, float]) -> Bracket:
    """The delta method on a confusion matrix to which half a document a class is added as right, and 1.5 as wrong.

    Of K classes each diagonal cell gets 1/2 and each other 1.5 / (K (K − 1)), for two classes 1 / (K (K − 1)): without
    them, a class of three documents that are all right has no error. The interval is widened to hold the value.
    """
    k, stats, finalise = layout.k, np.asarray(evidence.summary.stats), evidence.summary.finalise
    if finalise is None:
        raise AssertionError("class counts add up")
    wrong = 1.0 if k == 2 else 1.5
    times = evidence.summary.times
    sums = exact_sum(stats, times)
    filled = sums.copy()
    for part in (layout.gold, layout.predicted):
        filled[part] += 0.5 + wrong / k
    filled[layout.hits] += 0.5 * k / len(filled[layout.hits])
    slopes = gradient(finalise, filled)
    gold, predicted, hits = slopes[layout.gold], slopes[layout.predicted], slopes[layout.hits]
    apart = (k - 1) * (gold @ gold + predicted @ predicted) + 2 * (gold.sum() * predicted.sum() - gold @ predicted)
    added = 0.5 * float(((gold + predicted + hits) ** 2).sum()) + wrong / (k * (k - 1)) * float(apart)
    moves = multiply_columns(stats, slopes)
    level, centre, factor = (1 + confidence) / 2, float(finalise(filled)), 1.0
    if evidence.clusters is not None:
        moves = sum_clusters(moves, renumber_codes(evidence.clusters)[0])
        factor = len(moves) / (len(moves) - 1)
    quantile = normal_quantile(level) if evidence.clusters is None else t_quantile(level, evidence.df)
    reach = quantile * sqrt(factor * add_up(moves * moves, times) + added)
    low, high = max(centre - reach, bounds[0]), min(centre + reach, bounds[1])
    return Bracket(
        ci=(min(low, evidence.value), max(high, evidence.value)),
        method="delta-filled",
        warnings=_warn_of_scarce(evidence.rows, sums[layout.gold]),
    )


def _warn_of_scarce(rows: Rows, counts: Floats64) -> tuple[str, ...]:
    """Name the classes of which there are too few documents.

    >>> _warn_of_scarce(Labels(frozen(np.array([[0, 0], [0, 1]]))), np.array([12.0, 3.0]))
    ('fewer than 10 documents of class 1 (3): the interval may be too short',)
    """
    scarce = np.flatnonzero(counts < ENOUGH).tolist()
    if not scarce:
        return ()
    names = _encode_classes(rows)[2]
    shown = ", ".join(f"{names[i]!r} ({counts[i]:.0f})" for i in scarce[:MOST_NAMED])
    more = f" and {len(scarce) - MOST_NAMED} more" if len(scarce) > MOST_NAMED else ""
    return (f"fewer than {ENOUGH} documents of class {shown}{more}: the interval may be too short",)


class ClassAverage(Struct, frozen=True):
    """How the F1 of classes are averaged, and the interval of that if it is not the general one."""

    finalise: Callable[[Sums, int], Sums]
    interval: IntervalRule | None = None


F1_AVERAGES: Mapping[str, ClassAverage] = {
    "binary": ClassAverage(lambda sums, k: _each_f(sums, k)[..., -1], _bracket_without_positives),
    "macro": ClassAverage(lambda sums, k: _each_f(sums, k).mean(axis=-1), _bracket_macro),
    "micro": ClassAverage(lambda sums, k: sums[..., :k].sum(axis=-1) / sums[..., 2 * k :].sum(axis=-1)),
    "weighted": ClassAverage(
        lambda sums, k: (_each_f(sums, k) * sums[..., 2 * k :]).sum(axis=-1) / sums[..., 2 * k :].sum(axis=-1),
        _bracket_each_f,
    ),
}


def read_labels(values: Sequence[object], given: Options) -> Rows:
    """Read gold and predicted class: integers as such, others in their own types.

    >>> read_labels([["yes", "no"], ("no", "no")], {})
    Objects(values=(('yes', 'no'), ('no', 'no')))
    """
    plain = all(is_pair(one) and all(type(part) is int for part in one) for one in values)
    return Labels(frozen(np.array(values, np.int64))) if plain else read_objects(values, given)
