"""``compare --margin`` and ``check --margin --shown``: the four answers in every form, and what a gate could have found."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from sample_runs import write_run

import evalcore
from evalcore.comparisons import check_run
from evalcore.core.compare.verdicts.margins import score_margin
from evalcore.shell.cli import main

N = 2000
WORDS = {
    "alike": "the same within 0.02",
    "far": "B better",
    "near": "B better, by less than 0.02",
    "few": "not enough documents",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run and its baseline: tasks that are alike, far apart, apart by less than the margin, and of few documents."""
    folder = tmp_path_factory.mktemp("margins")
    old = (np.arange(N) % 10 > 0).astype(float)

    def lose(losses: int, wins: int) -> list[float]:
        new = old.copy()
        new[np.flatnonzero(old)[:losses]] = 0.0
        new[np.flatnonzero(old == 0)[:wins]] = 1.0
        return new.tolist()

    new = {"alike": lose(6, 5), "far": lose(100, 4), "near": lose(18, 0), "few": lose(1, 0)[:60]}
    base = {task: old.tolist()[: len(scores)] for task, scores in new.items()}
    return write_run(folder / "new", new, results={}), write_run(folder / "old", base, results={})


def told(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    assert main([*map(str, arguments)]) == code
    return capsys.readouterr().out


def test_compare_gives_four_answers_in_every_form(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("compare", *runs, "--margin", 0.02)
    data = json.loads(told(capsys, *asked, "--json"))
    lines = {line["task"]: line for line in data["pairs"][0]["lines"]}
    assert data["margin"] == 0.02
    assert {task: line["verdict"] for task, line in lines.items()} == WORDS
    tests = {
        task: max(score_margin(line["n"], a, b, 0.02), score_margin(line["n"], b, a, 0.02))
        for task, line in lines.items()
        for a, b in [(len(line["better"]), len(line["worse"]))]
    }
    assert {task: line["p_same"] for task, line in lines.items()} == tests
    ranked = sorted(tests.values())
    assert lines["alike"]["p_same_adjusted"] == pytest.approx(ranked[0] * 4)
    rows = csv.DictReader(io.StringIO(told(capsys, *asked, "--csv")))
    assert {row["task"]: row["verdict"] for row in rows} == WORDS
    monkeypatch.setenv("COLUMNS", "200")
    table, markdown = told(capsys, *asked), told(capsys, *asked, "--markdown")
    for words in WORDS.values():
        assert words in table
        assert words in markdown
    assert "the same within 0.02 if a larger difference is excluded either way" in table


def test_without_a_margin_nothing_is_the_same(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(told(capsys, "compare", *runs, "--json"))
    lines = {line["task"]: line for line in data["pairs"][0]["lines"]}
    assert data["margin"] is None
    assert {task: line["verdict"] for task, line in lines.items()} == {
        "alike": "no evidence",
        "far": "B better",
        "near": "B better",
        "few": "no evidence",
    }
    assert {line["p_same"] for line in lines.values()} == {None}


def test_a_matrix_marks_what_is_the_same(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    new, old = runs
    table = told(capsys, "compare", new, old, old, "--margin", 0.02, "--task", "alike")
    assert "-0.0005= -" in table
    assert "=: not that, but the same within 0.02" in table
    assert "=" not in told(capsys, "compare", new, old, old, "--task", "alike").replace("...", "")


def test_python_has_margins_too(runs: tuple[Path, Path]) -> None:
    new, old = runs
    compared = evalcore.compare(new, old, margin=0.02)
    assert compared.margin == 0.02
    same = {line.name for line in compared.comparisons[0].lines if (line.adjusted_same or 0.0) <= 0.05}
    assert same == {"alike", "near"}
    checked = check_run(new, baseline=old, margin=0.02, shown=True, task="alike")
    assert checked.passed
    assert checked.shown


@pytest.mark.parametrize("margin", ["0", "-0.1", "nan", "inf"])
def test_a_margin_that_is_none_is_refused(
    margin: str, runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *map(str, runs), "--margin", margin]) == 2
    assert "expected --margin above 0" in capsys.readouterr().err


def test_what_must_be_shown_and_is_not_fails(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("check", runs[0], "--baseline", runs[1], "--margin", 0.02)
    data = json.loads(told(capsys, *asked, "--shown", "--json", code=1))
    gates = {gate["task"]: gate for gate in data["gates"]}
    assert (data["shown"], data["margin"], data["difference_confidence"]) == (True, 0.02, pytest.approx(0.9))
    assert {task: (gate["passed"], gate["verdict"]) for task, gate in gates.items()} == {
        "alike": (True, "shown not to be worse by more than 0.02"),
        "far": (False, "worse by more than 0.02"),
        "near": (True, "shown not to be worse by more than 0.02"),
        "few": (False, "not enough documents to exclude a drop of more than 0.02"),
    }
    assert gates["near"]["p_value"] == score_margin(N, 0, 18, 0.02)
    assert gates["few"]["detectable"] > 0.02 > gates["alike"]["detectable"] > 0
    table = told(capsys, *asked, "--shown", code=1)
    assert "a gate fails unless a drop of more than the margin of 0.02 is excluded" in table
    plain = json.loads(told(capsys, *asked, "--json", code=1))
    assert [gate["task"] for gate in plain["gates"] if gate["passed"] is False] == ["far"]
    assert plain["shown"] is False


def test_shown_needs_a_margin_and_a_baseline(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(runs[0]), "--baseline", str(runs[1]), "--shown"]) == 2
    assert "expected --margin X with --shown" in capsys.readouterr().err
    assert main(["check", str(runs[0]), "--min", "acc=0.1", "--shown"]) == 2
    assert "--shown" in capsys.readouterr().err


def test_a_gate_says_everywhere_which_drop_it_could_have_found(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    file = tmp_path / "junit.xml"
    asked = ("check", runs[0], "--baseline", runs[1])
    data = json.loads(told(capsys, *asked, "--junit", file, "--json", code=1))
    cases = {case.get("name"): case for case in ElementTree.fromstring(file.read_bytes()).iter("testcase")}
    table, markdown = told(capsys, *asked, code=1), told(capsys, *asked, "--markdown", code=1)
    assert "detectable: the smallest true drop that fails in 4 checks of 5" in table
    for gate in data["gates"]:
        told_there = "".join(cases[f"{gate['task']} acc baseline"].itertext())
        assert f"(detectable drop: {gate['detectable']:.4f})" in told_there
        assert f"{gate['detectable']:.4f}" in table
        assert f"{gate['detectable']:.4f}" in markdown
    told(capsys, *asked, "--margin", 0.02, "--shown", "--junit", file, code=1)
    shown = file.read_text("utf-8")
    assert "margin that can be shown: " in shown
    assert "detectable drop" not in shown, "with --shown it is no drop that fails"
    limits = json.loads(told(capsys, "check", runs[0], "--min", "acc=0.1", "--json"))
    assert {gate["detectable"] for gate in limits["gates"]} == {None}


def test_doubts_are_about_the_numbers_that_were_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A warning about a perplexity of few documents is no part of a comparison of accuracies."""
    paths = []
    for name, period in (("a", 3), ("b", 4)):
        write_run(tmp_path / name, {"prose": [-1.0 - at % period for at in range(9)]}, "perplexity")
        paths.append(write_run(tmp_path / name, {"right": [1.0, 0.0] * 30}))
    whole = told(capsys, "compare", *paths)
    assert "prose: the interval rests on 9 documents" in whole
    for asked in (("--metric", "acc"), ("--task", "right")):
        assert "prose" not in told(capsys, "compare", *paths, *asked)
        assert "prose" not in told(capsys, "check", paths[0], "--baseline", paths[1], *asked)
    assert "rests on 9" in told(capsys, "compare", *paths, "--metric", "perplexity")
