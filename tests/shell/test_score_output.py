"""What ``evalcore score -o`` writes: read again it says the same, and to write it takes no more memory for a long log."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evalcore.shell.cli import main
from evalcore.shell.score import stream as streaming
from evalcore.shell.score.units import unit_score

REPEATED = ["--answer", "said", "--gold", "gold"]


def table(path: Path, rows: list[dict[str, object]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def score(capsys):
    """What ``evalcore score`` finds under each task; with a code of 2, what it says."""

    def typed(*argv, code=0):
        found = main(["score", *map(str, argv), "--json", "--quiet"])
        out, err = capsys.readouterr()
        assert found == code, err
        return err if code == 2 else json.loads(out)["evalcore"]["estimates"]

    return typed


@pytest.fixture
def answers(tmp_path) -> Path:
    """Three answers to each of six questions, of which one or two are right; the first is right for the first two."""
    said = ["axx", "aax", "xax", "xxa", "xaa", "xax"]
    rows = [
        {"id": at, "said": list(one), "gold": "a", "right": [two == "a" for two in one]} for at, one in enumerate(said)
    ]
    return table(tmp_path / "answers.jsonl", rows)


def rows_of(folder: Path) -> list[dict[str, object]]:
    (path,) = folder.glob("samples_*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


# --- memory -------------------------------------------------------------------------------------------------------


def test_written_documents_leave_nothing_for_the_collector(tmp_path, score, monkeypatch):
    """The collector is off while a log is scored: garbage of each document would stay until the last one."""
    log = table(tmp_path / "long.jsonl", [{"said": "a", "gold": "a"}] * 600)
    left = []

    @contextmanager
    def counting() -> Iterator[None]:
        gc.collect()
        gc.disable()
        try:
            yield
            left.append(gc.collect())
        finally:
            gc.enable()

    score(log, *REPEATED, "--output_path", tmp_path / "before")  # modules are imported before
    monkeypatch.setattr(streaming, "PIECE", 100)
    monkeypatch.setattr(unit_score, "without_collector", counting)
    score(log, *REPEATED, "--output_path", tmp_path / "out")
    assert len(rows_of(tmp_path / "out")) == 600
    assert left[0] < 600


# --- recorded scores ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reducer", ["mean", "pass@2"])
def test_a_recorded_score_leaves_the_answers_in_their_place(answers, score, tmp_path, capsys, reducer):
    flags = ["--answer", "said", "--score", "right", "--reducer", reducer]
    found = score(answers, *flags, "--output_path", tmp_path / "out")
    rows = rows_of(tmp_path / "out")
    assert [row["filtered_resps"] for row in rows] == [row["resps"][0] for row in rows]
    assert rows[1]["filtered_resps"] == ["a", "a", "x"]
    again = score(tmp_path / "out")
    assert [one["value"] for one in again["answers"].values()] == [one["value"] for one in found["answers"].values()]
    assert main(["explain", str(tmp_path / "out"), "--doc", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["filters"][0]["agrees"] is True


def test_a_recorded_score_leaves_the_likelihoods_in_their_place(score, tmp_path):
    rows = [{"lls": [-1.0, -2.0, -3.0], "options": list("abc"), "gold": at % 3, "acc": at % 3 == 0} for at in range(6)]
    log = table(tmp_path / "choices.jsonl", rows)
    columns = ["--loglikelihoods", "lls", "--choices", "options", "--gold", "gold"]
    score(log, *columns, "--score", "acc", "--output_path", tmp_path / "out")
    assert rows_of(tmp_path / "out")[0]["filtered_resps"] == [[value, "False"] for value in ("-1.0", "-2.0", "-3.0")]


CODE = 'def halves(doc, results):\n    return {"own": (results[0] == "a") / 2, "exact_match": 0.25}\n'


def test_scores_of_code_are_written_as_they_were(answers, score, tmp_path):
    (tmp_path / "own.py").write_text(CODE)
    head = "task: own\noutput_type: generate_until\ndoc_to_text: id\nprocess_results: !function own.halves\n"
    (tmp_path / "own.yaml").write_text(f"{head}metric_list: [{{metric: own}}, {{metric: exact_match}}]\n")
    code = ["--task", tmp_path / "own.yaml", "--trust", tmp_path / "own.py"]
    found = score(answers, *REPEATED, *code, "--output_path", tmp_path / "first")
    assert found["answers"]["exact_match,none"]["value"] == 0.25
    again = score(tmp_path / "first", "--output_path", tmp_path / "again")
    assert again["answers"] == found["answers"]
    assert rows_of(tmp_path / "again") == rows_of(tmp_path / "first")
    configs = [json.loads((tmp_path / one / "results.json").read_text())["configs"] for one in ("first", "again")]
    assert configs[0] == configs[1]


# --- reducers -----------------------------------------------------------------------------------------------------


def test_a_reducer_gets_every_answer(answers, score, tmp_path):
    steps = ["--filter", "lowercase", "--filter", "take_first"]
    assert score(answers, *REPEATED, *steps)["answers"]["exact_match,none"]["value"] == pytest.approx(2 / 6)
    found = score(answers, *REPEATED, *steps, "--reducer", "mean", "--output_path", tmp_path / "out")
    assert found["answers"]["exact_match,none"]["value"] == pytest.approx(8 / 18)
    assert score(tmp_path / "out") == found
    assert rows_of(tmp_path / "out")[0]["filtered_resps"] == ["a", "x", "x"]


def test_a_reducer_replaces_those_of_a_task_file_also_where_it_is_written(answers, score, tmp_path):
    steps = {"name": "short", "filter": [{"function": "lowercase"}, {"function": "take_first"}]}
    own = {"metric_list": [{"metric": "exact_match", "reducer": "mean"}], "filter_list": [steps]}
    task = {"task": "t", "output_type": "generate_until", "doc_to_text": "id", "doc_to_target": "gold", **own}
    (tmp_path / "t.yaml").write_text(json.dumps(task))
    found = score(
        answers, "--answer", "said", "--task", tmp_path / "t.yaml", "--reducer", "pass@2", "-o", tmp_path / "out"
    )
    assert found["answers"]["exact_match,short"]["value"] == pytest.approx((4 * 2 / 3 + 2) / 6)
    assert score(tmp_path / "out") == found  # though the file asks for one reply of each


def test_metrics_of_a_filter_are_written(answers, score, tmp_path):
    strict = {"name": "strict", "filter": [{"function": "take_first"}], "metric_list": [{"metric": "f1"}]}
    (tmp_path / "rules.yaml").write_text(json.dumps({"filter_list": [strict]}))
    found = score(answers, *REPEATED, "--filters", tmp_path / "rules.yaml", "--output_path", tmp_path / "out")
    assert list(found["answers"]) == ["f1,strict"]
    assert list(score(tmp_path / "out")["answers"]) == ["f1,strict"]


# --- groups, rules ------------------------------------------------------------------------------------------------


def test_a_number_and_its_text_are_not_one_group_in_silence(score, tmp_path):
    log = table(tmp_path / "t.jsonl", [{"said": "a", "gold": "a", "level": one} for one in (1, 2, "1")])
    told = score(log, *REPEATED, "--group_by", "level", code=2)
    assert "got 1 and '1'" in told
    assert "--group_by '{{level}}'" in told
    assert score(log, *REPEATED, "--group_by", "{{level}}")["t_1"]["exact_match,none"]["n"] == 2


@pytest.mark.parametrize("value", ["a_b", "a"])
def test_logs_whose_groups_have_one_name_are_told_of(score, tmp_path, value):
    logs = [
        table(tmp_path / f"{name}.jsonl", [{"said": "a", "gold": "a", "v": v}])
        for name, v in (("t", value), ("t_a", "b"))
    ]
    told = score(*logs, *REPEATED, "--group_by", "v", code=2)
    assert f"both have a task or group t_{value}" in told
    assert "score these logs one at a time (--only t" in told
    assert score(*logs, *REPEATED, "--group_by", "v", "--only", "t")[f"t_{value}"]


def test_code_in_a_file_of_filters_is_told_of(answers, score, tmp_path):
    (tmp_path / "rules.yaml").write_text("metric_list:\n  - metric: f1\n  - metric: !function utils.own\n")
    told = score(answers, *REPEATED, "--filters", tmp_path / "rules.yaml", code=2)
    assert "rules.yaml:3: code in a file of filters is not run, got !function utils.own" in told
    assert "--task FILE --trust CODE" in told


# --- Parquet ------------------------------------------------------------------------------------------------------


def test_tables_go_with_the_files_and_are_renewed(tmp_path, score, answers):
    parquet = pytest.importorskip("pyarrow.parquet")
    flags = [*REPEATED, "--reducer", "mean", "--output_path", tmp_path / "out"]
    score(answers, *flags, "--parquet")
    rows = parquet.read_table(tmp_path / "out" / "samples_answers.parquet").to_pylist()
    assert [row["doc_id"] for row in rows] == [row["doc_id"] for row in rows_of(tmp_path / "out")]
    table, written = tmp_path / "out" / "results.parquet", json.loads((tmp_path / "out" / "results.json").read_text())
    [number] = parquet.read_table(table).to_pylist()
    assert number["value"] == written["results"]["answers"]["exact_match,none"]
    score(answers, *flags[:-3], "max", *flags[-2:], "--overwrite")  # old tables are not left beside new results
    [renewed] = parquet.read_table(table).to_pylist()
    assert renewed["value"] == 1.0 != number["value"]


def test_tables_need_a_folder(answers, capsys):
    assert main(["score", str(answers), *REPEATED, "--parquet", "--quiet"]) == 0
    assert "--parquet had no effect: it only goes with --output_path" in capsys.readouterr().out
