"""A difference between two runs as the sentence that a reader needs."""

from __future__ import annotations

from math import isfinite, log10

from msgspec import Struct

from evalcore.core.compare.lines import Comparison, ComparisonLine, has_evidence
from evalcore.core.compare.power import Known, PowerGoal, plan_next
from evalcore.core.compare.verdicts.margins import tell_verdict
from evalcore.core.plain_text import show_share
from evalcore.core.records.errors import EvalError

NONE = "no evidence of a difference"
MOST_DECIMALS = 6


class ToldDifference(Struct, frozen=True):
    """A difference in words, and whether it is more than luck explains; ``documents`` that it would take, if known."""

    sentence: str
    evidence: bool
    points: bool = False
    documents: int | None = None


def tell_difference(
    line: ComparisonLine, known: Known, comparison: Comparison, labels: tuple[str, str] = ("A", "B")
) -> ToldDifference:
    """Tell which of two runs is better, by how much and how sure; or that nothing shows it, and what would.

    ``known`` is what ``pair_known`` makes of the line. Shares are given in points, which are hundredths. With a margin,
    the verdict is told first.

    >>> from msgspec.structs import replace
    >>> from evalcore import MetricKey
    >>> line = ComparisonLine(name="t", key=MetricKey("acc"), n=1051, difference=-0.021, ci=(-0.038, -0.004),
    ...     stderr=0.0087, adjusted=0.015, higher_is_better=True)
    >>> known = Known(name="t", key=MetricKey("acc"), paired=True, n=1051, units=1051, stderr=0.0087, share=True)
    >>> both = Comparison(names=("a", "b"), lines=(line,))
    >>> tell_difference(line, known, both).sentence
    'B is better by 2.1 points, 95 % interval 0.4 to 3.8, 1,051 documents'
    >>> close = replace(line, difference=-0.01, ci=(-0.027, 0.007), adjusted=0.25)
    >>> tell_difference(close, known, both).sentence
    'no evidence of a difference: it would take about 6,300 documents to show one of 1.0 points as seen here (B is ...'
    >>> tell_difference(replace(close, adjusted_same=0.01), known, replace(both, margin=0.05)).sentence
    'the same within 0.05 (B is ahead by 1.0 points, 95 % interval −0.7 to 2.7, 1,051 documents)'
    """
    if line.difference is None:
        why = line.reason or "no document has a score in both runs"
        return ToldDifference(f"not compared: {why}", False, known.share)
    evidence = has_evidence(line, comparison.alpha)
    seen = _tell_seen(line, known.share, comparison, labels, evidence=evidence)
    if comparison.margin is not None:
        verdict = tell_verdict(line, comparison.alpha, labels, comparison.margin)
        return ToldDifference(f"{verdict} ({seen})", evidence, known.share)
    if evidence:
        return ToldDifference(seen, True, known.share)
    if not line.difference:
        return ToldDifference(f"{NONE}: {seen}{_tell_findable(line, known.share)}", False, known.share)
    needed = count_documents(line, known, comparison)
    if needed is None:
        why = f" ({known.reason or line.reason})" if known.reason or line.reason else ""
        told = f"how many documents it would take cannot be known{why}; {seen}"
    elif needed <= line.n:
        told = f"{_count(line.n)} would show one as large as seen here in four cases of five, and did not ({seen})"
    else:
        size = _show_amounts([abs(line.difference)], points=known.share)[0]
        unit = " points" * known.share
        told = f"it would take about {_count(needed)} to show one of {size}{unit} as seen here ({seen})"
    return ToldDifference(f"{NONE}: {told}", False, known.share, needed)


def count_documents(line: ComparisonLine, known: Known, comparison: Comparison) -> int | None:
    """Count the documents that show a difference as large as the one seen in four cases of five, to two digits.

    The test is as strict as that of the line, which is one of a family. None where the spread is unknown.
    """
    if not line.difference or not isfinite(line.difference):
        return None
    tests = max(comparison.family, 1) if comparison.correction.corrects else 1
    try:
        goal = PowerGoal(difference=abs(line.difference), alpha=(1 - comparison.confidence) / tests)
        planned = plan_next(known, goal).documents
    except EvalError:  # more documents than anyone will ever have
        return None
    return round_up(planned[0][1]) if planned and planned[0][1] is not None else None


def round_up(count: int) -> int:
    """Round a count up to two digits.

    >>> round_up(3871), round_up(99), round_up(1001)
    (3900, 99, 1100)
    """
    step = int(10 ** max(0, int(log10(max(count, 1))) - 1))
    return -(-count // step) * step


def _tell_seen(
    line: ComparisonLine, points: bool, comparison: Comparison, labels: tuple[str, str], *, evidence: bool
) -> str:
    """Tell the difference that was seen: whoever leads is better only if there is evidence of it."""
    difference = line.difference
    if not difference:
        return f"both runs come to the same value on {_count(line.n)}"
    sign = 1 if difference > 0 else -1
    first = (difference > 0) == (line.higher_is_better is not False)
    leads = "is better" if evidence else "is ahead"
    ahead, does = labels[0 if first else 1], "is higher" if line.higher_is_better is None else leads
    ends = sorted(sign * end for end in line.ci) if line.ci is not None else []
    size, *shown = _show_amounts([abs(difference), *ends], points=points)
    interval = f"{show_share(comparison.confidence)} interval {' to '.join(shown)}" if ends else "no interval"
    lower = " (lower is better)" * (line.higher_is_better is False)
    corrected = comparison.correction.corrects and comparison.family > 1 and line.adjusted is not None
    alone = corrected and not evidence and bool(ends) and ends[0] > 0
    weak = f" (no evidence after correction for {comparison.family:,} tests)" * alone
    return f"{ahead} {does} by {size}{' points' * points}{lower}, {interval}{weak}, {_count(line.n)}"


def _tell_findable(line: ComparisonLine, points: bool) -> str:
    unknown = ", so how many it would take cannot be known"
    if line.detectable is None or not isfinite(line.detectable):
        return unknown
    found = _show_amounts([line.detectable], points=points)[0]
    return f"{unknown}; one of {found}{' points' * points} would be found in four cases of five"


def _count(documents: int) -> str:
    return f"{documents:,} document{'s' * (documents != 1)}"


def _show_amounts(values: list[float], *, points: bool) -> list[str]:
    """Show amounts with the same decimals, enough that none but 0 is shown as 0.

    >>> _show_amounts([0.021, 0.0004], points=True), _show_amounts([12.3456, -1.0], points=False)
    (['2.10', '0.04'], ['12.346', '−1.000'])
    """
    scaled = [100 * value if points else value for value in values]
    for decimals in range(1 if points else 3, MOST_DECIMALS):
        shown = [f"{value:.{decimals}f}" for value in scaled]
        if all(float(text) or not value for text, value in zip(shown, scaled, strict=True)):
            return [_sign(text) for text in shown]
    return [_sign(f"{value:.2g}") for value in scaled]


def _sign(text: str) -> str:
    return (text if float(text) else text.lstrip("-")).replace("-", "−")
