"""How many documents and repeats a difference or an interval takes."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf, sqrt

from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.core.stats.quantiles import t_quantile

Reach = Callable[[float], float]
"""How many standard errors a distance must be, by degrees of freedom."""

# allows for rounding in a distance that is reached exactly
_SLACK = 1 + 1e-12
# the square root of more documents than anyone will ever have
_MOST = 1e15


class Variances(Struct, frozen=True):
    """How much a score varies from question to question, and from reply to reply of one question.

    With n questions and K replies to each, the squared standard error is (question + reply / K) / n.
    """

    question: float
    reply: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.question < inf and 0 <= self.reply < inf):
            raise EvalError(f"expected variances of at least 0, got {self.question} and {self.reply}")


def variances_of_difference(own: Variances, correlation: float, ratio: float = 1.0) -> Variances:
    """The variances of a difference between two models with correlated scores of questions.

    The other model's variances are ``ratio`` times as large. Replies are drawn independently, so none of their variance
    cancels (Miller 2024, section 4). If ``reply`` is unknown (0), ``question`` holds both, and the correlation is that
    of the scores as drawn.

    >>> variances_of_difference(Variances(0.2, 0.1), 0.75)
    Variances(question=0.1, reply=0.2)
    """
    if not -1 <= correlation <= 1:
        raise EvalError(f"expected a correlation between -1 and 1, got {correlation}")
    return Variances((1 + ratio - 2 * correlation * sqrt(ratio)) * own.question, (1 + ratio) * own.reply)


def find_distance(n: float, spread_at: Callable[[float], Variances], repeats: float, reach: Reach) -> float:
    """The difference found on n questions if the variances depend on the difference itself.

    >>> found = find_distance(400, lambda drop: Variances(drop * (1 - drop) + 0.01), 1.0, reach_of_test())
    >>> abs(found - distance_at(400, Variances(found * (1 - found) + 0.01), 1.0, reach_of_test())) < 1e-12
    True
    """
    found = 1.0
    for _ in range(200):  # variances grow more slowly than the difference, so that each step is closer
        last, found = found, distance_at(n, spread_at(found), repeats, reach)
        if abs(found - last) <= 1e-14 * found:
            break
    return found


def reach_of_interval(confidence: float = 0.95) -> Reach:
    """For a half-width: that of Student's interval.

    >>> round(reach_of_interval()(399), 3), round(reach_of_interval(0.99)(399), 3)
    (1.966, 2.588)
    """
    if not 0 < confidence < 1:
        raise EvalError(f"expected a confidence between 0 and 1, got {confidence}")
    return lambda df: t_quantile((1 + confidence) / 2, df)


def reach_of_test(alpha: float = 0.05, power: float = 0.8) -> Reach:
    """For a true difference: from no difference to one that a two-sided t test finds with this power.

    >>> round(reach_of_test()(399), 3)      # Miller 2024, section 5, with t instead of normal quantiles
    2.808
    """
    if not (0 < alpha < 1 and 0 < power < 1):
        raise EvalError(f"expected alpha and power between 0 and 1, got {alpha} and {power}")
    return lambda df: t_quantile(1 - alpha / 2, df) + t_quantile(power, df)


INTERVAL = reach_of_interval()


def distance_at(n: float, spread: Variances, repeats: float = 1.0, reach: Reach = INTERVAL) -> float:
    """The half-width, or the difference found, on n questions with so many replies each.

    >>> round(distance_at(400, Variances(0.2, 0.05), 1), 4), round(distance_at(400, Variances(0.2, 0.05), 5), 4)
    (0.0491, 0.045)
    """
    if not (n > 1 and repeats > 0):
        raise EvalError(f"expected at least two questions and one reply to each, got {n} and {repeats}")
    return reach(n - 1) * sqrt((spread.question + spread.reply / repeats) / n)


def questions_for(distance: float, spread: Variances, repeats: float = 1.0, reach: Reach = INTERVAL) -> int:
    """The fewest questions for a half-width, or to find a difference, with so many replies each.

    >>> [questions_for(0.05, Variances(0.2, 0.05), repeats) for repeats in (1, 5)]
    [387, 326]
    >>> [questions_for(0.02, Variances(0.2, 0.1), repeats, reach_of_test()) for repeats in (1, 2, 8)]
    [5889, 4908, 4172]
    """
    _check(distance)
    n = _count_documents(reach(inf) / distance * sqrt((spread.question + spread.reply / repeats) / _SLACK), distance)
    while distance_at(n, spread, repeats, reach) > distance * _SLACK:  # t is wider than normal, by a few questions
        n += 1
    return n


def repeats_for(distance: float, n: float, spread: Variances, reach: Reach = INTERVAL) -> int | None:
    """The fewest replies to each of n questions for a distance; None if no number of replies suffices.

    >>> [repeats_for(distance, 400, Variances(0.2, 0.05)) for distance in (0.05, 0.045, 0.04)]
    [1, 6, None]
    """
    _check(distance)
    if distance_at(n, spread, 1.0, reach) <= distance * _SLACK:
        return 1
    room = n * (distance / reach(n - 1)) ** 2 - spread.question
    if not spread.reply or room <= spread.question * 1e-12 or spread.reply / room > _MOST**2:
        return None
    return max(1, ceil(spread.reply / room / _SLACK))


def _check(distance: float) -> None:
    if not 0 < distance < inf:
        raise EvalError(f"expected a finite distance above 0, got {distance}")


def _count_documents(errors: float, distance: float) -> int:
    """Count the documents for a distance, given the error of one document in units of the reach."""
    if not errors <= _MOST:
        raise EvalError(f"expected a distance that {_MOST**2:.0e} documents could reach, got {distance:g}")
    return max(2, ceil(errors**2))
