"""What a cell shows: strict HTML in which no name, reply or document is obeyed, and no outcome is hidden."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evalcore
from evalcore import Answer, Estimate, Failure, Generate, Instance, MetricKey, MetricSpec, Report, Sample, Task
from evalcore.comparisons import Comparison, ComparisonLine, check_run, compare_estimates, plan_power
from evalcore.core.notebook.markup import MOST_LINES, escape_text
from evalcore.core.notebook.record_forms import FORMS
from evalcore.core.records.outcome import Counts
from evalcore.groups import Group, GroupMetric, Leaf
from evalcore.shell.output.notebook.result_forms import FORMS as RESULT_FORMS
from evalcore.testing import estimates, task_reports, texts
from evalcore.traces import diff_runs, explain_document

QUICKSTART = Path(__file__).parents[1] / "examples" / "quickstart" / "config.yaml"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'`&\x1b[2J\u202e\u2066\x00\ud800 javascript:alert(1)"
TAGS = frozenset(
    [
        "div",
        "strong",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ul",
        "li",
        "svg",
        "line",
        "circle",
        "details",
        "summary",
        "pre",
    ]
)
ATTRIBUTES = frozenset(
    [
        "style",
        "scope",
        "role",
        "aria-label",
        "width",
        "height",
        "viewbox",
        "fill",
        "stroke",
        "stroke-width",
        "opacity",
        "x1",
        "x2",
        "y1",
        "y2",
        "cx",
        "cy",
        "r",
    ]
)
VOID = frozenset({"line", "circle"})
STYLES = frozenset(
    [
        "border-collapse",
        "margin",
        "text-align",
        "padding",
        "white-space",
        "border-bottom",
        "font-weight",
        "font-size",
        "opacity",
        "overflow-x",
        "line-height",
        "padding-left",
        "border-left",
    ]
)


class Strict(HTMLParser):
    """Refuses what is not balanced, and every element, attribute and style that is not on the list."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        assert {name for name, _ in attrs} <= ATTRIBUTES, attrs
        for name, value in attrs:
            assert value is not None
            if name == "style":
                assert {part.split(":")[0] for part in value.split(";")} <= STYLES
                assert "url" not in value
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def read(html: str) -> str:
    """The text of HTML that holds nothing but what it may."""
    html.encode("utf-8")  # no lone surrogate
    assert [char for char in html if category(char)[0] == "C" and char != "\n"] == []
    parser = Strict()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return " ".join(parser.text)


def show(record: object) -> str:
    return read(record._repr_html_())  # type: ignore[attr-defined]


HURT = Estimate(
    value=0.75,
    stderr=0.1,
    ci=(0.4, 0.9),
    n=8,
    counts=Counts(scored=8, unscorable=2, failed=3),
    reason=HOSTILE,
    warnings=(HOSTILE,),
    signature=HOSTILE,
    reference=(HOSTILE, 0.5),
)


def test_an_estimate_shows_value_interval_n_and_every_outcome() -> None:
    text = show(HURT)
    for part in ("0.7500", "0.4000 to 0.9000", "8 scored, 2 unscorable, 3 failed", "alert(1)"):
        assert part in text


def test_a_number_that_is_missing_says_why() -> None:
    text = show(Estimate(value=None, n=0, reason="nothing was scored"))
    assert "none" in text
    assert "nothing was scored" in text


def hostile_report() -> Report:
    task = Task(HOSTILE, evalcore.GENERATE_UNTIL, metrics=(MetricSpec("exact_match"),))
    samples = [Sample(at, gold="4") for at in range(3)]
    replies = ("4", HOSTILE, Failure(HOSTILE))
    answers = [Answer(Instance(HOSTILE, at, 0, Generate(HOSTILE)), (one,)) for at, one in enumerate(replies)]
    done = evalcore.report_task(evalcore.score_task(task, samples, answers))
    tree = Group(HOSTILE + "g", (Leaf(HOSTILE, None),), (GroupMetric("exact_match"),), alias=HOSTILE)
    return evalcore.build_report([done], [tree])


def test_hostile_names_are_shown_and_never_obeyed() -> None:
    report = hostile_report()
    for record in (report, report.tasks[0], report.groups[0], report.trees[0], report.trees[0].children[0]):
        html = record._repr_html_()  # type: ignore[union-attr]
        assert "<script" not in html
        assert "<img" not in html
        assert "\u202e" not in html
        assert "\\u202e" in html
        assert "\x1b" not in html
        read(html)
    assert "1 failed" in show(report)


def test_hostile_comparisons() -> None:
    line = ComparisonLine(
        name=HOSTILE,
        key=MetricKey(HOSTILE, HOSTILE),
        a=0.5,
        b=0.25,
        n=12,
        difference=0.25,
        ci=(-0.1, 0.6),
        p_value=0.2,
        adjusted=0.2,
        higher_is_better=True,
        unscored=2,
        reason=HOSTILE,
    )
    comparison = Comparison(names=(HOSTILE, "b"), lines=(line,), warnings=(HOSTILE,))
    for text in (show(comparison), show(line)):
        for part in ("+0.2500", "-0.1000 to +0.6000", "2 without a score"):
            assert part in text
    assert "no evidence" in show(comparison)


def test_a_line_alone_claims_no_level_and_no_verdict() -> None:
    line = ComparisonLine(name="t", key=MetricKey("acc"), n=9, difference=0.3, ci=(0.1, 0.5), p_value=0.07)
    told = show(line)
    assert "+0.1000 to +0.5000" in told
    assert "95 %" not in told
    assert "evidence" not in told
    assert "95 % interval" in show(Comparison(names=("a", "b"), lines=(line,)))


def test_a_long_report_is_cut_with_a_count() -> None:
    one = hostile_report().tasks[0].estimates[0]
    tasks = tuple(evalcore.TaskReport(name=f"task {at}", estimates=(one,)) for at in range(MOST_LINES + 1234))
    report = Report(tasks=tasks)
    assert "and 1,234 more numbers, not shown" in show(report)
    assert len(report._repr_html_()) < 120_000


@pytest.mark.parametrize("ends", [(float("nan"),) * 2, (float("-inf"), float("inf")), (0.5, 0.5), (1e308, -1e308)])
def test_odd_numbers_are_drawn_or_left_out(ends: tuple[float, float]) -> None:
    for value in (0.5, float("inf"), float("nan"), 1e308):
        show(Estimate(value=value, ci=ends, n=3))
        show(
            Comparison(
                names=("a", "b"), lines=(ComparisonLine(name="t", key=MetricKey("m"), difference=value, ci=ends),)
            )
        )


@given(estimates())
def test_every_estimate_can_be_shown(estimate: Estimate) -> None:
    show(estimate)


@given(task_reports())
def test_every_task_report_can_be_shown(report: evalcore.TaskReport) -> None:
    show(report)
    show(Report(tasks=(report,)))


@given(texts() | st.text())
def test_text_means_itself(text: str) -> None:
    html = escape_text(text, None)
    assert not set("<>\"'") & set(html)
    read(f"<div>{html}</div>")


def test_every_form_is_of_a_record_that_shows_itself() -> None:
    assert all(callable(getattr(kind, "_repr_html_", None)) for kind in (*FORMS, *RESULT_FORMS))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[evalcore.run, Path, Path]:  # type: ignore[valid-type]
    folder = tmp_path_factory.mktemp("runs")
    result = evalcore.run(QUICKSTART, output_path=folder / "a")
    evalcore.score(
        folder / "a",
        filter='regex={"regex_pattern": "([0-9])"}',
        only="quickstart_one_step",
        metric="exact_match",
        filter_name="strict-match",
        output_path=folder / "b",
    )
    return result, folder / "a", folder / "b"


RESULTS: dict[str, tuple[Callable[[Path, Path], object], tuple[str, ...]]] = {
    "score": (
        lambda a, b: evalcore.score(a, metric="f1", only="quickstart_one_step"),
        ("95 % interval", "scored again", "documents: "),
    ),
    "compare": (
        lambda a, b: evalcore.compare(a, b, task="quickstart_one_step", rules_may_differ=True),
        ("A − B", "verdict", "95 % interval"),
    ),
    "check": (lambda a, b: check_run(a, min="quickstart_nature/acc=0.99"), ("FAILED", "nature")),
    "power": (lambda a, b: plan_power(a, difference=0.05, task="quickstart_nature"), ("n needed", "nature")),
    "explain": (
        lambda a, b: explain_document(a, 3, task="quickstart_one_step"),
        ("Prompt", "Answer", "Gold", "Scores", "Contribution"),
    ),
    "diff": (lambda a, b: diff_runs(a, b, task="quickstart_one_step"), ("verdict", "before:", "after:")),
}


@pytest.mark.parametrize("name", RESULTS)
def test_what_a_command_found_is_shown(runs: tuple[object, Path, Path], name: str) -> None:
    make, parts = RESULTS[name]
    text = show(make(*runs[1:]))
    assert [part for part in parts if part not in text] == []


def test_a_run_is_shown_with_its_ledger(runs: tuple[object, Path, Path]) -> None:
    text = show(runs[0])
    for part in ("recorded", "0.7286", "0.6106 to 0.8212", "0 unscorable, 0 failed, 0 not run"):
        assert part in text


def test_ipython_takes_it(runs: tuple[object, Path, Path]) -> None:
    formatters = pytest.importorskip(
        "IPython.core.formatters", reason='needs IPython: pip install "evalcore[notebook]"'
    )
    shown, _ = formatters.DisplayFormatter().format(runs[0])
    assert shown["text/html"] == runs[0]._repr_html_()  # type: ignore[attr-defined]
    assert shown["text/plain"].startswith("RunResult(")


def test_no_module_is_loaded_for_it_before_it_is_asked_for() -> None:
    code = "import sys, evalcore; evalcore.Report, evalcore.run, evalcore.compare; print(*(m for m in sys.modules if '.notebook' in m))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_difference_is_shown() -> None:
    report = hostile_report()
    same = report.tasks[0].estimates[0][1]
    assert "method" in show(compare_estimates(same, same))
