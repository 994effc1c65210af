"""``evalcore compare`` on run folders: numbers against live oracles, laws, what could not be paired, safe output."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace
from rich.cells import cell_len
from scipy.stats import binom
from small_tasks import evalcore_here, write_tasks
from statsmodels.stats.multitest import multipletests

from evalcore.core.compare.lines import CORRECTIONS, Comparison, ComparisonLine, ComparisonSide, Shared
from evalcore.core.groups.tree import Group, GroupMetric, Leaf
from evalcore.core.records.task import MetricKey
from evalcore.shell.cli import main
from evalcore.shell.compare.compare import Compared
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.output.compare.renderers import RENDERERS, build_page
from evalcore.shell.output.terminal.grid import draw_page
from evalcore.shell.output.terminal.screen import Screen, render_form

RUNS = {"one": 1, "two": 2, "three": 3}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models on the small tasks, and one run that has fewer documents and fewer tasks."""
    folder = tmp_path_factory.mktemp("compare")
    write_tasks(folder / "tasks", 40)
    common = ("--model", "dummy", "--include_path", "tasks", "--quiet")
    for name, seed in RUNS.items():
        done = evalcore_here(
            folder, "run", *common, "--tasks", "small", "--model_args", f"seed={seed}", "--output_path", name
        )
        assert done.returncode == 0, done.stderr
    done = evalcore_here(
        folder, "run", *common, "--tasks", "places", "--limit", 30, "--model_args", "seed=2", "--output_path", "less"
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(home)
    return home


def told(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    assert main(["compare", *map(str, arguments)]) == code
    out = capsys.readouterr()
    return out.out if code == 0 else out.err


def data(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, object]:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    return json.loads(told(capsys, *arguments, "--json"), parse_constant=refuse)


def lines(found: dict[str, object], pair: int = 0) -> dict[tuple[str, str], dict[str, object]]:
    return {(line["task"], f"{line['metric']},{line['filter']}"): line for line in found["pairs"][pair]["lines"]}


pytestmark = pytest.mark.usefixtures("at_home")


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_differences_are_those_of_the_results_files(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    one, two = (json.loads((home / name / "results.json").read_text())["results"] for name in ("one", "two"))
    found = lines(data(capsys, "one", "two"))
    assert {name for name, _ in found} == {"places", "sums", "guesses", "lines", "small::texts"}
    for (name, key), line in found.items():
        assert line["a"] == pytest.approx(one[name][key], abs=1e-12)
        assert line["b"] == pytest.approx(two[name][key], abs=1e-12)
        assert line["difference"] == pytest.approx(one[name][key] - two[name][key], abs=1e-12)


def test_tests_and_corrections_are_those_of_scipy_and_statsmodels(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    scores = [
        {row["doc_id"]: row["acc"] for row in map(json.loads, (home / name / "samples_places.jsonl").open())}
        for name in ("one", "two")
    ]
    better = sorted(doc for doc, score in scores[0].items() if score > scores[1][doc])
    worse = sorted(doc for doc, score in scores[0].items() if score < scores[1][doc])
    found = data(capsys, "one", "two")
    line = lines(found)["places", "acc,none"]
    assert (line["better"], line["worse"]) == (better, worse)
    few, differing = min(len(better), len(worse)), len(better) + len(worse)
    mid_p = min(1.0, 2 * binom.cdf(few, differing, 0.5) - binom.pmf(few, differing, 0.5))
    assert line["p_value"] == pytest.approx(mid_p, abs=1e-12)
    raw = [line["p_value"] for line in found["pairs"][0]["lines"]]
    assert found["family"] == len(raw)
    for option, method in (("holm", "holm"), ("bh", "fdr_bh")):
        adjusted = [
            one["p_adjusted"] for one in data(capsys, "one", "two", "--correction", option)["pairs"][0]["lines"]
        ]
        assert adjusted == pytest.approx(list(multipletests(raw, method=method)[1]), abs=1e-12)
    uncorrected = data(capsys, "one", "two", "--correction", "none")["pairs"][0]["lines"]
    assert [one["p_adjusted"] for one in uncorrected] == raw


def test_a_run_against_itself_is_zero_with_p_1(capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, "one", "one")
    assert [run["name"] for run in found["runs"]] == ["one", "one (2)"]
    for line in found["pairs"][0]["lines"]:
        assert (line["difference"], line["p_value"], line["p_adjusted"]) == (0.0, 1.0, 1.0)
        assert (line["better"], line["worse"], line["verdict"]) == ([], [], "no evidence")
        assert line["ci_low"] is None or line["ci_low"] <= 0 <= line["ci_high"]


def test_swapping_the_runs_flips_signs(capsys: pytest.CaptureFixture[str]) -> None:
    there, back = lines(data(capsys, "one", "two")), lines(data(capsys, "two", "one"))
    assert there.keys() == back.keys()
    for key, line in there.items():
        assert line["difference"] == pytest.approx(-back[key]["difference"], abs=1e-12)
        assert line["p_value"] == pytest.approx(back[key]["p_value"], abs=1e-12)
        assert line["better"] == back[key]["worse"]


def test_three_runs_are_all_pairs_in_one_family(capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, "one", "two", "three")
    assert [(pair["a"], pair["b"]) for pair in found["pairs"]] == [("A", "B"), ("A", "C"), ("B", "C")]
    alone = data(capsys, "one", "three")["pairs"][0]["lines"]
    every = [line["p_value"] for pair in found["pairs"] for line in pair["lines"]]
    assert found["family"] == len(every) == 3 * len(alone)
    assert [line["p_value"] for line in found["pairs"][1]["lines"]] == [line["p_value"] for line in alone]
    adjusted = [line["p_adjusted"] for pair in found["pairs"] for line in pair["lines"]]
    assert adjusted == pytest.approx(list(multipletests(every, method="holm")[1]), abs=1e-12)
    text = told(capsys, "one", "two", "three")
    assert "− A" in text
    assert "− C" in text
    rows = [line.split() for line in text.splitlines() if line.strip().startswith("places") and " acc " in line]
    acc = lines(found)["places", "acc,none"]["difference"]
    assert f"{acc:+.4f}" in rows[0]
    below = next(line for line in text.splitlines() if line.split()[:1] == ["B"])
    assert f"{-acc:+.4f}" in below


def test_only_what_is_asked_for_is_shown_and_corrected(capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, "one", "two", "--task", "pl*", "--metric", "acc")
    assert list(lines(found)) == [("places", "acc,none")]
    assert found["family"] == 1
    assert "did you mean 'places'" in told(capsys, "one", "two", "--task", "place", code=2)
    assert "unknown metric" in told(capsys, "one", "two", "--metric", "accuracy", code=2)
    assert "nothing to compare" in told(capsys, "one", "two", "--task", "sums", "--metric", "acc", code=2)


def test_documents_of_a_cluster_count_together(capsys: pytest.CaptureFixture[str]) -> None:
    plain, alone, shared = (
        lines(data(capsys, "one", "two", "--metric", "acc", *cluster))["places", "acc,none"]
        for cluster in ((), ("--cluster", "city"), ("--cluster", "b"))
    )
    assert [alone["difference"], shared["difference"]] == pytest.approx([plain["difference"]] * 2, abs=1e-12)
    assert alone["stderr"] != pytest.approx(shared["stderr"], rel=1e-6)
    assert "sign-flip" in shared["method"]  # McNemar's test has no clusters
    assert "McNemar" in plain["method"]


def test_too_few_sign_flips_to_find_anything_are_told(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    """Corpus metrics need draws; means of documents, and groups of these, do not."""
    assert data(capsys, "one", "two", "--draws", 1)["warnings"] == []
    task = yaml.safe_load((home / "tasks/sums.yaml").read_text())
    corpus = {**task, "task": "corpus", "metric_list": [{"metric": "bleu"}, {"metric": "chrf"}]}
    (home / "tasks/corpus.yaml").write_text(yaml.safe_dump(corpus))
    for seed in (1, 2):
        arguments = ("--tasks", "corpus", "--model_args", f"seed={seed}", "--output_path", f"corpus{seed}")
        done = evalcore_here(home, "run", "--model", "dummy", "--include_path", "tasks", "--quiet", *arguments)
        assert done.returncode == 0, done.stderr
    (warning,) = data(capsys, "corpus1", "corpus2", "--draws", 30)["warnings"]
    assert "too few sign flips to show anything among 4 tests" in warning
    assert warning in told(capsys, "corpus1", "corpus2", "--draws", 30)
    assert main(["check", "corpus1", "--baseline", "corpus2", "--draws", "15"]) == 0
    assert "too few sign flips" in capsys.readouterr().out
    assert data(capsys, "corpus1", "corpus2")["warnings"] == []
    assert "sign-flip test, 10,000 draws" in data(capsys, "corpus1", "corpus2")["pairs"][0]["lines"][0]["method"]


def test_intervals_and_detectable_differences_are_widened_for_the_number_of_rows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = data(capsys, "one", "two")
    alone = data(capsys, "one", "two", "--confidence", 1 - 0.05 / found["family"], "--correction", "none")
    rows = list(csv.DictReader(io.StringIO(told(capsys, "one", "two", "--csv"))))
    for line, wide, row in zip(found["pairs"][0]["lines"], alone["pairs"][0]["lines"], rows, strict=True):
        ends = line["adjusted_ci_low"], line["adjusted_ci_high"]
        assert ends == pytest.approx((wide["ci_low"], wide["ci_high"]), abs=1e-9)
        assert ends[0] <= line["ci_low"] <= line["ci_high"] <= ends[1]
        assert line["detectable"] == pytest.approx(wide["detectable"], rel=1e-9)
        assert float(row["adjusted_ci_high"]) == pytest.approx(ends[1], abs=1e-9)
    assert "adjusted interval" in told(capsys, "one", "two", "--markdown")
    assert "adjusted interval" not in told(capsys, "one", "two", "--markdown", "--correction", "none")


# --- what could not be paired -----------------------------------------------------------------------------------------


def test_what_only_one_run_has_is_told_in_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    (pair,) = data(capsys, "one", "less")["pairs"]
    assert pair["tasks_only_a"] == ["sums", "guesses", "lines"]
    (documents,) = pair["documents"]
    assert (documents["both"], documents["only_a"], documents["only_b"]) == (30, list(range(30, 40)), [])
    for form in ((), ("--markdown",)):
        text = told(capsys, "one", "less", "--unmatched", 2, *form)
        assert "places: 10 only in A (both have 30): 30 “" in text
        assert "and 8 more" in text
        assert "only in A: sums, guesses, lines" in text
    assert main(["compare", "one", "less", "--csv"]) == 0
    assert "10 only in A" in capsys.readouterr().err
    whole = told(capsys, "less", "one", "--unmatched", "all")
    assert "10 only in B" in whole
    assert " 39 “" in whole
    assert "more" not in whole.partition("not compared:")[2].partition("\n\n")[0]


def test_flipped_documents_are_listed_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Flipped" not in told(capsys, "one", "two")
    line = lines(data(capsys, "one", "two"))["places", "acc,none"]
    text = told(capsys, "one", "two", "--flips", 1)
    assert f"places acc: A does better on {len(line['better'])}: {line['better'][0]} “" in text
    assert f"places acc: B does better on {len(line['worse'])}: {line['worse'][0]} “" in text
    every = told(capsys, "one", "two", "--flips", "all")
    assert all(f" {doc} “" in every for doc in line["better"])


# --- forms ------------------------------------------------------------------------------------------------------------


def test_the_table_says_which_is_which_and_what_is_what(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "one", "two", "--names", "new, old", "--confidence", "0.9")
    assert text.startswith("A: new (one)\nB: old (two)\n")
    head = text.splitlines()[3]
    for name in ("Tasks", "Metric", "A − B", "90 % interval", "adjusted p", "detectable", "better : worse", "verdict"):
        assert name in head
    assert "A − B: A's number minus B's" in text
    assert "corrected together: 10 tests (holm)" in text
    assert "at most 0.1 and the interval lacks 0;" in text
    assert "\n - sums" in text  # below small::texts, which has numbers of its own; small has none


def test_csv_is_a_row_for_every_line_of_every_pair(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(told(capsys, "one", "two", "three", "--csv"))))
    every = [line for pair in data(capsys, "one", "two", "three")["pairs"] for line in pair["lines"]]
    assert [float(row["difference"]) for row in rows] == [line["difference"] for line in every]
    assert [int(row["n_better"]) for row in rows] == [len(line["better"]) for line in every]
    assert {(row["run_a"], row["run_b"]) for row in rows} == {("one", "two"), ("one", "three"), ("two", "three")}


@pytest.mark.parametrize(
    "arguments",
    [
        ("one",),
        ("one", "nowhere"),
        ("one", "tasks"),
        ("one", "two", "--names", "a"),
        ("one", "two", "--confidence", "95"),
        ("one", "two", "--correction", "bonferoni"),
        ("one", "two", "--draws", "0"),
        ("one", "two", "--cluster", "no_such_field"),
    ],
)
def test_bad_input_is_a_message_and_exit_code_2(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert main(["compare", *arguments]) == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.startswith("evalcore: ")
    assert "unexpected" not in out.err


# --- pages of hand-made values ------------------------------------------------------------------------------------------

EVIL = "\x1b[31m=bad|\u202e`x`"
LINE = ComparisonLine(
    name="t",
    key=MetricKey("acc"),
    a=0.75,
    b=0.5,
    n=1200,
    difference=0.25,
    ci=(0.1, 0.4),
    p_value=0.00001,
    adjusted=0.00002,
    detectable=0.2,
    higher_is_better=True,
    better=(0,),
)


def compared_of(*found: ComparisonLine, name: str = "run", **parts: object) -> Compared:
    tree = Group("g", (Leaf("t", None),), (GroupMetric("acc"),))
    run = Recorded(
        name, Path(name), ComparisonSide(name, (), {}, (tree,)), {}, {"t": {0: name + " asks"}}, (name + " warns",)
    )
    comparison = Comparison(names=(name, name), lines=found, correction=CORRECTIONS["holm"], family=len(found), **parts)  # type: ignore[arg-type]
    return Compared(runs=(run, run), names=(name, name + "2"), pairs=((0, 1),), comparisons=(comparison,), flips=None)


def test_a_run_compared_with_itself_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert "- A and C are the same run: one" in told(capsys, "one", "two", "one/")
    assert "the same run" not in told(capsys, "one", "two")


def test_untrusted_text_is_never_obeyed() -> None:
    line = replace(LINE, name=EVIL, reason=EVIL, higher_is_better=None)
    shown = compared_of(
        LINE, line, name=EVIL, documents=(Shared("t", 1, (0,), (0,)),), tasks_only_a=(EVIL,), warnings=(EVIL,)
    )
    for form in RENDERERS:
        text = render_form(RENDERERS, form, shown)
        assert "\x1b" not in text, form
        assert "\u202e" not in text, form
    assert not any(
        row.startswith("=") for row in render_form(RENDERERS, "csv", compared_of(LINE, name="=1+1")).splitlines()
    )
    assert "\\|" in render_form(RENDERERS, "markdown", shown)


@pytest.mark.parametrize("width", [150, 120, 100, 80])
def test_a_page_fits_the_terminal_and_keeps_the_verdict(width: int) -> None:
    group = replace(LINE, name="g", group=True, better=())
    text = draw_page(build_page(compared_of(group, LINE)), Screen(width))
    table = text.split("\n\n")[1].splitlines()
    assert all(cell_len(line) <= width for line in table)
    assert sum("A better" in line for line in table) == 2
    assert any(line.startswith(" - t") for line in table)


def test_verdicts_rest_on_the_adjusted_p_and_reasons_are_told() -> None:
    lost = replace(
        LINE, key=MetricKey("f1"), difference=None, p_value=None, adjusted=None, reason="no document in both"
    )
    text = render_form(RENDERERS, "table", compared_of(replace(LINE, adjusted=0.2, unscored=3), lost))
    assert "no evidence" in text
    assert "A better" not in text
    assert "f1: no document in both (t)" in text
    assert "t acc: 3" in text
    assert "not tested" in text


def test_a_star_marks_what_luck_does_not_explain() -> None:
    two = compared_of(LINE)
    calm = replace(two.comparisons[0], lines=(replace(LINE, adjusted=0.3),))
    three = replace(
        two,
        runs=two.runs * 2,
        names=("a", "b", "c", "d"),
        pairs=((0, 1), (0, 2)),
        comparisons=(two.comparisons[0], calm),
    )
    text = render_form(RENDERERS, "table", replace(three, runs=three.runs[:3], names=("a", "b", "c")))
    assert text.count("+0.2500*") == 1
    assert text.count("-0.2500*") == 1
    assert text.count("+0.2500") == 2
