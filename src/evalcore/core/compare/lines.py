"""What a comparison of runs says: a line for every task, metric and group, and what could not be paired."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace
from pyrsistent import PMap, pmap

from evalcore.core.compare.rules import RuleMismatch, RuleSource
from evalcore.core.groups.tree import Tree
from evalcore.core.records.array import ColumnRecord
from evalcore.core.records.document import DocumentRow
from evalcore.core.records.errors import require_known
from evalcore.core.records.frozen_dict import Displayed, FrozenRecord
from evalcore.core.records.score import Scored
from evalcore.core.records.task import MetricKey
from evalcore.core.stats.families import benjamini_hochberg, holm
from evalcore.core.stats.pair_tests import PairInterval
from evalcore.core.stats.sample_size import reach_of_test


class ComparisonLine(FrozenRecord, Displayed, frozen=True, kw_only=True):
    """First run minus second, in one number of a task or a group, on the documents that both have a score for.

    ``better`` and ``worse`` are the documents (the first run's keys) where the first run does better and worse.
    ``detectable`` is the smallest true difference that such a comparison finds in four cases of five, None if it cannot
    find any. ``adjusted`` is the p-value corrected for all lines of the table, and ``adjusted_ci`` the interval:
    all of them together contain all true differences with the confidence of the comparison.
    ``reason`` says why something is missing. ``clusters`` counts the clusters behind it, if any; ``least_p`` is the
    smallest p-value that a test of so few documents or clusters can give. ``draws`` counts the random swaps behind the
    p-value, if any; ``df`` are the degrees of freedom of the error, and ``interval`` makes intervals of any confidence.
    ``p_same`` is the p-value of "the same within the margin", and ``adjusted_same`` that corrected for all lines.
    """

    name: str
    key: MetricKey
    group: bool = False
    a: float | None = None
    b: float | None = None
    n: int = 0
    unscored: int = 0
    difference: float | None = None
    stderr: float | None = None
    ci: tuple[float, float] | None = None
    p_value: float | None = None
    adjusted: float | None = None
    detectable: float | None = None
    higher_is_better: bool | None = None
    better: tuple[int, ...] = ()
    worse: tuple[int, ...] = ()
    method: str = ""
    reason: str | None = None
    clusters: int | None = None
    least_p: float | None = None
    adjusted_ci: tuple[float, float] | None = None
    draws: int | None = None
    df: float | None = None
    interval: PairInterval | None = None
    p_same: float | None = None
    adjusted_same: float | None = None


class Shared(Struct, frozen=True):
    """The documents of a task in both runs, and the keys of those in only one.

    ``by_id``: matched by declared ids. ``unlike``, ``by_prompt`` and ``by_order`` count documents matched by nothing
    but their id, prompt or order (see ``match_documents``). ``unclear``: documents of one run may lack a counterpart
    because of what a model wrote.
    """

    task: str
    both: int
    only_a: tuple[int, ...] = ()
    only_b: tuple[int, ...] = ()
    by_id: bool = False
    unlike: int = 0
    by_prompt: int = 0
    by_order: int = 0
    unclear: bool = False

    @property
    def shares(self) -> tuple[float, float]:
        """The share of either run's documents that is matched.

        >>> Shared("t", 3, (7,)).shares
        (0.75, 1.0)
        """
        return self.both / (self.both + len(self.only_a) or 1), self.both / (self.both + len(self.only_b) or 1)


class Correction(Struct, frozen=True):
    """A correction of many p-values at once, and what it promises.

    ``promise`` may name ``{share}``, alpha in percent, and ``{count}``, the findings to expect by luck alone. A record
    that leaves p-values as they are does not ``correct`` them.
    """

    name: str
    adjust: Callable[[Sequence[float | None]], tuple[float | None, ...]]
    promise: str
    corrects: bool = True


NO_CORRECTION = Correction(
    "none", tuple, "if nothing differs, about {count} of them are findings by luck", corrects=False
)
CORRECTIONS: PMap[str, Correction] = pmap(
    {
        "holm": Correction("holm", holm, "if nothing differs, the chance of any finding at all is at most {share}"),
        "bh": Correction("bh", benjamini_hochberg, "of the findings, about {share} may be luck"),
        "none": NO_CORRECTION,
    }
)


def find_correction(given: str | Correction) -> Correction:
    """Find a correction by name; a host's own is returned as it is.

    >>> find_correction("none").adjust([0.01, None])
    (0.01, None)
    """
    if isinstance(given, Correction):
        return given
    require_known("correction", [given], CORRECTIONS)
    return CORRECTIONS[given]


class Comparison(FrozenRecord, Displayed, frozen=True, kw_only=True):
    """Two runs side by side. ``family`` counts the p-values that were corrected together.

    Differences up to ``margin``, if there is one, do not matter. ``rules`` are those in which the runs
    differ; ``unknown_rules`` name a task, a run (0 or 1) and why its rules are unknown. ``doubts`` name the number of a
    task that a warning is about.
    """

    names: tuple[str, str]
    lines: tuple[ComparisonLine, ...]
    documents: tuple[Shared, ...] = ()
    tasks_only_a: tuple[str, ...] = ()
    tasks_only_b: tuple[str, ...] = ()
    confidence: float = 0.95
    correction: Correction = NO_CORRECTION
    family: int = 0
    margin: float | None = None
    warnings: tuple[str, ...] = ()
    rules: tuple[RuleMismatch, ...] = ()
    unknown_rules: tuple[tuple[str, int, str], ...] = ()
    doubts: tuple[tuple[str, MetricKey, str], ...] = ()

    @property
    def alpha(self) -> float:
        """The level of every verdict: 1 - confidence without its rounding error, so that p = 0.1 is found at 0.9."""
        return round(1 - self.confidence, 12)


def too_few(line: ComparisonLine, alpha: float) -> bool:
    """Whether the line has so few documents or clusters that no difference could ever be found.

    >>> too_few(ComparisonLine(name="t", key=MetricKey("acc"), least_p=0.125), 0.05)
    True
    """
    return line.least_p is not None and line.least_p > alpha


def has_evidence(line: ComparisonLine, alpha: float) -> bool:
    """Whether a difference is more than luck explains: by its adjusted p-value, and by its interval, which lacks 0.

    >>> line = ComparisonLine(name="t", key=MetricKey("acc"), difference=0.02, ci=(0.004, 0.038), adjusted=0.02)
    >>> has_evidence(line, 0.05), has_evidence(replace(line, ci=(-0.004, 0.044)), 0.05)
    (True, False)
    """
    if not line.difference or line.adjusted is None or line.adjusted > alpha:
        return False
    return line.ci is None or not line.ci[0] <= 0 <= line.ci[1]


def explain_few(count: int, what: str, least: float, alpha: float) -> str | None:
    """Explain why a test of so few units cannot find anything; None if it can.

    >>> explain_few(4, "cluster", 0.125, 0.05)
    'only 4 clusters: no p-value below 0.125 is possible'
    """
    many = f"{count} {what}{'s' * (count != 1)}"
    return f"only {many}: no p-value below {least:.3g} is possible" if least > alpha else None


def find_detectable(line: ComparisonLine, alpha: float) -> float | None:
    """Find the smallest true difference that a test at this level finds in four cases of five.

    None if there is no error, or if so few documents or clusters never give a p-value this small.

    >>> line = ComparisonLine(name="t", key=MetricKey("acc"), stderr=0.01, df=399, interval=PairInterval(0, 0, 0.01))
    >>> [round(find_detectable(line, alpha), 4) for alpha in (0.05, 0.05 / 20)]
    [0.0281, 0.0389]
    """
    if line.interval is None or line.df is None or line.df <= 0 or too_few(line, alpha):
        return None
    return reach_of_test(alpha)(line.df) * (line.stderr or line.interval.error)


def adjust_comparisons(
    comparisons: Iterable[Comparison], correction: str | Correction = "holm"
) -> tuple[Comparison, ...]:
    """Correct everything for all comparisons: what is printed together is one family.

    Intervals and detectable differences are Bonferroni's, at alpha divided by the size of the family. For Holm's test,
    which is at least as sharp, and for Benjamini and Hochberg's they are on the safe side.

    >>> two = [ComparisonLine(name=name, key=MetricKey("acc"), p_value=p) for name, p in (("t", 0.01), ("u", 0.04))]
    >>> [line.adjusted for line in adjust_comparisons([Comparison(names=("a", "b"), lines=tuple(two))])[0].lines]
    [0.02, 0.04]
    """
    given, chosen = tuple(comparisons), find_correction(correction)
    p_values = [line.p_value for one in given for line in one.lines]
    adjusted = iter(chosen.adjust(p_values))
    family = sum(p is not None for p in p_values)
    share = max(family, 1) if chosen.corrects else 1
    return tuple(
        replace(
            one,
            correction=chosen,
            family=family,
            lines=tuple(_adjust_line(line, next(adjusted), (1 - one.confidence) / share) for line in one.lines),
        )
        for one in given
    )


def _adjust_line(line: ComparisonLine, p_value: float | None, alpha: float) -> ComparisonLine:
    if line.interval is None:
        return replace(line, adjusted=p_value)
    detectable = find_detectable(line, alpha)
    return replace(line, adjusted=p_value, adjusted_ci=line.interval.at(1 - alpha), detectable=detectable)


class ComparisonSide(ColumnRecord, frozen=True, eq=True):
    """A run's scores by task, the document tables that their keys point into, and the trees of its groups.

    ``sources`` say where the rules of a task come from; a task without one was scored by the rules it has.
    """

    name: str
    scored: tuple[Scored, ...]
    documents: Mapping[str, tuple[DocumentRow, ...]] = field(default_factory=dict)
    trees: tuple[Tree[object], ...] = ()
    sources: Mapping[str, RuleSource] = field(default_factory=dict)
