"""Every place that says which run is better says the same: tables, JSON, sentences, notebooks, the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from evalcore import MetricKey
from evalcore.core.compare.lines import CORRECTIONS, NO_CORRECTION, Comparison, ComparisonLine, ComparisonSide
from evalcore.core.compare.power import Known
from evalcore.core.compare.verdicts.sentences import tell_difference
from evalcore.core.notebook.contrasts import write_lines
from evalcore.shell.compare.compare import Compared
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.output.compare.footnotes import sum_up
from evalcore.shell.output.compare.renderers import describe_line
from evalcore.shell.report.comparison import describe_comparison

KEY = MetricKey("acc")
APART, ACROSS = (0.05, 0.35), (-0.05, 0.45)


@pytest.mark.parametrize(
    ("confidence", "adjusted", "ci", "found"),
    [
        (0.95, 0.04, APART, True),
        (0.95, 0.04, ACROSS, False),
        (0.95, 0.06, APART, False),
        (0.95, 0.05, APART, True),
        (0.9, 0.1, APART, True),  # 1 - 0.9 is a float below 0.1
        (0.8, 0.2, APART, True),
        (0.99, 0.01, APART, True),
        (0.95, 0.04, None, True),
        (0.95, None, APART, None),
    ],
)
def test_all_places_agree(
    confidence: float, adjusted: float | None, ci: tuple[float, float] | None, found: bool | None
) -> None:
    line = ComparisonLine(
        name="t", key=KEY, n=60, difference=0.2, ci=ci, stderr=0.08, adjusted=adjusted, higher_is_better=True
    )
    both = Comparison(names=("a", "b"), lines=(line,) * 4, confidence=confidence, family=4)
    compared = Compared(runs=(), names=("a", "b"), pairs=((0, 1),), comparisons=(both,))
    wanted = {True: "A better", False: "no evidence", None: "not tested"}[found]
    assert describe_line(line, compared.alpha)["verdict"] == wanted
    assert sum_up(compared).lines == (f"{wanted}: 4 of 4 numbers",)
    assert write_lines(both).count(wanted) == 4
    told = tell_difference(line, Known(name="t", key=KEY, paired=True, n=60, units=60, stderr=0.08, share=True), both)
    assert told.evidence is bool(found)
    run = Recorded("run", Path("run"), ComparisonSide("run", ()), {}, {}, ())
    page, _ = describe_comparison(replace(compared, runs=(run, run)), ({}, {}), ({}, {}))
    drawn = page["pairs"][0]["lines"][0]  # type: ignore[index]
    assert (drawn["verdict"], drawn["evidence"]) == (wanted, bool(found))
    assert told.sentence.startswith("A is better by 20.0 points" if found else "no evidence of a difference")
    assert ("is better" in told.sentence) is bool(found)


def test_an_interval_without_0_is_no_evidence_after_correction() -> None:
    """The interval is of one test, the verdict of all: both stand in the sentence, which must not contradict itself."""
    line = ComparisonLine(name="t", key=KEY, n=35, difference=0.3, ci=APART, stderr=0.1, adjusted=0.08)
    line = replace(line, higher_is_better=True)
    known = Known(name="t", key=KEY, paired=True, n=35, units=35, stderr=0.1, share=True)
    both = Comparison(names=("a", "b"), lines=(line,), correction=CORRECTIONS["holm"], family=63)
    told = tell_difference(line, known, both).sentence
    assert told.startswith("no evidence of a difference: it would take about ")
    assert "(A is ahead by 30.0 points, 95 % interval " in told
    assert "(no evidence after correction for 63 tests), 35 documents)" in told
    assert "after correction" not in tell_difference(line, known, replace(both, correction=NO_CORRECTION)).sentence
    assert "after correction" not in tell_difference(replace(line, adjusted=0.01), known, both).sentence
