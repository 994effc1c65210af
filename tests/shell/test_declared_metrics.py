"""Nothing about a metric is guessed: direction and bounds are declared or unknown, repeated scores need a reducer."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest
import yaml
from sample_runs import write_run

import evalcore
from evalcore import EvalError, MetricKey, compare
from evalcore.comparisons import check_run
from evalcore.shell.cli import main

LOSS = MetricKey("loss")


@pytest.fixture
def losses(tmp_path: Path) -> tuple[Path, Path]:
    """Two tables of a loss on forty documents; that of the second is higher by 0.5."""
    drawn = random.Random(1)
    noise = [drawn.random() for _ in range(40)]
    paths = []
    for name, shift in (("low", 0.0), ("high", 0.5)):
        paths.append(tmp_path / name / "t.csv")
        paths[-1].parent.mkdir()
        rows = [f"{at},q{at},{2 + shift + one * drawn.uniform(0.9, 1.1):.4f}" for at, one in enumerate(noise)]
        paths[-1].write_text("\n".join(["id,q,loss", *rows]))
    return paths[0], paths[1]


def jsonl(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def estimate(path: object, name: str = "loss", **keys: object) -> evalcore.Estimate:
    return evalcore.score(path, score=name, **keys).report.tasks[0][MetricKey(name)]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def run(*arguments: object) -> tuple[int, str]:
        code = main([*map(str, arguments)])
        return code, "".join(capsys.readouterr())

    return run


# --- direction ------------------------------------------------------------------------------------------------------


def test_a_column_of_scores_has_no_direction(losses: tuple[Path, Path], command) -> None:
    assert estimate(losses[0]).scale.higher_is_better is None
    code, text = command("score", losses[0], "--score", "loss", "--quiet")
    row = next(line for line in text.splitlines() if line.startswith("t "))
    assert (code, "↑" in row or "↓" in row) == (0, False)
    _, text = command("score", losses[0], "--score", "loss", "--csv", "--quiet")
    head, line = (one.split(",") for one in text.splitlines()[:2])
    assert line[head.index("higher_is_better")] == ""
    _, text = command("score", losses[0], "--score", "loss", "--json", "--quiet")
    assert json.loads(text)["higher_is_better"] == {"t": {"loss": None}}


def test_scores_of_0_and_1_have_no_direction_either(tmp_path: Path) -> None:
    table = jsonl(tmp_path / "t.jsonl", [{"hallucinated": bool(at % 3)} for at in range(30)])
    found = estimate(table, "hallucinated")
    assert found.scale.higher_is_better is None
    assert found.ci is not None
    assert 0 < found.ci[0] < 20 / 30 < found.ci[1] < 1


def test_a_comparison_says_which_is_higher(losses: tuple[Path, Path], command) -> None:
    flags = ("--score", "loss", "--id", "id")
    code, text = command("compare", *losses, *flags)
    assert (code, "B higher" in text, "A better" in text or "B better" in text) == (0, True, False)
    assert "without an arrow, where A is higher : lower" in text
    assert "↑" not in text
    assert "↓" not in text
    _, text = command("compare", *losses, *flags, "--flips", "1")
    assert "t loss: B is higher on" in text
    assert "does better on" not in text
    _, text = command("compare", *losses, *flags, "--lower_is_better", "loss")
    assert "A better" in text
    assert "where A is higher : lower" not in text


def test_a_check_asks_for_the_direction(losses: tuple[Path, Path], command) -> None:
    flags = ("--baseline", losses[0], "--score", "loss", "--id", "id")
    code, text = command("check", losses[1], *flags)
    assert (code, "--lower_is_better loss or --higher_is_better loss" in text) == (2, True)
    assert command("check", losses[1], *flags, "--margin", "0.1")[0] == 2
    assert command("check", losses[1], *flags, "--lower_is_better", "loss")[0] == 1
    assert command("check", losses[1], *flags, "--higher_is_better", "loss")[0] == 0


def test_a_check_asks_even_where_other_metrics_are_known(tmp_path: Path) -> None:
    rows = [{"id": at, "acc": at % 2, "loss": at % 7 + 0.5} for at in range(40)]
    a, b = jsonl(tmp_path / "a.jsonl", rows), jsonl(tmp_path / "b.jsonl", [*rows[1:], {**rows[0], "loss": 0.25}])
    keys = {"baseline": b, "score": ["acc", "loss"], "id": "id"}
    with pytest.raises(EvalError, match="whether loss got worse cannot be judged"):
        check_run(a, **keys)
    assert check_run(a, **keys, metric="acc").passed
    assert check_run(a, **{**keys, "baseline": a}).passed  # the same scores are worse in no direction
    assert check_run(a, **keys, lower_is_better="loss").passed


def test_a_limit_needs_no_direction(losses: tuple[Path, Path]) -> None:
    assert check_run(losses[0], max="loss=2.9", score="loss").passed
    assert not check_run(losses[1], max="loss=2.5", score="loss").passed


def test_declared_directions_travel_with_a_run(losses: tuple[Path, Path], tmp_path: Path) -> None:
    for path in losses:
        keys = {"lower_is_better": "loss", "bounds": {"loss": (0, None)}, "id": "id"}
        evalcore.score(path, score="loss", output_path=tmp_path / f"run_{path.parent.name}", **keys)
    runs = [tmp_path / f"run_{path.parent.name}" for path in losses]
    results = json.loads((runs[0] / "results.json").read_text())
    assert results["higher_is_better"] == {"t": {"loss": False}}
    assert results["evalcore"]["estimates"]["t"]["loss,none"]["bounds"] == [0.0, None]
    (entry,) = results["configs"]["t"]["metric_list"]
    assert (entry["higher_is_better"], entry["bounds"]) == (False, [0.0, None])
    assert compare(*runs).comparisons[0].lines[0].higher_is_better is False
    assert check_run(runs[0], baseline=runs[1]).passed
    assert not check_run(runs[1], baseline=runs[0]).passed
    again = evalcore.score(runs[0]).report.task("t")[LOSS]
    assert (again.scale.higher_is_better, again.scale.score_bounds) == (False, (0.0, inf))


def test_names_that_no_metric_has_are_refused(losses: tuple[Path, Path]) -> None:
    for keys in ({"lower_is_better": "los"}, {"bounds": "los=0,1"}, {"higher_is_better": ["loss", "los"]}):
        with pytest.raises(EvalError, match="unknown metric 'los'; did you mean 'loss'"):
            evalcore.score(losses[0], score="loss", **keys)
        with pytest.raises(EvalError, match="unknown metric 'los'; did you mean 'loss'"):
            compare(*losses, score="loss", id="id", **keys)
    with pytest.raises(EvalError, match="got both"):
        evalcore.score(losses[0], score="loss", lower_is_better="loss", higher_is_better="loss")


@pytest.mark.parametrize("given", ["loss", "loss=0", "loss=1,0", "loss=a,b", "=0,1", "loss=0,1,2", "loss=nan,1"])
def test_bounds_that_are_none_are_refused(losses: tuple[Path, Path], given: str, command) -> None:
    code, text = command("score", losses[0], "--score", "loss", "--bounds", given, "--quiet")
    assert (code, "expected" in text and "bounds" in text, "Traceback" in text) == (2, True, False)


def test_letters_and_accuracy_of_inspect_are_right_answers_its_means_are_not(tmp_path: Path) -> None:
    log = {
        "eval": {"task": "t", "model": "m", "config": {}},
        "status": "success",
        "results": {
            "scores": [
                {"name": "match", "scorer": "match", "metrics": {"accuracy": {"name": "accuracy", "value": 0.5}}},
                {"name": "toxicity", "scorer": "toxicity", "metrics": {"mean": {"name": "mean", "value": 0.25}}},
            ]
        },
        "samples": [
            {
                "id": at,
                "epoch": 1,
                "input": f"q{at}",
                "target": "4",
                "output": {"completion": "4"},
                "scores": {
                    "match": {"value": at % 2},
                    "choice": {"value": "CI"[at % 2]},
                    "toxicity": {"value": at % 2 / 2},
                },
            }
            for at in range(20)
        ],
    }
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    estimates = evalcore.score(path).report.tasks[0]
    assert estimates["match,none"].scale.higher_is_better is True
    assert estimates["choice,none"].scale.higher_is_better is True
    assert estimates["toxicity,none"].scale.higher_is_better is None


# --- failures as 0 --------------------------------------------------------------------------------------------------


def test_failures_count_as_0_only_where_that_is_known_to_be_bad(tmp_path: Path) -> None:
    table = jsonl(tmp_path / "t.jsonl", [{"loss": None if at == 3 else 2.5} for at in range(8)])
    with pytest.raises(EvalError, match="--higher_is_better loss"):
        estimate(table, on_unscorable="zero")
    assert estimate(table, on_unscorable="zero", higher_is_better="loss").value == 2.5 * 7 / 8
    with pytest.raises(EvalError, match="would reward failures"):
        estimate(table, on_unscorable="zero", lower_is_better="loss")
    whole = jsonl(tmp_path / "u.jsonl", [{"loss": 2.5}] * 8)
    assert estimate(whole, on_unscorable="zero").value == 2.5  # nothing counts as 0 here


# --- bounds ---------------------------------------------------------------------------------------------------------


def test_declared_bounds_make_the_interval(tmp_path: Path) -> None:
    table = jsonl(tmp_path / "t.jsonl", [{"grade": 10.0} for _ in range(20)])
    assert estimate(table, "grade").ci is None
    found = estimate(table, "grade", bounds="grade=0,10")
    shares = jsonl(tmp_path / "u.jsonl", [{"right": 1} for _ in range(20)])
    assert found.ci == pytest.approx([10 * end for end in estimate(shares, "right").ci or ()])


def test_bounds_say_what_lost_documents_could_change(tmp_path: Path) -> None:
    table = jsonl(tmp_path / "t.jsonl", [{"right": None if at < 2 else 1} for at in range(10)])
    bare = estimate(table, "right")
    assert (bare.counts.lowest, bare.counts.highest) == (None, None)  # that 0 and 1 were seen does not bound the others
    told = estimate(table, "right", bounds="right=0,1")
    assert (told.counts.lowest, told.counts.highest) == (0.8, 1.0)
    assert bare.ci == told.ci


def test_a_score_outside_its_bounds_is_none_and_says_so(losses: tuple[Path, Path], tmp_path: Path, command) -> None:
    table = jsonl(tmp_path / "t.jsonl", [{"id": at, "grade": 12 if at == 3 else 7} for at in range(8)])
    found = evalcore.score(table, score="grade", id="id", bounds="grade=0,10", output_path=tmp_path / "out")
    one = found.report.task("t")["grade,none"]
    assert (one.value, one.n, one.counts.unscorable, found.complete) == (7.0, 7, 1, False)
    assert (
        "expected a score between 0 and 10, got 12 - at t doc 3" in found.report.task("t").columns[0][1].reasons[0][1]
    )
    again = evalcore.score(tmp_path / "out").report.task("t")["grade,none"]
    assert (again.value, again.n, again.counts.unscorable) == (7.0, 7, 1)
    line = compare(table, table, score="grade", id="id", bounds="grade=0,10").comparisons[0].lines[0]
    assert (line.n, line.a) == (7, 7.0)
    code, _ = command("check", table, "--score", "grade", "--max", "grade=7.01", "--strict")
    assert code == 1  # the mean of all is 7.6
    assert (
        command("check", table, "--score", "grade", "--max", "grade=7.01", "--strict", "--bounds", "grade=0,10")[0] == 0
    )


def test_every_reply_keeps_to_the_bounds(tmp_path: Path) -> None:
    table = jsonl(tmp_path / "t.jsonl", [{"grade": [1.0, 3.0]}, {"grade": [2.0, 20.0]}])
    found = estimate(table, "grade", reducer="mean", bounds="grade=0,10")
    assert (found.value, found.n) == (2.0, 2)  # the mean of 1 and 3, and 2 alone
    assert estimate(table, "grade", reducer="mean").value == 6.5


def test_scores_of_a_known_name_may_be_in_percent(tmp_path: Path) -> None:
    table = jsonl(tmp_path / "t.jsonl", [{"f1": value} for value in (57.0, 61.0, None, 40.0)])
    found = estimate(table, "f1")
    assert (found.scale.higher_is_better, found.scale.score_bounds, found.counts.highest) == (True, None, None)


CODE = "def grade(prediction, gold):\n    return float(len(prediction) % 13)\n"


def write_task(folder: Path, **entry: object) -> Path:
    (folder / "docs.jsonl").write_text("".join(json.dumps({"q": f"Say {at}."}) + "\n" for at in range(26)))
    (folder / "own.py").write_text(CODE)
    task = {
        "task": "grades",
        "output_type": "generate_until",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": "docs.jsonl"}},
        "test_split": "test",
        "doc_to_text": "{{q}}",
        "doc_to_target": "x",
        "metric_list": [{"metric": "GRADE", "aggregation": "mean", **entry}],
    }
    path = folder / "grades.yaml"
    path.write_text(yaml.safe_dump(task).replace("GRADE", "!function own.grade"))
    return path


def run_task(folder: Path, **entry: object) -> evalcore.Estimate:
    path, answers = write_task(folder, **entry), folder / "answers.jsonl"
    rows = ({"q": f"Say {at}.", "said": "a" * (at + 1)} for at in range(26))
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = evalcore.run(
        model="replay",
        model_args={"path": str(answers), "answer": "said", "prompt": "q"},
        tasks=[str(path)],
        trust=[str(folder / "own.py")],
        output_path=str(folder / "out"),
        overwrite=True,
    )
    return found.report.task("grades")["grade,none"]


def test_task_files_declare_bounds_and_direction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plain = run_task(tmp_path)
    assert (plain.scale.higher_is_better, plain.scale.score_bounds, plain.n) == (None, None, 26)
    told = run_task(tmp_path, bounds=[0, 10], higher_is_better=False)  # which the function is not handed
    assert (told.scale.higher_is_better, told.scale.score_bounds) == (False, (0.0, 10.0))
    assert (told.n, told.counts.unscorable) == (22, 4)  # 11 and 12 are no grades, twice each
    back = evalcore.score(tmp_path / "out").report.task("grades")["grade,none"]
    assert (back.scale.score_bounds, back.scale.higher_is_better) == ((0.0, 10.0), False)
    assert (back.value, back.ci, back.n, back.counts) == (told.value, told.ci, told.n, told.counts)
    line = compare(tmp_path / "out", tmp_path / "out").comparisons[0].lines[0]
    assert (line.n, line.higher_is_better) == (22, False)
    with pytest.raises(EvalError, match=r"expected bounds as the lowest and the highest score.*grade"):
        run_task(tmp_path, bounds=5)


# --- several scores a row ---------------------------------------------------------------------------------------------

ASKS = "expected one score for each document, or a reducer, got 10 scores for s; name a reducer: --reducer mean"


@pytest.fixture
def tens(tmp_path: Path) -> Path:
    return jsonl(tmp_path / "tens.jsonl", [{"id": at, "s": [(at + one) % 3 for one in range(10)]} for at in range(20)])


def test_several_scores_need_a_reducer(tens: Path, command) -> None:
    code, text = command("score", tens, "--score", "s", "--quiet")
    assert (code, ASKS in text) == (2, True)
    want = sum((at + one) % 3 for at in range(20) for one in range(10)) / 200
    assert estimate(tens, "s", reducer="mean").value == pytest.approx(want)
    assert estimate(tens, "s", reducer="first").value == sum(at % 3 for at in range(20)) / 20


def test_rows_that_are_repeats_need_a_reducer(tmp_path: Path) -> None:
    rows = "".join(f"{at},{one},{(at + one) % 2}\n" for at in range(6) for one in range(3))
    table = tmp_path / "t.csv"
    table.write_text(f"id,k,s\n{rows}")
    with pytest.raises(EvalError, match="got 3 scores for s"):
        estimate(table, "s", id="id", repeat="k")
    assert estimate(table, "s", id="id", repeat="k", reducer="max").value == 1.0


def test_comparisons_ask_for_a_reducer_too(tens: Path, command) -> None:
    for arguments in (("compare", tens, tens), ("check", tens, "--baseline", tens)):
        code, text = command(*arguments, "--score", "s", "--id", "id")
        assert (code, ASKS in text) == (2, True)
    code, text = command("power", tens, "--score", "s")
    assert (code, ASKS in text) == (2, True)
    assert command("power", tens, "--score", "s", "--reducer", "mean", "--difference", "0.1")[0] == 0
    line = compare(tens, tens, score="s", id="id", reducer="mean").comparisons[0].lines[0]
    assert line.a == pytest.approx(estimate(tens, "s", reducer="mean").value)


def test_lists_of_scores_in_sample_logs_need_a_reducer(tmp_path: Path, command) -> None:
    runs = [write_run(tmp_path / name, {"t": [1.0] * 12}, "em", {}) for name in ("a", "b")]
    for run in runs:
        (log,) = run.glob("samples_*")
        rows = [json.loads(line) for line in log.read_text().splitlines()]
        several = {"resps": [["x", "y", "z"]], "filtered_resps": ["x", "y", "z"], "em": [1.0, 0.0, 0.0]}
        log.write_text("".join(json.dumps({**row, **several}) + "\n" for row in rows))
    code, text = command("score", runs[0], "--score", "em", "--quiet")
    assert (code, "got 3 scores for em; name a reducer" in text) == (2, True)
    assert estimate(runs[0], "em", reducer="mean").value == pytest.approx(1 / 3)
    code, text = command("compare", *runs)
    assert (code, "evalcore score RUN --score em --reducer mean -o DIR" in text) == (2, True)
    for run in runs:
        evalcore.score(run, score="em", reducer="mean", output_path=tmp_path / f"{run.name}1")
    line = compare(tmp_path / "a1", tmp_path / "b1").comparisons[0].lines[0]
    assert line.a == pytest.approx(1 / 3)


def test_lm_evals_policy_takes_the_first(tens: Path) -> None:
    found = estimate(tens, "s", policy="lm-eval-0.4.13")
    assert found.value == sum(at % 3 for at in range(20)) / 20


def test_a_reducer_of_reduced_scores_is_told(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", {"t": [1.0, 0.0] * 20})
    told = compare(a, a, reducer="mean").runs[0].warnings
    assert any("--reducer had no effect" in one for one in told)
    assert not any("no effect" in one for one in compare(a, a).runs[0].warnings)


# --- log-likelihoods --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", [[-1.5], -1.5])
def test_one_log_likelihood_a_row_is_a_plain_likelihood(tmp_path: Path, cell: object) -> None:
    table = jsonl(tmp_path / "t.jsonl", [{"ll": cell, "gold": 0} for _ in range(8)])
    for keys in ({}, {"gold": "gold"}):
        found = evalcore.score(table, loglikelihoods="ll", **keys)
        assert [str(key) for key, _ in found.report.tasks[0].estimates] == ["perplexity,none"]
        assert found.report.tasks[0]["perplexity,none"].value == pytest.approx(4.4816890703)
        assert found.complete


def test_one_log_likelihood_of_a_csv(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("q,ll\na,-1\nb,-2\n")
    found = evalcore.score(table, loglikelihoods="ll").report.tasks[0]["perplexity,none"]
    assert found.value == pytest.approx(4.4816890703)


def test_whether_it_was_greedy_is_not_guessed(tmp_path: Path) -> None:
    table = jsonl(tmp_path / "t.jsonl", [{"ll": -1.5} for _ in range(8)])
    with pytest.raises(EvalError, match="acc needs to know whether greedy decoding gives the text"):
        evalcore.score(table, loglikelihoods="ll", metric="acc")
    assert evalcore.score(table, loglikelihoods="ll", metric="perplexity").complete


def test_one_of_one_declared_choice_is_a_choice(tmp_path: Path) -> None:
    table = jsonl(tmp_path / "t.jsonl", [{"ll": [-1.5], "c": ["yes"], "gold": 0} for _ in range(4)])
    found = evalcore.score(table, loglikelihoods="ll", choices="c", gold="gold").report.tasks[0]
    assert [str(key) for key, _ in found.estimates] == ["acc,none", "acc_norm,none"]


@pytest.mark.parametrize("lists", [([-1.0], [-1.0, -2.0]), ([-1.0, -2.0], [-1.0])])
def test_rows_of_one_and_of_several_are_not_mixed(tmp_path: Path, lists: tuple[list[float], ...]) -> None:
    table = jsonl(tmp_path / "t.jsonl", [{"ll": one, "gold": 0} for one in lists])
    with pytest.raises(EvalError, match=r"t\.jsonl:2: expected .* as in the first row, got .* \(--choices\)"):
        evalcore.score(table, loglikelihoods="ll", gold="gold")


def test_without_choices_nothing_is_said_of_their_lengths(tmp_path: Path, command) -> None:
    rows = [{"id": at, "ll": [-1.0, -2.0, -3.0], "gold": at % 2} for at in range(10)]
    table = jsonl(tmp_path / "t.jsonl", rows)
    flags = ("--loglikelihoods", "ll", "--gold", "gold")
    code, text = command("score", table, *flags, "--quiet")
    assert (code, "acc_norm" in text, "Warnings" in text) == (0, False, False)
    code, text = command("compare", table, table, *flags, "--id", "id")
    assert (code, "acc_norm" in text) == (0, False)
    code, text = command("score", table, *flags, "--metric", "acc_norm", "--quiet")
    assert (code, "needs the length of every choice" in text) == (1, True)  # who asks is told


# --- flags without effect ---------------------------------------------------------------------------------------------


def test_a_metric_of_the_scores_name_says_how_it_is_closed(losses: tuple[Path, Path]) -> None:
    named = 'loss={"aggregation": "median", "higher_is_better": false, "bounds": [0, null]}'
    found = evalcore.score(losses[0], score="loss", metric=named)
    assert not any("no effect" in one for one in found.warnings)
    one = found.report.task("t")[LOSS]
    assert (one.scale.aggregation, one.scale.higher_is_better, one.scale.score_bounds) == ("median", False, (0.0, inf))
    assert one.value != estimate(losses[0]).value


def test_a_file_may_say_how_it_is_closed(losses: tuple[Path, Path], tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    for metric, idle in (("loss", False), ("f1", True)):
        file.write_text(yaml.safe_dump({"metric_list": [{"metric": metric, "aggregation": "median"}]}))
        found = evalcore.score(losses[0], score="loss", filters=file)
        assert any("--filters had no effect" in one for one in found.warnings) is idle
        assert (found.report.task("t")[LOSS].scale.aggregation == "mean") is idle


def test_only_the_metrics_without_effect_are_named(losses: tuple[Path, Path]) -> None:
    found = evalcore.score(losses[0], score="loss", metric=["f1", 'loss={"aggregation": "median"}'])
    (told,) = [one for one in found.warnings if "no effect" in one]
    assert told.startswith("--metric f1 had no effect")
