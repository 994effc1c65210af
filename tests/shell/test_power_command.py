"""``evalcore power``: one run, two runs, lm-eval's files, and everything that may be wrong with them."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from sample_runs import rows_of, write_log
from scipy import stats

from evalcore import build_report, report_task
from evalcore.core.compare.power import Known, PowerGoal, plan_next
from evalcore.core.groups.tree import Group, GroupMetric, Leaf
from evalcore.core.records.array import Array
from evalcore.core.records.column import build_column
from evalcore.core.records.request import MULTIPLE_CHOICE
from evalcore.core.records.row import Floats
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricKey, MetricSpec, Task
from evalcore.core.stats.sample_size import (
    Variances,
    distance_at,
    questions_for,
    reach_of_test,
    variances_of_difference,
)
from evalcore.lm_eval import lm_eval_results
from evalcore.shell.cli import main
from evalcore.shell.compare.power import Planned
from evalcore.shell.logs.runs.result_errors import list_known
from evalcore.shell.output.power.plan_page import build_page
from evalcore.shell.output.terminal.grid import draw_page
from evalcore.shell.output.terminal.screen import Screen

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The quickstart's recorded answers, and a model that answers at random."""
    folder = tmp_path_factory.mktemp("runs")
    tasks = ["--tasks", "quickstart", "--include_path", str(ROOT / "examples/quickstart/tasks"), "--log_samples"]
    recorded = ["--model", "replay", "--model_args", f"path={ROOT / 'examples/quickstart/recorded.jsonl'}"]
    assert main(["run", *recorded, *tasks, "--output_path", str(folder / "a")]) == 0
    assert main(["run", "--model", "dummy", *tasks, "--output_path", str(folder / "b")]) == 0
    return folder / "a", folder / "b"


def told(capsys, *arguments):
    """What the verb prints, as JSON."""
    assert main(["power", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def row_of(data, name, metric):
    return next(row for row in data["rows"] if (row["name"], row["metric"]) == (name, metric))


def refused(capsys, *arguments):
    """The one line of an error."""
    try:
        code = main(["power", *map(str, arguments)])
    except SystemExit as stopped:  # argparse
        code = stopped.code
    assert code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    return said.err.strip().split("\n")[-1]


def test_every_number_of_a_run_has_a_row(runs, capsys):
    data = told(capsys, runs[0], "--difference", "0.05")
    results = json.loads((runs[0] / "results.json").read_text())
    numbers = {
        (name, *MetricKey.parse(text))
        for name, row in results["results"].items()
        for text in row
        if MetricKey.parse(text)
    }
    assert {(row["name"], row["metric"], row["filter"]) for row in data["rows"]} == numbers
    assert data["read"] == [str(runs[0] / "results.json")]
    names = list(dict.fromkeys(row["name"] for row in data["rows"]))
    assert names.index("quickstart_knowledge") < names.index("quickstart_nature") < names.index("quickstart_world")
    assert {row["kind"] for row in data["rows"] if row["name"] == "quickstart_knowledge"} == {"group"}


def test_the_numbers_are_those_of_the_formulas(runs, capsys):
    data = told(capsys, runs[0], "--difference", "0.05", "--correlation", "0.2", "--power", "0.9", "--repeats", "3")
    results = json.loads((runs[0] / "results.json").read_text())
    reach = reach_of_test(0.05, 0.9)
    plain = row_of(data, "quickstart_nature", "acc")
    stderr = results["results"]["quickstart_nature"]["acc_stderr,none"]
    value = results["results"]["quickstart_nature"]["acc,none"]

    def spread_at(difference, value, own):
        """The other model is nearer to one half, by this difference at most, where right and wrong answers vary more."""
        other = min(max(0.5, value - difference), value + difference)
        return variances_of_difference(own, 0.2, other * (1 - other) / (value * (1 - value)))

    spread = spread_at(0.05, value, Variances(35 * stderr**2))
    found = plain["detectable"]
    assert found == pytest.approx(distance_at(35, spread_at(found, value, Variances(35 * stderr**2)), 1, reach))
    assert plain["documents"] == {"as now": questions_for(0.05, spread, 1, reach)}
    split = row_of(data, "quickstart_simple_questions", "exact_match@mean")
    own = results["evalcore"]["estimates"]["quickstart_simple_questions"]["exact_match@mean,first-word"]
    parts = Variances(30 * own["question_stderr"] ** 2, 30 * own["sampling_stderr"] ** 2 * 4)
    spread = spread_at(0.05, own["value"], parts)
    assert split["repeats"] == 4
    assert split["documents"] == {
        "as now": questions_for(0.05, spread, 4, reach),
        "3": questions_for(0.05, spread, 3, reach),
    }
    assert split["question_sd"] == pytest.approx(own["question_stderr"] * 30**0.5)
    assert split["at_best"] < split["detectable"]


def test_rows_without_a_spread_say_why(runs, capsys):
    row = row_of(told(capsys, runs[0]), "quickstart_two_step", "exact_match")
    assert row["detectable"] is None
    assert "same score" in row["reason"]
    assert main(["power", str(runs[0])]) == 0
    assert "quickstart_two_step exact_match,strict-match: all documents have the same score" in capsys.readouterr().out


def test_a_second_run_replaces_the_assumption(runs, capsys):
    alone, both = told(capsys, runs[0]), told(capsys, *runs)
    one, pair = (row_of(data, "quickstart_nature", "acc") for data in (alone, both))
    assert (one["paired"], pair["paired"]) == (False, True)
    samples = [(folder / "samples_quickstart_nature.jsonl").read_text().splitlines() for folder in runs]
    a, b = ([row["acc"] for row in map(json.loads, lines)] for lines in samples)
    gaps = [x - y for x, y in zip(a, b, strict=True)]
    middle = sum(gaps) / len(gaps)
    assert pair["sd"] ** 2 == pytest.approx(sum((gap - middle) ** 2 for gap in gaps) / (len(gaps) - 1))
    assert "--correlation" in refused(capsys, *runs, "--correlation", "0.5")
    assert main(["power", *map(str, runs)]) == 0
    assert "assumed" not in capsys.readouterr().out


def test_tables_for_people(runs, capsys):
    assert (
        main(["power", str(runs[0]), "--half-width", "0.03", "--task", "*simple*", "--metric", "exact_match@mean"]) == 0
    )
    text = capsys.readouterr().out
    assert "± 0.03, with 95 % confidence" in text
    assert "± now" in text
    assert "finds now" not in text
    assert main(["power", str(runs[0]), "--difference", ".05", "--markdown", "--task", "quickstart_nature"]) == 0
    marked = capsys.readouterr().out
    assert "- nature" in marked
    assert "correlation of 0.4 (assumed" in marked


# --- lm-eval's files -------------------------------------------------------------------------------------------------

LM_EVAL = {
    "results": {
        "g": {"acc,none": 0.5, "acc_stderr,none": 0.02, "alias": "g"},
        "a": {"acc,none": 0.4, "acc_stderr,none": 0.03, "alias": " - a"},
        "b": {"acc,none": 0.6, "acc_stderr,none": 0.025, "f1,none": 0.1, "f1_stderr,none": "N/A", "alias": " - b"},
        "nan": {"ppl,none": float("nan"), "ppl_stderr,none": float("nan"), "alias": "nan"},
    },
    "group_subtasks": {"g": ["a", "b"], "a": [], "b": []},
    "n-samples": {name: {"original": 900, "effective": n} for name, n in (("a", 300), ("b", 400), ("nan", 5))},
}


def written(folder, name="results_2026-01-31T12-00-00.json", content=LM_EVAL, age=0):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    os.utime(path, (1e9 - age, 1e9 - age))
    return path


def test_a_results_file_of_lm_eval(tmp_path, capsys):
    data = told(capsys, written(tmp_path), "--difference", "0.02")
    assert [(row["name"], row["metric"], row["n"]) for row in data["rows"]] == [
        ("g", "acc", 700),
        ("a", "acc", 300),
        ("b", "acc", 400),
        ("b", "f1", 400),
        ("nan", "ppl", 5),
    ]
    a = row_of(data, "a", "acc")
    assert a["sd"] == pytest.approx(0.03 * 300**0.5)
    assert (a["repeats"], a["at_best"]) == (None, None)
    assert "no standard error" in row_of(data, "b", "f1")["reason"]
    assert "no standard error" in row_of(data, "nan", "ppl")["reason"]


def test_the_newest_results_of_a_folder_or_one_below(tmp_path, capsys):
    written(tmp_path, "model/results_2025-01-31T12-00-00.json", {**LM_EVAL, "results": {}})
    newest = written(tmp_path, "model/results_2026-01-31T12-00-00.json", age=100)
    data = told(capsys, tmp_path)
    assert data["read"] == [str(newest)]
    assert "2 results files" in data["warnings"][0]


def test_a_number_whose_count_is_not_known_says_so(tmp_path, capsys):
    content = {"results": {"t": {"acc,none": 0.5, "acc_stderr,none": 0.1}}}
    assert "how many documents" in told(capsys, written(tmp_path, content=content))["rows"][0]["reason"]


def test_groups_that_hold_each_other_end():
    rows = {name: {"acc,none": 0.5, "acc_stderr,none": 0.1} for name in "ab"}
    found = list_known({"results": rows, "group_subtasks": {"a": ["b"], "b": ["a"]}})
    assert sorted(one.name for one in found) == ["a", "b"]


@pytest.mark.parametrize(
    "content",
    [
        {"results": {"t": {"acc,none": "x", "acc_stderr,none": {"a": 1}, "sample_len": -3}}},
        {"results": {"t": {"acc,none": 1, "acc_stderr,none": True, "sample_len": 1e400}}},
        {"results": {"t": {"acc,none": 1, "acc_stderr,none": -0.1, "sample_len": "9"}}, "n-samples": []},
        {"results": {"t": {"acc,none": 1}}, "evalcore": {"estimates": {"t": {"acc,none": [1]}}}, "group_subtasks": 3},
        {
            "results": {"t": {"acc,none": 1}},
            "evalcore": {"estimates": {"t": {"acc,none": {"signature": 5, "n": 1e99}}}},
        },
    ],
)
def test_strange_values_give_a_reason_and_no_traceback(content, tmp_path, capsys):
    [row] = told(capsys, written(tmp_path, content=content), "--difference", "0.1")["rows"]
    assert row["reason"]
    assert row["documents"] == {}


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"results": []}', '{"results": {}}', '{"results": {"t": {"alias": "t"}}}']
)
def test_files_of_another_kind_are_refused_in_a_line(text, tmp_path, capsys):
    path = tmp_path / "results.json"
    path.write_text(text)
    assert str(path) in refused(capsys, path)


def test_names_that_a_terminal_obeys_are_shown(tmp_path, capsys):
    rows = {"t\x1b[2J": {"acc,none": 0.5, "acc_stderr,none": 0.1, "alias": "a\x1b[31m|b", "sample_len": 9}}
    path = written(tmp_path, content={"results": rows})
    for form in ([], ["--markdown"]):
        assert main(["power", str(path), *form]) == 0
        assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--difference", "0"], "above 0"),
        (["--difference", "nan"], "above 0"),
        (["--half-width", "-1"], "above 0"),
        (["--power", "1"], "between 0 and 1"),
        (["--alpha", "x"], "between 0 and 1"),
        (["--correlation", "2"], "between -1 and 1"),
        (["--repeats", "1,0"], "integers"),
        (["--difference", "0.1", "--half-width", "0.1"], "not allowed"),
        (["--difference", "5"], "5 points are 0.05"),
        (["--half-width", "1"], "1 point is 0.01"),
        (["--cluster", "no_such_field"], "no_such_field"),
        (["--task", "quickstart_natur"], "did you mean 'quickstart_nature'"),
        (["--metric", "ac"], "did you mean 'acc'"),
    ],
)
def test_bad_input_is_one_line(arguments, said, runs, capsys):
    assert said in refused(capsys, runs[0], *arguments)


def test_no_such_run(tmp_path, capsys):
    assert "no such file" in refused(capsys, tmp_path / "none")
    assert "neither results*.json nor a sample log" in refused(capsys, tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[1]", "it is no object"),
        ('{"acc": 1}', 'it has no key "results"'),
        ('{"results": 1}', 'its "results" is no ob'),
    ],
)
def test_results_of_the_wrong_shape_are_called_that(content, said, tmp_path, capsys):
    (tmp_path / "results.json").write_text(content)
    told = refused(capsys, tmp_path)
    assert f"results.json is no results file: {said}" in told
    assert "found neither" not in told


def test_totals_alone_cannot_be_paired(tmp_path, runs, capsys):
    path = written(tmp_path)
    assert "log_samples" in refused(capsys, path, path)


def test_an_empty_path_is_not_this_folder(runs, capsys, monkeypatch):
    monkeypatch.chdir(runs[0])
    assert "empty" in refused(capsys, "")
    assert "empty" in refused(capsys, ".", "")


def test_a_sample_log_alone_and_a_folder_of_logs(runs, tmp_path, capsys):
    whole = row_of(told(capsys, runs[0]), "quickstart_nature", "acc")
    log = runs[0] / "samples_quickstart_nature.jsonl"
    shutil.copy(log, tmp_path)
    for path in (log, tmp_path):
        alone = told(capsys, path, "--difference", "0.05")
        assert alone["read"] == [str(path)]
        row = row_of(alone, "quickstart_nature", "acc")
        assert (row["n"], row["sd"], row["detectable"]) == pytest.approx((35, whole["sd"], whole["detectable"]))


def test_clusters_are_the_units(tmp_path, capsys):
    log = write_log(tmp_path / "samples_t.jsonl", rows_of("t", "acc", [float(at % 10 < 6) for at in range(100)]))
    plain, clustered = (row_of(told(capsys, log, *more), "t", "acc") for more in ((), ("--cluster", "passage")))
    assert (plain["n"], plain["clusters"], clustered["clusters"]) == (100, None, 20)
    halves = np.array([1.0, 0.2] * 10)  # the mean of each passage of five
    assert clustered["sd"] ** 2 / 100 == pytest.approx(halves.var(ddof=1) / 20)
    other = write_log(tmp_path / "other/samples_t.jsonl", rows_of("t", "acc", [float(at % 7 < 4) for at in range(100)]))
    assert row_of(told(capsys, log, other, "--cluster", "passage"), "t", "acc")["clusters"] == 20


def test_a_groups_count_is_that_of_the_metric(tmp_path, capsys):
    group = {"acc,none": 0.5, "acc_stderr,none": 0.08, "sample_len": 60, "sample_count": {"acc,none": 40}}
    content = {"results": {"g": group}, "group_subtasks": {"g": ["a", "b"]}}
    assert told(capsys, written(tmp_path, content=content))["rows"][0]["n"] == 40


def test_points_are_for_scores_beyond_1(tmp_path, capsys):
    bleu = {"bleu,none": 30.0, "bleu_stderr,none": 1.0, "sample_len": 100, "acc,none": 0.5, "acc_stderr,none": 0.05}
    path = written(tmp_path, content={"results": {"t": bleu}})
    assert told(capsys, path, "--difference", "5", "--metric", "bleu")["rows"][0]["documents"]["as now"] > 0
    assert "t acc,none lies between 0 and 1, where 5 points are 0.05" in refused(capsys, path, "--difference", "5")
    bits = {"bits_per_byte,none": 0.9, "bits_per_byte_stderr,none": 0.05, "sample_len": 100}
    path = written(tmp_path, content={"results": {"t": bits}})
    assert told(capsys, path, "--difference", "1")["rows"][0]["documents"]["as now"] > 0


def test_names_are_those_that_one_can_type(runs, capsys):
    assert main(["power", str(runs[0])]) == 0
    assert " - nature " in capsys.readouterr().out
    for asked in ("nature, world", "quickstart_nature, quickstart_world"):
        assert main(["power", str(runs[0]), "--task", asked]) == 0
        text = capsys.readouterr().out
        assert " - world " in text
        assert "everyday" not in text


def test_csv_is_a_row_for_every_number(runs, capsys):
    arguments = ["power", str(runs[0]), "--difference", "0.05", "--repeats", "1,8"]
    assert main([*arguments, "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    every = told(capsys, *arguments[1:])["rows"]
    assert [(row["name"], row["metric"], int(row["n"])) for row in rows] == [
        (row["name"], row["metric"], row["n"]) for row in every
    ]
    for row, one in zip(rows, every, strict=True):
        assert row["n_needed_with_8"] == str(one["documents"].get("8") or "")
        assert row["n_needed"] == str(one["documents"].get("as now") or "")


@pytest.mark.parametrize("width", [140, 80, 60])
@pytest.mark.parametrize("asked", [PowerGoal(), PowerGoal(difference=0.05), PowerGoal(half_width=0.05)])
def test_pages_fit_any_screen_and_explain_only_what_they_show(width, asked):
    seen = Known(name="a_task_of_some_length", key=MetricKey("exact_match@mean", "flexible-extract"), n=400, units=400)
    seen = replace(seen, stderr=0.025, sampling=0.015, repeats=4.0)
    planned = Planned(plans=(plan_next(seen, asked),), asked=asked, read=("out/results.json",))
    text = draw_page(build_page(planned), Screen(width))
    assert all(cell_len(line) <= width for line in text.splitlines())
    head = next(line for line in text.splitlines() if line.startswith("Tasks"))
    for name in ("question sd", "at best", "K=1", "K needed"):
        assert (f"\n{name}: " in text) is (name in head)
    assert ("n needed" in head) is (asked != PowerGoal())


def test_what_is_read_is_what_is_planned():
    """A file's clusters are the units, and pass@k is planned for no fewer replies than there are."""
    told = {
        "n": 100,
        "stderr": 0.05,
        "clusters": 20,
        "repeats": 4.0,
        "question_stderr": 0.04,
        "sampling_stderr": 0.03,
        "signature": "task:t|reducer:pass@2|repeats:4",
    }
    results = {"results": {"t": {"acc,none": 0.5}}, "evalcore": {"estimates": {"t": {"acc,none": told}}}}
    [known] = list_known(results)
    assert known == Known(
        name="t",
        key=MetricKey("acc"),
        n=100,
        units=20,
        stderr=0.05,
        sampling=0.03,
        repeats=4.0,
        fewest=4.0,
        share=True,
        value=0.5,
        coarseness=pytest.approx(19 * 0.05**2 / 0.25),
    )
    planned = dict(plan_next(known, PowerGoal(half_width=0.05, repeats=(2, 8))).documents)
    assert planned[2] is None
    assert planned[8] % 5 == 0


# --- clusters ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("aggregation", ["mean", "macro", "pool"])
def test_a_group_counts_documents_of_tasks_without_clusters_one_by_one(aggregation):
    """Ten clusters of three in one task, the same ten of two in another, and forty documents that stand alone."""
    key, rng = MetricKey("acc"), np.random.default_rng(0)

    def scored(name, n, clusters):
        rows = build_column(range(n), Floats(Array((rng.random(n) < 0.6).astype(float))))
        task = Task(name, MULTIPLE_CHOICE, (MetricSpec("acc"),))
        return Scored(task, (ScoredColumn(key, rows, task.metrics[0]),), (), "evalcore", clusters)

    each = (
        scored("a", 30, tuple((at, at // 3) for at in range(30))),
        scored("b", 20, tuple((at, at // 2) for at in range(20))),
        scored("c", 40, ()),
    )
    tree = Group("g", tuple(Leaf(one.task.name, None) for one in each), (GroupMetric("acc", aggregation=aggregation),))
    report = build_report([report_task(one) for one in each], [tree])
    found = {one.name: one for one in list_known(lm_eval_results(report))}
    assert {name: one.units for name, one in found.items()} == {"a": 10, "b": 10, "c": 40, "g": 50}
    assert found["g"].n == 90
    assert plan_next(found["g"], PowerGoal()).half_width == pytest.approx(stats.t.ppf(0.975, 49) * found["g"].stderr)


def test_two_runs_with_clusters_are_planned_by_their_clusters(tmp_path, capsys):
    rng = np.random.default_rng(0)
    paths = [
        write_log(tmp_path / name / "samples_t.jsonl", rows_of("t", "acc", (rng.random(60) < 0.6).astype(float)))
        for name in "ab"
    ]
    one, many = (told(capsys, *paths, *flags)["rows"][0] for flags in ((), ("--cluster", "passage")))
    assert (one["clusters"], many["clusters"]) == (None, 12)
    stderr = many["sd"] / 60**0.5
    assert many["half_width"] == pytest.approx(stats.t.ppf(0.975, 11) * stderr)
