"""F1 and MCC from class counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from evalcore.core.aggregate.numbers import is_pair, one_hot, read_objects, two_of
from evalcore.core.records.array import Ints64, frozen
from evalcore.core.records.errors import EvalError, require_known
from evalcore.core.records.estimate import Summary, Sums, smooth
from evalcore.core.records.request import Options
from evalcore.core.records.row import Labels, Rows, Stats, as_objects


def _encode_classes(rows: Rows) -> tuple[Ints64, Ints64, Sequence[object]]:
    """Encode gold and predicted classes, and list the classes in order."""
    given = as_objects(rows) if isinstance(rows, Labels | Stats) else tuple(two_of(rows, "(gold, prediction)"))
    golds, predictions = [row[0] for row in given], [row[1] for row in given]  # type: ignore[index]
    plain = [value.item() if isinstance(value, np.generic) else value for value in [*golds, *predictions]]
    names = sorted(set(plain), key=lambda value: (not isinstance(value, int | float), value))
    code = {name: i for i, name in enumerate(names)}
    codes = np.array([code[value] for value in plain], np.int64)
    return codes[: len(golds)], codes[len(golds) :], names


def matthews(rows: Rows, options: Options) -> Summary:
    """Matthews' correlation of gold and predicted class; 0 if only one class is given or predicted.

    >>> from evalcore.core.records.estimate import value_of
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

    >>> from evalcore.core.records.estimate import value_of
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
    finalise = F1_AVERAGES[average]
    stats = np.hstack([hits, one_hot(predicted, k), one_hot(gold, k)])
    # An error of several classes is a false positive of one and a false negative of another: on the scale of Jaccard's
    # index, n documents without an error are worth n / 2.
    return smooth(stats, lambda sums: finalise(sums, k), trials=lambda sums: len(gold) / 2)


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


F1_AVERAGES: Mapping[str, Callable[[Sums, int], Sums]] = {
    "binary": lambda sums, k: _each_f(sums, k)[..., -1],
    "macro": lambda sums, k: _each_f(sums, k).mean(axis=-1),
    "micro": lambda sums, k: sums[..., :k].sum(axis=-1) / sums[..., 2 * k :].sum(axis=-1),
    "weighted": lambda sums, k: (_each_f(sums, k) * sums[..., 2 * k :]).sum(axis=-1) / sums[..., 2 * k :].sum(axis=-1),
}


def read_labels(values: Sequence[object], given: Options) -> Rows:
    """Read gold and predicted class: integers as such, others in their own types.

    >>> read_labels([["yes", "no"], ("no", "no")], {})
    Objects(values=(('yes', 'no'), ('no', 'no')))
    """
    plain = all(is_pair(one) and all(type(part) is int for part in one) for one in values)
    return Labels(frozen(np.array(values, np.int64))) if plain else read_objects(values, given)
