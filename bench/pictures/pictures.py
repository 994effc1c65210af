"""Which numbers are drawn how."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from bench.pictures.drawing import OURS, PALE, THEIRS, Axis, Mark, Row, draw_curves, draw_rows
from bench.pictures.numbers import (
    TRUTH,
    Interval,
    close_hits,
    compare_published,
    draw_studies,
    reach_around,
    read_interval,
    run_quickstart,
)
from bench.simulations.coverage import WAYS, sum_exactly

SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
PLAIN, EVALCORE = "value ± 1.96 standard errors", "evalcore"


def draw_pictures() -> Iterator[tuple[str, str]]:
    """Every picture with the name of its file."""
    yield "near-the-ends.svg", draw_ends()
    yield "how-often.svg", draw_promise()
    yield "ways.svg", draw_ways()
    yield "clusters.svg", draw_clusters()
    yield "paired.svg", draw_pairs()
    yield "repeats.svg", draw_repeats()
    yield "groups.svg", draw_groups()


def draw_ends() -> str:
    cases = ((5, 10), (9, 10), (10, 10), (20, 20), (0, 20), (96, 100), (960, 1000))
    rows = [
        Row(f"{hits} of {n:,} right", (Mark(reach_around(hits, n), THEIRS), Mark(close_hits(hits, n), OURS)), 34)
        for hits, n in cases
    ]
    axis = Axis(-0.15, 1.15, SHARES, ends=(0.0, 1.0))
    return draw_rows("Two 95 % intervals for a share of right answers", [(PLAIN, THEIRS), (EVALCORE, OURS)], rows, axis)


def draw_promise() -> str:
    chances = [0.5 + step / 200 for step in range(100)]
    curves = [
        (label, colour, [(p, sum_exactly(WAYS[name], 30, p)) for p in chances])
        for label, colour, name in ((PLAIN, THEIRS, "lm-eval, value ± 1.96 `stderr`"), (EVALCORE, OURS, "evalcore"))
    ]
    below = Axis(0.5, 1.0, (0.5, 0.6, 0.7, 0.8, 0.9, 1.0))
    beside = Axis(0.0, 1.0, (0.0, 0.2, 0.4, 0.6, 0.8, 0.95), lines=(0.95,))
    title = "How often a 95 % interval from 30 questions holds the truth"
    return draw_curves(title, curves, below, beside, "the model's true chance of a right answer")


def draw_ways() -> str:
    ways = ("wilson", "exact", "t", "percentile", "bca", "z")
    rows = [Row(ci, (Mark(close_hits(28, 30, ci=ci), OURS if ci == "wilson" else PALE),)) for ci in ways]
    legend = [("default", OURS), ("on request", PALE)]
    axis = Axis(0.6, 1.0, (0.6, 0.7, 0.8, 0.9, 1.0))
    return draw_rows("28 of 30 right, by each kind of interval", legend, rows, axis)


def draw_clusters() -> str:
    studies = list(draw_studies())
    rows: list[Row] = []
    for which, name in ((0, "as 100 questions"), (1, "as 20 passages")):
        own = [study[which] for study in studies]
        missed = sum(not one.low <= TRUTH <= one.high for one in own)
        for at, one in enumerate(own):
            label = {17: name, 20: f"{missed} of {len(own)} miss"}.get(at, "")
            rows.append(Row(label, (Mark(one, OURS if one.low <= TRUTH <= one.high else THEIRS),), 7))
        rows.append(Row("", (), 16))
    legend = [("holds the truth", OURS), ("misses it", THEIRS)]
    axis = Axis(0.2, 1.0, (0.2, 0.4, 0.6, 0.8, 1.0), lines=(TRUTH,))
    return draw_rows("40 studies: 5 questions about each of 20 passages", legend, rows[:-1], axis)


def draw_pairs() -> str:
    a, b, apart, paired = compare_published()
    rows = [
        Row("A, 515 of 1,319", (Mark(a, PALE, _tell(a)),)),
        Row("B, 458 of 1,319", (Mark(b, PALE, _tell(b)),)),
        Row("", (), 12),
        Row("A − B, other questions", (Mark(apart, THEIRS, _tell(apart)),)),
        Row("A − B, the same questions", (Mark(paired, OURS, _tell(paired)),)),
    ]
    legend = [("a score", PALE), ("unpaired", THEIRS), ("paired", OURS)]
    axis = Axis(-0.05, 0.55, (0.0, 0.1, 0.2, 0.3, 0.4, 0.5), lines=(0.0,))
    return draw_rows("Two models on GSM8K", legend, rows, axis)


def draw_repeats() -> str:
    estimate = run_quickstart().task("quickstart_simple_questions")["exact_match@mean,first-word"]
    drawing = estimate.spread.noise or 0.0
    questions = sqrt((estimate.stderr or 0.0) ** 2 - drawing)
    rows = []
    for name, replies, more in (
        ("1 reply to each of 30", 1, 1),
        ("4 replies (as run)", 4, 1),
        ("16 replies", 16, 1),
        ("1,000 replies", 1000, 1),
        ("4 replies to each of 120", 4, 4),
    ):
        error = sqrt((questions**2 + drawing * 4 / replies) / more)
        bars = Mark(Interval(0, 0, error), OURS if more > 1 else PALE, f"± {100 * error:.1f} points", bar=True)
        rows.append(Row(name, (bars,)))
    axis = Axis(0.0, 0.12, (0.0, 0.02, 0.04, 0.06, 0.08, 0.1), lines=(questions,))
    return draw_rows("Standard error of the quickstart's “simple questions”", [], rows, axis)


def draw_groups() -> str:
    report = run_quickstart()
    rows = []
    for name, colour in (("nature", PALE), ("world", PALE), ("knowledge", OURS)):
        of = report.group if name == "knowledge" else report.task
        estimate = of(f"quickstart_{name}")["acc,none"]
        at = read_interval(estimate)
        rows.append(Row(f"{name}, n = {estimate.n}", (Mark(at, colour, _tell(at)),)))
    legend = [("a task", PALE), ("the group", OURS)]
    axis = Axis(0.4, 1.0, (0.4, 0.6, 0.8, 1.0))
    return draw_rows("Two tasks of the quickstart, and their group", legend, rows, axis)


def _tell(at: Interval) -> str:
    return f"{100 * at.value:.1f} ({100 * at.low:.1f} to {100 * at.high:.1f})"
