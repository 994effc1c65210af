"""Who is better, and differences that do not matter: the same within a margin, not worse by more than it."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from msgspec.structs import replace

from evalcore.core.compare.lines import Comparison, ComparisonLine, has_evidence, too_few
from evalcore.core.stats.quantiles import t_cdf, t_quantile
from evalcore.core.stats.sample_size import Variances, find_distance, reach_of_test

_MOST = 1e300


def exclude_drop(line: ComparisonLine, margin: float, confidence: float) -> float | None:
    """Return the p-value of "not worse by as much as the margin": small if a run that much worse never looks this good.

    ``confidence`` is that of the line's interval, whose error and middle make the test. Right and wrong answers of
    independent documents are tested by their counts. None without an interval.

    >>> from evalcore.core.records.task import MetricKey
    >>> line = ComparisonLine(name="t", key=MetricKey("ppl"), difference=0.0, ci=(-1.0, 1.0), n=60, clusters=31)
    >>> round(exclude_drop(line, t_quantile(0.95, 30) / t_quantile(0.975, 30), 0.95), 6)
    0.05
    """
    return _exclude(line, _count_flips(line), line.higher_is_better is False, margin, confidence)


def exclude_rise(line: ComparisonLine, margin: float, confidence: float) -> float | None:
    """Return the p-value of "not better by as much as the margin", as ``exclude_drop``."""
    flips = _count_flips(line)
    return _exclude(
        line, None if flips is None else flips[::-1], line.higher_is_better is not False, margin, confidence
    )


def _exclude(
    line: ComparisonLine, flips: tuple[int, int] | None, mirrored: bool, margin: float, confidence: float
) -> float | None:
    """Exclude that a line, or its mirror image, is as low as minus the margin, by the lower side of its interval."""
    if line.ci is None or _count_units(line) < 2:
        return None
    if flips is not None and margin < 1:
        return score_margin(line.n, *flips, margin)
    made = line.interval
    df = _count_units(line) - 1.0 if made is None else made.df
    middle = sum(line.ci) / 2 if made is None else made.middle
    sides = (middle - line.ci[0], line.ci[1] - middle) if made is None else made.measure_sides(confidence)
    side = sides[1] if mirrored else sides[0]
    error = side / t_quantile((1 + confidence) / 2, df)
    return t_cdf(-((-middle if mirrored else middle) + margin) / error, df) if error > 0 else None


def score_margin(n: int, wins: int, losses: int, margin: float) -> float:
    """Return the p-value of "not worse by as much as the margin" for right and wrong answers to n documents.

    Tango's score test (1998), whose variance is that of a run exactly so much worse, less half a document: without it,
    up to 6 % of such runs pass at 5 %; with it, 4.9 at most.

    >>> round(score_margin(1000, 12, 10, 0.01), 4), round(score_margin(300, 0, 0, 0.01), 4)
    (0.0125, 0.0734)
    """
    linear, constant = (2 * n - wins + losses) * -margin - wins - losses, losses * margin * (1 + margin)
    share = (sqrt(linear * linear - 8 * n * constant) - linear) / (4 * n)  # of losses, at best, with such a drop
    variance = n * (2 * share - margin * (1 + margin))
    return t_cdf(-(wins - losses + n * margin - 0.5) / sqrt(variance), float("inf")) if variance > 0 else 1.0


def hold_to_margin(comparisons: Sequence[Comparison], margin: float) -> tuple[Comparison, ...]:
    """Test every line of corrected comparisons for being the same within the margin, and correct these tests alike.

    Two one-sided tests at level alpha: both a drop and a rise by the margin must be excluded (Schuirmann 1987), as if
    the interval of confidence 1 - 2 alpha lay within the margin.
    """
    p_values = [_test_same(line, margin, one.confidence) for one in comparisons for line in one.lines]
    adjusted = comparisons[0].correction.adjust(p_values) if comparisons else ()
    tested = zip(p_values, adjusted, strict=True)
    return tuple(
        replace(one, margin=margin, lines=tuple(_add_test(line, *next(tested)) for line in one.lines))
        for one in comparisons
    )


def _add_test(line: ComparisonLine, p_same: float | None, adjusted: float | None) -> ComparisonLine:
    return replace(line, p_same=p_same, adjusted_same=adjusted)


def _test_same(line: ComparisonLine, margin: float, confidence: float) -> float | None:
    drop, rise = exclude_drop(line, margin, confidence), exclude_rise(line, margin, confidence)
    return None if drop is None or rise is None else max(drop, rise)


def tell_verdict(
    line: ComparisonLine, alpha: float, labels: tuple[str, str] = ("A", "B"), margin: float | None = None
) -> str:
    """Say who is better; with a margin also whether the difference matters, or that there are too few documents to say.

    >>> from evalcore.core.records.task import MetricKey
    >>> line = ComparisonLine(name="t", key=MetricKey("ppl"), difference=2.0, adjusted=0.01, higher_is_better=False)
    >>> tell_verdict(line, 0.05), tell_verdict(line, 0.001), tell_verdict(replace(line, higher_is_better=None), 0.05)
    ('B better', 'no evidence', 'A higher')
    >>> line = ComparisonLine(name="t", key=MetricKey("acc"), difference=0.004, adjusted=0.4, adjusted_same=0.01)
    >>> tell_verdict(line, 0.05, margin=0.01), tell_verdict(replace(line, adjusted_same=0.2), 0.05, margin=0.01)
    ('the same within 0.01', 'not enough documents')
    >>> tell_verdict(replace(line, adjusted=0.01, higher_is_better=True), 0.05, margin=0.01)
    'A better, by less than 0.01'
    """
    plain = _name_better(line, alpha, labels)
    if margin is None or (line.adjusted is None and line.adjusted_same is None):
        return plain
    same = line.adjusted_same is not None and line.adjusted_same <= alpha
    if has_evidence(line, alpha):
        return f"{plain}, by less than {margin:g}" if same else plain
    return f"the same within {margin:g}" if same else "not enough documents"


def find_drop(
    line: ComparisonLine, alpha: float, margin: float = 0.0, others: Sequence[ComparisonLine] = ()
) -> float | None:
    """Find the smallest true drop that a one-sided test at this level finds in four cases of five; None if it cannot.

    With a margin, the test is whether the drop exceeds it. A drop larger than the observed one adds documents on which
    the runs differ, by as much as they do on others: by 1 where answers are right or wrong. In a group, that is taken
    from the tasks among the ``others``.

    >>> from evalcore.core.records.task import MetricKey
    >>> line = ComparisonLine(name="t", key=MetricKey("acc"), difference=0.0, stderr=0.0, ci=(-0.01, 0.01), n=300)
    >>> round(find_drop(line, 0.05), 4)             # 6 documents of 300
    0.0207
    """
    units = _count_units(line)
    if line.ci is None or line.stderr is None or line.difference is None or units < 2 or too_few(line, 2 * alpha):
        return None
    own, jump = units * line.stderr * line.stderr, _find_jump(line, others)
    if not own + jump * jump + margin * margin < _MOST:  # no float would hold the variance of such a drop
        return None
    seen = max(abs(line.difference) - line.stderr, 0.0)  # what luck does not explain

    def spread_at(beyond: float) -> Variances:
        return Variances(own + jump * max(beyond + margin - seen, 0.0))

    return margin + find_distance(units, spread_at, 1.0, reach_of_test(2 * alpha))


# --- parts ------------------------------------------------------------------------------------------------------------


def _name_better(line: ComparisonLine, alpha: float, labels: tuple[str, str]) -> str:
    """Name the run that is better, if luck does not explain it."""
    if line.adjusted is None or line.difference is None:
        return "not tested"
    if not has_evidence(line, alpha):
        return "too few to tell" if too_few(line, alpha) else "no evidence"
    first = (line.difference > 0) is (line.higher_is_better is not False)
    return f"{labels[0] if first else labels[1]} {'higher' if line.higher_is_better is None else 'better'}"


def _count_units(line: ComparisonLine) -> int:
    """Count what is independent: documents or clusters."""
    return line.n if line.clusters is None else line.clusters


def _sum_squares(line: ComparisonLine) -> float:
    """Sum the squared differences of independent documents."""
    error, apart = line.stderr or 0.0, line.difference or 0.0
    return error * error * line.n * (line.n - 1) + line.n * apart * apart


def _count_flips(line: ComparisonLine) -> tuple[int, int] | None:
    """Count the documents where the first run alone is right, and those where it alone is wrong.

    None unless documents are independent and every one on which the runs differ differs by 1, between 0 and 1.
    """
    wins, losses = len(line.better), len(line.worse)
    beyond = any(value is not None and not 0 <= value <= 1 for value in (line.a, line.b))
    if line.group or line.clusters is not None or line.stderr is None or beyond:
        return None
    return (wins, losses) if abs(_sum_squares(line) - wins - losses) < 1e-6 * max(wins + losses, 1) else None


def _find_jump(line: ComparisonLine, others: Sequence[ComparisonLine] = ()) -> float:
    """Find by how much the variance grows with a drop: as much as the runs differ on a document where they do.

    It is 0 where only the error is known. A cluster varies as its documents do, together or apart as now.
    """
    wins, losses = len(line.better), len(line.worse)
    if not line.stderr:
        return 1.0
    if line.group:
        jumps = [_find_jump(one) for one in others if one.key == line.key and not one.group and one.stderr]
        return sum(jumps) / len(jumps) if jumps else 0.0
    if line.clusters is None or not wins + losses:
        return sqrt(_sum_squares(line) / (wins + losses)) if wins + losses else 0.0
    whole = abs(abs(wins - losses) - line.n * abs(line.difference or 0.0)) < 1e-6 * line.n
    return _count_units(line) * line.stderr * line.stderr * line.n / (wins + losses) if whole else 0.0
