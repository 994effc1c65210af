"""Estimates: a value, its error, how many documents it rests on, and its recipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct, field

from evalcore.core.records.array import Array, ColumnRecord, Finalise, Floats64, Ints64, exact_sum
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import Displayed, ShallowRecord
from evalcore.core.records.lean.blend import Table
from evalcore.core.records.outcome import Counts
from evalcore.core.records.request import Options, freeze_options
from evalcore.core.records.row import Rows
from evalcore.core.stats.influence import CR2, ErrorForm, UnitError
from evalcore.core.stats.links import IDENTITY, Link


class Summary(ColumnRecord, frozen=True, eq=False):
    """A column reduced to what its aggregation needs: statistics that add up, per unit.

    ``finalise`` closes summed statistics; None for what is no function of sums (the median, of ``middle`` ranks).
    ``resampled`` gives the value on resamples, each a row of unit indices. ``units`` maps each unit to the position of
    its first document, if not each is one; ``trials`` counts what an interval rests on when the variance is zero;
    ``weights`` says what a unit weighs, for a ratio to their sum, ``times`` for how many documents it stands.
    """

    stats: Floats64 | Table
    resampled: Callable[[Ints64], Floats64]
    units: Ints64 | None = None
    finalise: Finalise | None = None
    trials: Callable[[Floats64], float] | None = None
    weights: Floats64 | None = None
    times: Ints64 | None = None
    middle: bool = False

    @property
    def count(self) -> int:
        return len(self.stats) if self.times is None else int(self.times.sum())


class Resampling(Struct, frozen=True):
    """The number of resamples, where errors need any, and their seed. ``draws=0``: no errors at all."""

    draws: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        given: object = self.draws
        if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 0):
            raise EvalError(f"expected bootstrap_iters to be an integer of at least 0, got {given!r}")


class Error(Struct, frozen=True, repr_omit_defaults=True):
    """A standard error and its method, or None and why there is none; ``units`` if they are not all alike."""

    stderr: float | None
    method: str
    units: UnitError | None = None


ErrorRule = Callable[[Rows, Summary, Floats64 | None, Resampling], Error]


class Evidence(ColumnRecord, frozen=True, eq=False):
    """What an aggregation's own interval is made of: the scored rows and what they came to."""

    rows: Rows
    options: Options
    summary: Summary
    value: float
    df: float
    clusters: Ints64 | None
    seed: int


class Bracket(Struct, frozen=True, kw_only=True):
    """An aggregation's own interval and its name in a recipe; ``reference`` is what something known would get."""

    ci: tuple[float, float]
    method: str
    warnings: tuple[str, ...] = ()
    reference: tuple[str, float] | None = None


IntervalRule = Callable[[Evidence, float], Bracket | None]  # at a confidence; None where the general one will do


class Aggregation(ShallowRecord, frozen=True, kw_only=True):
    """Closes a column into a value and the influence of each unit on it.

    ``average`` says whether a group may average this value over tasks (on the scale of ``link``); ``size`` is a task's
    weight then, from its summed statistics. ``even`` says that it is the mean of a score by document, with the sum of
    scores and their number as statistics. ``library`` made the statistics: its version is in the recipe. ``resamples``
    says whether clusters may be resampled for the error of a value without influences. ``read`` makes rows of logged
    scores that are more than one number. Where it does not ``measure``, answers are only recorded, and no number is
    missing. ``interval`` makes the interval where it is not the general one, and ``least`` is the number of units below
    which the general one is doubtful. ``rests_on`` says what all this needs: ``sums`` of statistics that are linear in
    a row (``weighted``: but for errors), how often each of the ``rows`` occurs, or which ``documents`` have them.
    """

    name: str
    summarise: Callable[[Rows, Options], Summary]
    error: ErrorRule
    bounds: tuple[float, float] = (0.0, 1.0)
    link: Link = IDENTITY
    average: bool = False
    even: bool = False
    size: Callable[[Floats64], float] | None = None
    library: str | None = None
    resamples: bool = True
    read: Callable[[Sequence[object], Options], Rows] | None = None
    measures: bool = True
    total: Callable[[Floats64 | Table], Floats64] = exact_sum
    interval: IntervalRule | None = None
    least: int = 0
    rests_on: Literal["sums", "weighted", "rows", "documents"] = "documents"


class Part(Struct, frozen=True):
    """A task's part in a group's number, which changes by ``slope`` when the task's number changes by 1.

    ``influence`` is that of the task's documents if it is not the slope times their influence on the task.
    """

    name: str
    slope: float
    influence: Array | None = None


class AcrossTasks(Struct, frozen=True):
    """A group's error if its tasks are a random sample of all tasks of their kind."""

    tasks: int
    stderr: float | None
    ci: tuple[float, float] | None


class Scale(ShallowRecord, frozen=True, kw_only=True):
    """The kind of a number: its aggregation, direction and bounds, and how groups average it (see ``Aggregation``).

    ``score_bounds`` are those of one document's score, None if nobody declared any; ``bounds`` those of the interval.
    """

    aggregation: str = "mean"
    options: Options = field(default_factory=freeze_options)
    higher_is_better: bool | None = None
    bounds: tuple[float, float] = (0.0, 1.0)
    link: Link = IDENTITY
    average: bool = True
    even: bool = True
    measures: bool = True
    size: float = 0.0
    score_bounds: tuple[float, float] | None = None
    least: int = 0


class Spread(Struct, frozen=True, kw_only=True):
    """What the error and the interval rest on: the influence of each document, and what follows from it.

    ``variance`` is the interval's, with a part that is ``hidden``: no document shows it. ``trials`` is what it rests on
    if it is 0. ``skewness`` is the value's. ``own`` says that the interval is of the aggregation's own kind. ``noise``
    is the part of the squared standard error that comes from drawing ``repeats`` answers to each question.
    ``weights`` are those of the documents if they are not all equal; ``form`` is the form of the error.
    """

    variance: float | None = None
    hidden: float = 0.0
    skewness: float = 0.0
    df: float | None = None
    trials: float = 0.0
    own: bool = False
    influence: Array | None = None
    keys: Array | None = None
    clusters: Array | None = None
    sums: Array | None = None
    noise: float | None = None
    repeats: float | None = None
    weights: Array | None = None
    form: ErrorForm = CR2


class Makeup(ShallowRecord, frozen=True):
    """The tasks behind a group's number, the missing ones, and its error if the tasks are a sample of all tasks."""

    parts: tuple[Part, ...] = ()
    missing: tuple[str, ...] = ()
    across: AcrossTasks | None = None


class Estimate(ShallowRecord, Displayed, frozen=True, kw_only=True):
    """A value, its standard error and interval, and everything needed to combine, compare and audit it.

    ``n`` counts units (documents, or questions for ``acc_all``), and is None where it is not known; ``reason`` says
    why a value or an error is missing; ``warnings`` say what makes its error or interval doubtful; ``reference`` says
    what something known would get, such as ("a calibrated model", 0.04).
    """

    value: float | None
    stderr: float | None = None
    ci: tuple[float, float] | None = None
    n: int | None = 0
    reason: str | None = None
    warnings: tuple[str, ...] = ()
    reference: tuple[str, float] | None = None
    signature: str = ""
    errata: tuple[str, ...] = ()
    counts: Counts = Counts()
    scale: Scale = field(default_factory=Scale)
    spread: Spread = Spread()
    group: Makeup = Makeup()

    @property
    def count(self) -> int:
        """``n`` as a number to compute with: 0 where it is not known."""
        return self.n or 0

    def __repr__(self) -> str:
        error = "" if self.stderr is None else f" ± {self.stderr:.6g}"
        value = "none" if self.value is None else f"{self.value:.6g}"
        lost = "" if self.n is None else f", n={self.n}"
        lost += f", {self.counts.unscorable} unscorable" if self.counts.unscorable else ""
        lost += f", {self.counts.failed} failed" if self.counts.failed else ""
        return f"Estimate({value}{error}{lost}{f', {self.reason}' if self.reason else ''})"


def smooth(
    stats: Floats64 | Table,
    finalise: Finalise,
    units: Ints64 | None = None,
    trials: Callable[[Floats64], float] | None = None,
    weights: Floats64 | None = None,
) -> Summary:
    """Build a summary whose value is a function of summed statistics, so that resampling is a matrix product.

    >>> s = smooth(np.array([[1.0, 1.0], [0.0, 1.0]]), lambda s: s[..., 0] / s[..., 1])
    >>> s.resampled(np.array([[0, 0], [0, 1]])).tolist()
    [1.0, 0.5]
    """

    def resampled(index: Ints64) -> Floats64:
        n, rows = len(stats), np.arange(len(index))[:, None] * len(stats)
        weights = np.bincount((index + rows).ravel(), minlength=len(index) * n).reshape(len(index), n)
        with np.errstate(all="ignore"):  # a resample may have no value
            return np.real(finalise(weights.astype(np.float64) @ np.asarray(stats))).astype(np.float64)

    return Summary(stats, resampled, units, finalise, trials, weights)
