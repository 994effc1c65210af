"""Scales on which estimates are nearer to normal, so that an interval can be made there and mapped back."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log

from msgspec import Struct


class Link(Struct, frozen=True):
    """A scale, the way back from it, and its slope: the derivative of ``forward`` at a value.

    ``plain`` says that values stay as they are; ``apart`` that the interval of a difference is made of both values'
    own intervals, which are wider on one side (MOVER).

    >>> JACCARD.inverse(JACCARD.forward(0.8)), LOG.slope(4.0)
    (0.8, 0.25)
    """

    name: str
    forward: Callable[[float], float]
    inverse: Callable[[float], float]
    slope: Callable[[float], float]
    plain: bool = False
    apart: bool = False


def _same(value: float) -> float:
    return value


def _one(value: float) -> float:
    return 1.0


def _log(value: float) -> float:
    return log(value) if value > 0 else -inf


def _exp(value: float) -> float:
    return exp(value) if value < 709 else inf


def _reciprocal(value: float) -> float:
    return 1 / value if value > 0 else inf


def _jaccard(f1: float) -> float:
    return f1 / (2 - f1)


def _f1(jaccard: float) -> float:
    return 2 * jaccard / (1 + jaccard)


def _jaccard_slope(f1: float) -> float:
    return 2 / ((2 - f1) * (2 - f1))


IDENTITY = Link("identity", _same, _same, _one, plain=True)
LOG = Link("log", _log, _exp, _reciprocal, apart=True)
JACCARD = Link("jaccard", _jaccard, _f1, _jaccard_slope)
