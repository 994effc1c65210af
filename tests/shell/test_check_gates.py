"""``evalcore check``: what is missing, many limits, totals alone, margins, rules, directions, and what it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from sample_runs import STAMP, write_run
from scipy.stats import binomtest

from evalcore.core.aggregate.inference import Inference, add_interval
from evalcore.core.compare.gates import Gate
from evalcore.core.lm_eval.result_row import leaf_from_flat
from evalcore.core.records.task import MetricKey
from evalcore.shell.cli import main
from evalcore.shell.compare.check import Checked
from evalcore.shell.output.check.gate_tables import draw_gates
from evalcore.shell.output.check.gate_text import tell_gate
from evalcore.shell.output.terminal.screen import Screen

FINE = [1.0, 0.0, 1.0, 1.0] * 10


def told(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> dict[str, object]:
    assert main(["check", *map(str, arguments), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def passed(found: dict[str, object]) -> dict[str, bool | None]:
    return {f"{gate['gate']} {gate['task']}": gate["passed"] for gate in found["gates"]}


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["check", *map(str, arguments)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "unexpected" not in said.err
    return said.err


# --- missing, and without a score -------------------------------------------------------------------------------------


def test_what_the_baseline_has_and_the_run_has_not_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = write_run(tmp_path / "old", {"a": FINE, "b": FINE})
    new = write_run(tmp_path / "new", {"a": FINE})
    assert passed(told(capsys, new, "--baseline", old, code=1)) == {"baseline a": True, "baseline b": False}
    assert passed(told(capsys, new, "--baseline", old, "--allow_missing")) == {"baseline a": True, "baseline b": None}
    assert passed(told(capsys, new, "--baseline", old, "--task", "a")) == {"baseline a": True}
    assert passed(told(capsys, new, "--baseline", old, "--task", "b", code=1)) == {"baseline b": False}
    assert passed(told(capsys, old, "--baseline", new)) == {"baseline a": True}


def test_a_run_that_lost_all_answers_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = write_run(tmp_path / "old", {"a": FINE, "b": FINE})
    new = write_run(tmp_path / "new", {"a": FINE, "b": [None] * 40})
    assert passed(told(capsys, new, "--baseline", old, code=1))["baseline b"] is False
    assert main(["check", str(new), "--baseline", str(old), "--markdown"]) == 1
    assert "missing: the run has no such metric" in capsys.readouterr().out


def test_some_lost_answers_are_a_note_and_a_gate_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = write_run(tmp_path / "old", {"a": FINE, "b": FINE})
    new = write_run(tmp_path / "new", {"a": FINE, "b": [*FINE[:38], None, None]})
    found = told(capsys, new, "--baseline", old)
    assert "b acc,none: not compared, 2 documents without a score in one of the two" in found["notes"]
    strict = told(capsys, new, "--baseline", old, "--max_unscored", 0.01, code=1)
    assert passed(strict) == {"baseline a": True, "baseline b": True, "unscored a": True, "unscored b": False}
    assert [gate["value"] for gate in strict["gates"]][-1] == pytest.approx(2 / 40)
    assert all(passed(told(capsys, new, "--baseline", old, "--max_unscored", 0.05)).values())
    assert main(["check", str(new), "--baseline", str(old), "--max_unscored", "0"]) == 1
    assert "2 of 40 documents without a score" in capsys.readouterr().out


# --- limits -----------------------------------------------------------------------------------------------------------


def test_limits_are_corrected_for_how_many_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = {f"t{at}": FINE for at in range(20)}
    run = write_run(tmp_path / "run", tasks)
    one, many = told(capsys, run, "--min", "t0/acc=0.8"), told(capsys, run, "--min", "t*/acc=0.8")
    assert (one["confidence"], len(many["gates"])) == (0.9, 20)
    assert many["confidence"] == pytest.approx(1 - 2 * 0.05 / 20)
    assert many["gates"][0]["ci_high"] > one["gates"][0]["ci_high"]
    plain = told(capsys, run, "--min", "acc=0.8", "--correction", "none")
    assert plain["gates"][0] == one["gates"][0]
    assert main(["check", str(run), "--min", "acc=0.5"]) == 0
    assert "corrected for 20 limits (Bonferroni)" in capsys.readouterr().out
    assert main(["check", str(run), "--min", "acc=0.5", "--correction", "none"]) == 0
    assert "not corrected for 20 limits" in capsys.readouterr().out


def totals(folder: Path, **more: object) -> Path:
    """lm-eval's results without samples: two tasks and a group."""
    rows = {
        "g": {"acc,none": 0.625, "acc_stderr,none": 0.05, "sample_len": 80, "sample_count": {"acc,none": 60}},
        "a": {"acc,none": 0.75, "acc_stderr,none": 0.07, "sample_len": 40},
        "b": {"acc,none": 0.5, "acc_stderr,none": "N/A", "sample_len": 40},
    }
    folder.mkdir()
    path = folder / f"results_{STAMP}.json"
    subtasks = {"g": ["a", "b"], "a": [], "b": []}
    path.write_text(json.dumps({"results": rows, "groups": {"g": rows["g"]}, "group_subtasks": subtasks, **more}))
    return path


def test_totals_alone_are_judged_by_their_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = totals(tmp_path / "lm_eval")
    found = told(capsys, path, "--min", "acc=0.55", code=1)
    gates = {gate["task"]: gate for gate in found["gates"]}
    assert set(gates) == {"a", "b", "g"}
    assert (gates["a"]["n"], gates["g"]["n"]) == (40, 60)
    flat = {"acc,none": 0.75, "acc_stderr,none": 0.07, "sample_len": 40}
    estimate = leaf_from_flat("a", flat).value.estimates[0][1]
    expected = add_interval(estimate, Inference(confidence=1 - 2 * 0.05 / 3, interval="exact")).ci
    assert (gates["a"]["ci_low"], gates["a"]["ci_high"]) == pytest.approx(expected)
    assert (gates["b"]["passed"], gates["b"]["verdict"]) == (False, "below")
    assert any("without an interval, judged by the number itself: b acc,none" in note for note in found["notes"])
    assert any("no samples beside it" in note for note in found["notes"])
    assert "log_samples" in refused(capsys, path, "--baseline", path)
    assert "log_samples" in refused(capsys, path, "--min", "acc=0.1", "--cluster", "passage")
    assert told(capsys, path.parent, "--min", "g/acc=0.5")["passed"] is True
    assert told(capsys, path, "--max", "g/acc=0.4", code=1)["passed"] is False


def test_totals_without_counts_have_no_n(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"results_{STAMP}.json"
    path.write_text(json.dumps({"results": {"a": {"acc,none": 0.75, "acc_stderr,none": 0.07}}}))
    (gate,) = told(capsys, path, "--min", "acc=0.55")["gates"]
    assert (gate["value"], gate["n"], gate["ci_low"]) == (0.75, None, None)
    bare = Gate(kind="min", name="a", key=MetricKey("acc"), passed=False, verdict="below", value=0.5, limit=0.6, n=None)
    assert tell_gate(bare) == "a acc: expected at least 0.6000, got 0.5000: below"


def test_limits_are_judged_by_the_exact_interval_whatever_kind_a_run_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exact = binomtest(30, 40).proportion_ci(0.9, method="exact")
    for ci in ("wilson", "t", "bca"):
        run = write_run(tmp_path / ci, {"a": FINE}, results={"evalcore": {"ci": ci}})
        (gate,) = told(capsys, run, "--min", "acc=0.5")["gates"]
        assert (gate["ci_low"], gate["ci_high"]) == pytest.approx((exact.low, exact.high), rel=1e-9)


@pytest.mark.parametrize("right", [0, 3, 17, 30, 39, 40])
def test_a_limit_fails_exactly_where_scipys_one_sided_binomial_test_rejects(
    right: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", {"a": [1.0] * right + [0.0] * (40 - right)})
    for limit in (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98):
        below = binomtest(right, 40, limit, alternative="less").pvalue <= 0.05
        above = binomtest(right, 40, limit, alternative="greater").pvalue <= 0.05
        told(capsys, run, "--min", f"acc={limit}", code=int(below))
        told(capsys, run, "--max", f"acc={limit}", code=int(above))


@pytest.mark.parametrize("flag", ["--min", "--max"])
def test_a_limit_in_points_is_refused(flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", {"a": FINE})
    told_why = refused(capsys, run, flag, "acc=62")
    assert "a acc,none lies between 0 and 1, where 62 points are 0.62" in told_why
    assert f"{flag} acc=0.62" in told_why
    assert "where 62 points are 0.62" in refused(capsys, totals(tmp_path / "lm_eval"), flag, "acc=62")
    told(capsys, run, flag, "acc=1", code=int(flag == "--min"))
    losses = write_run(tmp_path / "losses", {"a": [0.1, 2.5, 0.2, 0.3] * 10})  # on average between 0 and 1 by chance
    told(capsys, losses, flag, "acc=3", code=int(flag == "--min"))


def test_a_number_of_the_results_is_no_share_because_it_is_below_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"results_{STAMP}.json"
    row = {"bits_per_byte,none": 0.8, "bits_per_byte_stderr,none": 0.02, "sample_len": 40}
    path.write_text(json.dumps({"results": {"a": row}}))
    told(capsys, path, "--max", "bits_per_byte=1.5")


def test_a_margin_in_points_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", {"a": FINE})
    assert "where 2 points are 0.02; write --margin 0.02" in refused(capsys, run, "--baseline", run, "--margin", 2)
    assert main(["compare", str(run), str(run), "--margin", "2"]) == 2
    assert "where 2 points are 0.02; write --margin 0.02" in capsys.readouterr().err


def test_documents_counted_as_zero_are_zero_against_a_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = {rule: {"evalcore": {"on_unscorable": rule}} for rule in ("zero", "exclude")}
    scores = [None if at % 2 else 1.0 for at in range(40)]
    old = write_run(tmp_path / "old", {"a": [1.0] * 40}, results=rules["zero"])
    lost = {}
    for rule in ("zero", "exclude"):
        folder = write_run(tmp_path / rule, {"a": scores}, results=rules[rule])
        log = folder / f"samples_a_{STAMP}.jsonl"
        rows = [json.loads(line) for line in log.read_text().splitlines()]
        for row in rows:
            if "acc" not in row:
                row["evalcore"] = {"unscored": {"acc": "failed: timed out"}}
        log.write_text("".join(json.dumps(row) + "\n" for row in rows))
        lost[rule] = folder
    worse = told(capsys, lost["zero"], "--baseline", old, code=1)
    assert (worse["gates"][0]["n"], worse["gates"][0]["value"]) == (40, 0.5)
    assert not any("on_unscorable" in note for note in worse["notes"])
    same = told(capsys, lost["exclude"], "--baseline", old)
    assert (same["gates"][0]["n"], same["gates"][0]["value"]) == (20, 1.0)
    told_rules = (
        "documents without a score are left out in the run (on_unscorable: exclude), count as 0 in the baseline"
    )
    assert any(told_rules in note for note in same["notes"])


# --- baselines --------------------------------------------------------------------------------------------------------


def test_a_direction_that_nobody_told_is_not_judged_until_it_is_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = write_run(tmp_path / "old", {"a": [0.0] * 40}, metric="surprise")
    new = write_run(tmp_path / "new", {"a": [1.0] * 40}, metric="surprise")
    assert "its direction is unknown" in refused(capsys, new, "--baseline", old)
    assert told(capsys, new, "--baseline", old, "--higher_is_better", "surprise")["passed"] is True
    assert told(capsys, new, "--baseline", old, "--lower_is_better", "surprise,none", code=1)["passed"] is False
    assert "did you mean 'surprise'" in refused(capsys, new, "--baseline", old, "--lower_is_better", "suprise")
    both = ("--lower_is_better", "surprise", "--higher_is_better", "surprise")
    assert "got both" in refused(capsys, new, "--baseline", old, *both)


def test_a_margin_allows_a_drop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = write_run(tmp_path / "old", {"a": [1.0] * 200, "b": [1.0] * 200})
    new = write_run(tmp_path / "new", {"a": [0.0] * 40 + [1.0] * 160, "b": [1.0] * 200})
    assert told(capsys, new, "--baseline", old, code=1)["passed"] is False
    assert told(capsys, new, "--baseline", old, "--margin", 0.15)["passed"] is True
    found = told(capsys, new, "--baseline", old, "--margin", 0.05, code=1)
    assert (found["margin"], found["difference_confidence"]) == (0.05, pytest.approx(1 - 2 * 0.05 / 2))
    gate = found["gates"][0]
    assert gate["difference_ci_high"] < -0.05
    assert gate["verdict"] == "worse by more than 0.05"
    alone = told(capsys, new, "--baseline", old, "--margin", 0.05, "--correction", "none", code=1)
    assert alone["gates"][0]["difference_ci_high"] < gate["difference_ci_high"]
    assert main(["check", str(new), "--baseline", str(old), "--margin", "0.05"]) == 1
    assert "95 % interval" in capsys.readouterr().out


def test_clusters_too_few_to_tell_are_skipped_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = write_run(tmp_path / "old", {"a": [1.0] * 20, "b": FINE})
    new = write_run(tmp_path / "new", {"a": [0.0] * 20, "b": FINE})
    found = told(capsys, new, "--baseline", old, "--cluster", "passage")  # passages of five
    gates = {gate["task"]: gate for gate in found["gates"]}
    assert gates["a"]["passed"] is None
    assert "only 4 clusters" in gates["a"]["verdict"]
    assert gates["b"]["passed"] is True


def test_json_has_other_keys_for_limits_than_for_baselines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", {"a": FINE}, results={"model_name": "org/m"})
    found = told(capsys, run, "--min", "acc=0.5", "--baseline", run)
    limit, against = found["gates"]
    assert (limit["limit"], limit["baseline"], limit["difference"]) == (0.5, None, None)
    assert limit["ci_low"] < 0.75 < limit["ci_high"]
    assert (against["limit"], against["ci_low"], against["baseline"], against["difference"]) == (None, None, 0.75, 0.0)
    assert against["difference_ci_low"] < 0 < against["difference_ci_high"]
    assert found["read"] == {name: {"path": str(run), "model": "org/m"} for name in ("run", "baseline")}


# --- what is typed and what is printed -----------------------------------------------------------------------------------


def test_strange_flags_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", {"a": FINE})
    assert "empty" in refused(capsys, "", "--min", "acc=0.5")
    assert "empty" in refused(capsys, run, "--baseline", "")
    assert "--baseline" in refused(capsys, run, "--min", "acc=0.5", "--task", "a")
    assert "--baseline" in refused(capsys, run, "--min", "acc=0.5", "--margin", "0.1")
    assert "--margin" in refused(capsys, run, "--baseline", run, "--margin", "-1")
    assert "--max_unscored" in refused(capsys, run, "--baseline", run, "--max_unscored", "5")
    assert "unknown task or group" in refused(capsys, run, "--baseline", run, "--task", "c")
    assert "did you mean 'question'" in refused(capsys, run, "--baseline", run, "--match", "qestion")


def test_it_says_what_it_read_and_that_strict_is_about_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path / "run", {"a": FINE})
    assert main(["check", str(run), "--baseline", str(run), "--strict"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"run: {run}\nbaseline: {run}\n")
    assert "--strict is about limits, and there are none" in text
    monkeypatch.chdir(run)
    assert main(["check", ".", "--min", "acc=0.5"]) == 0
    assert capsys.readouterr().out.startswith(f"run: {run}\n")
    assert main(["check", ".", "--min", "acc=0.5", "--markdown"]) == 0
    assert "|passed|a    |acc   |" in capsys.readouterr().out


@pytest.mark.parametrize("width", [120, 80, 60])
@pytest.mark.parametrize("margin", [None, 0.01])
def test_tables_fit_and_explain_only_what_they_show(width: int, margin: float | None) -> None:
    key = MetricKey("exact_match", "flexible-extract")
    gates = (
        Gate(
            kind="min",
            name="a_long_name_of_a_task",
            key=key,
            passed=True,
            verdict="not shown to be below",
            value=0.5,
            ci=(0.4, 0.6),
            limit=0.5,
            n=1319,
        ),
        Gate(
            kind="baseline",
            name="a_long_name_of_a_task",
            key=key,
            passed=False,
            verdict="worse by more than 0.01",
            value=0.5,
            baseline=0.6,
            difference=-0.1,
            difference_ci=(-0.15, -0.05),
            p_value=0.001,
            adjusted=0.002,
            n=1319,
        ),
        Gate(
            kind="unscored",
            name="a_long_name_of_a_task",
            key=key,
            passed=True,
            verdict="3 of 1,319 documents without a score",
            value=0.0023,
            limit=0.01,
            n=1319,
        ),
    )
    checked = Checked(run="r", gates=gates, runs=(("runs/new", ""),), margin=margin, difference_confidence=0.9)
    text = draw_gates(checked, Screen(width))
    assert all(cell_len(line) <= width for line in text.splitlines())
    heads = [line for line in text.splitlines() if "verdict" in line]
    assert len(heads) == 3
    assert ("p: how often" in text) is ("p" in heads[1].replace("adjusted p", "").split())
    assert ("Filter" in heads[0]) is (width == 120)


# --- levels and p-values ----------------------------------------------------------------------------------------------


def test_a_limit_is_judged_by_both_ends_of_an_interval_that_leaves_out_alpha_at_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", {"a": FINE})
    low, high = binomtest(30, 40).proportion_ci(0.9)
    wider = binomtest(30, 40).proportion_ci(0.95)
    between = (high + wider.high) / 2
    found = told(capsys, run, "--min", f"a/acc={between}", code=1)
    assert found["confidence"] == pytest.approx(0.9)
    gate = found["gates"][0]
    assert (gate["ci_low"], gate["ci_high"]) == pytest.approx((low, high), rel=1e-9)
    assert gate["ci_high"] < between
    told(capsys, run, "--min", f"a/acc={between}", "--alpha", 0.025)
    told(capsys, run, "--max", f"a/acc={(low + wider.low) / 2}", code=1)


def test_a_p_value_of_0_is_told() -> None:
    gate = Gate(kind="baseline", name="t", key=MetricKey("acc"), passed=False, verdict="worse", value=0.1, baseline=0.9)
    assert "p of a regression" not in tell_gate(gate)
    assert "p of a regression" in tell_gate(replace(gate, p_value=0.0, adjusted=0.0))
