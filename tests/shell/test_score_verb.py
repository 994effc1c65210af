"""``evalcore score``: the same numbers by the same rules, new ones by new rules, piece by piece, and never a traceback."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from math import comb
from pathlib import Path

import numpy as np
import pytest

from evalcore.core.errors import EvalError
from evalcore.shell.cli import main
from evalcore.shell.rescoring import streaming
from evalcore.shell.rescoring.rules import Rules, lay_over, read_rules

QUICKSTART = Path(__file__).resolve().parents[2] / "examples" / "quickstart"
NUMBER = 'regex={"regex_pattern": "(-?[0-9]+)", "group_select": -1}'

Results = dict[str, dict[str, object]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quickstart's run."""
    folder = tmp_path_factory.mktemp("score") / "run"
    assert main(["run", str(QUICKSTART / "config.yaml"), "--output_path", str(folder), "--quiet"]) == 0
    return folder


@pytest.fixture
def score(capsys: pytest.CaptureFixture[str]) -> Callable[..., Results]:
    """What ``evalcore score`` prints as JSON."""

    def typed(*argv: object, code: int = 0) -> Results:
        found = main(["score", *map(str, argv), "--json", "--quiet"])
        out, err = capsys.readouterr()
        assert found == code, err
        return json.loads(out)

    return typed


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What it says of bad input, in one message."""

    def typed(*argv: object) -> str:
        assert main(["score", *map(str, argv), "--quiet"]) == 2
        err = capsys.readouterr().err
        assert err.startswith("evalcore: ")
        assert "Traceback" not in err
        assert "unexpected" not in err
        return err

    return typed


def estimates(results: Results) -> dict[str, dict[str, dict[str, object]]]:
    return results["evalcore"]["estimates"]  # type: ignore[return-value]


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# --- the same rules, the same numbers -----------------------------------------------------------------------------


def test_a_run_by_its_own_rules_gives_all_its_numbers_again(run, score):
    stated = json.loads((run / "results.json").read_text())
    found = score(run)
    assert sum(map(len, estimates(found).values())) == 21
    for part in (
        "results",
        "groups",
        "configs",
        "versions",
        "n-shot",
        "higher_is_better",
        "n-samples",
        "group_subtasks",
    ):
        assert found[part] == stated[part], part
    assert estimates(found) == estimates(stated)


def test_what_is_written_is_what_was_read(run, score, tmp_path):
    score(run, "--output_path", tmp_path / "again")
    logs = sorted(run.glob("samples_*.jsonl"))
    assert len(logs) == 7
    for log in logs:
        assert (tmp_path / "again" / log.name).read_bytes() == log.read_bytes(), log.name
    stated, written = (json.loads((one / "results.json").read_text()) for one in (run, tmp_path / "again"))
    assert written["task_hashes"] == stated["task_hashes"]
    assert score(tmp_path / "again") == {**written, "task_hashes": {}}


def test_what_is_written_can_be_compared_and_checked(run, score, tmp_path, capsys):
    score(run, "--output_path", tmp_path / "again")
    assert main(["check", str(tmp_path / "again"), "--baseline", str(run)]) == 0
    assert main(["compare", str(tmp_path / "again"), str(run), "--json"]) == 0


def test_one_log_beside_results_keeps_its_rules(run, score):
    found = estimates(score(run / "samples_quickstart_one_step.jsonl"))
    stated = estimates(json.loads((run / "results.json").read_text()))
    assert found["quickstart_one_step"] == stated["quickstart_one_step"]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_the_size_of_pieces_changes_nothing(run, score, tmp_path, monkeypatch, size):
    whole = score(run)
    monkeypatch.setattr(streaming, "PIECE", size)
    assert score(run) == whole
    log = run / "samples_quickstart_nature.jsonl"
    split, written = (score(log, "--group_by", "gold", *more) for more in ([], ["--output_path", tmp_path / "split"]))
    assert estimates(split) == estimates(written) == estimates(score(tmp_path / "split"))
    assert estimates(split)["quickstart_nature"]["acc,none"]["n"] == 35


def test_documents_in_any_order(run, score, tmp_path, monkeypatch):
    log = run / "samples_quickstart_two_step.jsonl"
    rows = log.read_text().splitlines()
    (tmp_path / log.name).write_text("\n".join(rows[::-1]) + "\n")
    (tmp_path / "results.json").write_bytes((run / "results.json").read_bytes())
    monkeypatch.setattr(streaming, "PIECE", 3)
    found, wanted = (estimates(score(one / log.name))["quickstart_two_step"] for one in (tmp_path, run))
    assert found == wanted


# --- new rules ------------------------------------------------------------------------------------------------------


def test_flags_and_a_task_file_mean_the_same(run, score, tmp_path):
    log = run / "samples_quickstart_one_step.jsonl"
    flags = ["--filter", NUMBER, "--filter", "take_first", "--filter_name", "last", "--metric", "exact_match"]
    options = json.loads(NUMBER.partition("=")[2])
    rules = {
        "metric_list": [{"metric": "exact_match"}],
        "filter_list": [{"name": "last", "filter": [{"function": "regex", **options}, {"function": "take_first"}]}],
    }
    (tmp_path / "rules.yaml").write_text(json.dumps(rules))
    gold = r"{{solution.split('answer is ')[1].rstrip('.')}}"
    task = {"task": "mine", "output_type": "generate_until", "doc_to_text": "question", "doc_to_target": gold, **rules}
    (tmp_path / "task.yaml").write_text(json.dumps(task))
    flagged, filed = score(log, *flags), score(log, "--filters", tmp_path / "rules.yaml")
    assert estimates(flagged)["quickstart_one_step"] == estimates(filed)["quickstart_one_step"]
    # The log's own gold is the whole sentence; the task file takes the number out of the document.
    assert estimates(flagged)["quickstart_one_step"]["exact_match,last"]["value"] == 0
    by_task = estimates(score(log, "--task", tmp_path / "task.yaml"))["quickstart_one_step"]["exact_match,last"]
    right = [_last(row) == row["doc"]["solution"].split("answer is ")[1].rstrip(".") for row in lines(log)]
    assert by_task["value"] == pytest.approx(np.mean(right[: by_task["n"]]))
    assert 0 < by_task["value"] < 1


def _last(row):
    import re

    found = re.findall(r"-?[0-9]+", row["resps"][0][0])
    return found[-1] if found else None


def test_groups_average_what_their_tasks_have_now(run, score):
    logs = [run / f"samples_quickstart_{one}.jsonl" for one in ("one_step", "two_step")]
    found = estimates(score(*logs, "--filter", NUMBER, "--filter", "take_first", "--metric", "f1"))
    group, tasks = found["quickstart_arithmetic"], [found[f"quickstart_{one}"] for one in ("one_step", "two_step")]
    parts = [task["f1,none"] for task in tasks]
    assert group["f1,none"]["value"] == pytest.approx(
        sum(one["value"] * one["n"] for one in parts) / sum(one["n"] for one in parts)
    )


def test_reducers_over_recorded_repeats(run, score):
    log = run / "samples_quickstart_simple_questions.jsonl"
    found = estimates(score(log, "--reducer", "pass@3"))["quickstart_simple_questions"]["exact_match,first-word"]
    hits = [sum(one == row["target"] for one in row["filtered_resps"]) for row in lines(log)]
    assert found["value"] == pytest.approx(np.mean([1 - comb(4 - c, 3) / comb(4, 3) for c in hits]))


def test_clusters_are_those_of_a_run(run, score, tmp_path, capsys):
    flags = ["--tasks", "quickstart_nature", "--cluster", "gold"]
    config = str(QUICKSTART / "config.yaml")
    assert main(["run", config, *flags, "--output_path", str(tmp_path / "run"), "--quiet"]) == 0
    capsys.readouterr()
    wanted = estimates(json.loads((tmp_path / "run" / "results.json").read_text()))["quickstart_nature"]
    log = run / "samples_quickstart_nature.jsonl"
    assert estimates(score(log, "--cluster", "gold"))["quickstart_nature"] == wanted
    assert estimates(score(tmp_path / "run"))["quickstart_nature"] == wanted  # the log says which belong together
    assert estimates(score(log))["quickstart_nature"] != wanted


@pytest.mark.parametrize(("limit", "n"), [(10, 10), (0.5, 15)])
def test_a_limit_takes_the_first_documents(run, score, limit, n):
    log = run / "samples_quickstart_one_step.jsonl"
    found = estimates(score(log, "--limit", limit))["quickstart_one_step"]["exact_match,strict-match"]
    scores = [row["exact_match"] for row in lines(log) if row["filter"] == "strict-match"][:n]
    assert (found["n"], found["value"]) == (n, pytest.approx(np.mean(scores)))


def test_unparsed_answers_as_wrong_or_unscorable(run, score):
    log = run / "samples_quickstart_one_step.jsonl"
    lost = sum("+" not in row["resps"][0][0] for row in lines(log) if row["filter"] == "strict-match")
    flags = ["--filter", 'regex={"regex_pattern": "[+].* is ([0-9]+)"}', "--filter", "take_first"]
    wrong = estimates(score(log, *flags))["quickstart_one_step"]["exact_match,none"]
    out = estimates(score(log, *flags, "--unparsed", "unscorable", code=1))["quickstart_one_step"]["exact_match,none"]
    assert 0 < lost == out["n_unscorable"]
    assert out["n"] == wrong["n"] - lost
    assert out["lowest"] == pytest.approx(wrong["value"])


CODE = """
def twice(doc, results):
    return {"own": 2.0 * (results[0].strip() == doc["answer"])}

class Position:
    def apply(self, replies, docs):
        return [[str(at)] for at, _ in enumerate(replies)]
"""


@pytest.fixture
def coded(tmp_path: Path) -> tuple[Path, Path]:
    """Two task files with code: a score of its own, and a filter that looks at the whole task."""
    (tmp_path / "own.py").write_text(CODE)
    head = "output_type: generate_until\ndoc_to_text: question\ndoc_to_target: answer\n"
    (tmp_path / "own.yaml").write_text(
        f"task: own\n{head}process_results: !function own.twice\nmetric_list: [metric: own]\n"
    )
    steps = "[function: !function own.Position]"
    (tmp_path / "wide.yaml").write_text(
        f"task: wide\n{head}filter_list: [{{name: none, filter: {steps}}}]\nmetric_list: [metric: exact_match]\n"
    )
    return tmp_path / "own.yaml", tmp_path / "wide.yaml"


def test_code_runs_only_if_it_is_trusted(run, score, refused, coded):
    log, (own, _) = run / "samples_quickstart_simple_questions.jsonl", coded
    assert f"--trust {own.parent / 'own.py'}" in refused(log, "--task", own)
    found = score(log, "--task", own, "--trust", own.parent / "own.py")
    right = [row["resps"][0][0].strip() == row["doc"]["answer"] for row in lines(log)]
    assert estimates(found)["quickstart_simple_questions"]["own,none"]["value"] == pytest.approx(2 * np.mean(right))


def test_a_score_by_code_stands_as_it_was_recorded(run, score, refused, coded, tmp_path):
    log, (own, _) = run / "samples_quickstart_simple_questions.jsonl", coded
    score(log, "--task", own, "--trust", own.parent / "own.py", "--output_path", tmp_path / "out")
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    found = score(tmp_path / "out", "--output_path", tmp_path / "more")
    assert found["results"] == written["results"]
    assert any("what was recorded stands" in one for one in found["evalcore"]["warnings"])
    rows, before = (lines(tmp_path / one / log.name) for one in ("more", "out"))
    assert [row["own"] for row in rows] == [row["own"] for row in before]
    assert "scored by code of the task's own" in refused(tmp_path / "out", "--filter", "lowercase")
    measured = estimates(score(tmp_path / "out", "--metric", "exact_match"))["quickstart_simple_questions"]
    assert list(measured) == ["exact_match,none"]


def test_a_filter_over_the_whole_task_sees_the_whole_task(run, score, coded, monkeypatch, tmp_path):
    monkeypatch.setattr(streaming, "PIECE", 7)
    log, (_, wide) = run / "samples_quickstart_simple_questions.jsonl", coded
    found = score(log, "--task", wide, "--trust", wide.parent / "own.py", "--output_path", tmp_path / "out")
    assert any("all were held in memory" in one for one in found["evalcore"]["warnings"])
    rows = lines(tmp_path / "out" / log.name)
    assert [row["filtered_resps"] for row in rows] == [[str(at)] for at in range(30)]


# --- tables, fields, several runs ---------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    with (tmp_path / "answers.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["subject", "said", "right"])
        for at in range(60):
            gold = str(int(rng.integers(3)))
            writer.writerow(
                ["law" if at < 15 else "art", gold if rng.random() < (0.9 if at < 15 else 0.4) else "x", gold]
            )
    return tmp_path / "answers.csv"


@pytest.mark.parametrize("weights", ["size", "equal"])
def test_a_field_splits_a_table_into_tasks_and_a_group(score, table, weights, tmp_path):
    flags = ["--answer", "said", "--gold", "right", "--group_by", "subject", "--weights", weights]
    found = estimates(score(table, *flags, "--output_path", tmp_path / "out"))
    rows = list(csv.DictReader(table.open()))
    hits = {name: [row["said"] == row["right"] for row in rows if row["subject"] == name] for name in ("law", "art")}
    for name, values in hits.items():
        one = found[f"answers_{name}"]["exact_match,none"]
        assert (one["value"], one["n"]) == (pytest.approx(np.mean(values)), len(values))
    whole = (
        np.mean([*hits["law"], *hits["art"]]) if weights == "size" else np.mean([np.mean(one) for one in hits.values()])
    )
    assert found["answers"]["exact_match,none"]["value"] == pytest.approx(whole)
    assert estimates(score(tmp_path / "out"))["answers"] == found["answers"]  # groups are written, too


def test_a_file_of_groups(run, score, refused, tmp_path):
    metric = {"metric": "acc", "weight_by_size": False}
    group = {"group": "mine", "task": ["quickstart_nature", "quickstart_everyday"], "aggregate_metric_list": [metric]}
    (tmp_path / "groups.yaml").write_text(json.dumps(group))
    found = estimates(score(run, "--groups", tmp_path / "groups.yaml"))
    parts = [found[f"quickstart_{one}"]["acc,none"]["value"] for one in ("nature", "everyday")]
    assert found["mine"]["acc,none"]["value"] == pytest.approx(np.mean(parts))
    (tmp_path / "groups.yaml").write_text("task: [a]")
    assert "expected a group" in refused(run, "--groups", tmp_path / "groups.yaml")


def test_two_runs_of_the_same_tasks_keep_apart(run, score, tmp_path):
    score(run, "--limit", 5, "--output_path", tmp_path / "less")
    found = estimates(score(run, tmp_path / "less"))
    assert sum(map(len, found.values())) == 42
    n = sorted(row["acc,none"]["n"] for name, row in found.items() if name.startswith("quickstart_knowledge"))
    assert n == [10, 70]


# --- what is wrong --------------------------------------------------------------------------------------------------


def test_a_damaged_log_says_where_and_goes_on_if_asked(run, refused, capsys, tmp_path):
    log = tmp_path / "samples_quickstart_prose.jsonl"
    rows = (run / log.name).read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*rows[:3], rows[3][:50] + b"\n", *rows[4:]]))
    told = refused(log)
    byte = sum(map(len, rows[:3]))
    assert f"{log}:4: " in told
    assert f"byte {byte:,}" in told
    assert "3 good documents" in told
    assert main(["score", str(log), "--keep-going", "--csv", "--quiet"]) == 1
    out, err = capsys.readouterr()
    assert all(row["n"] == str(len(rows) - 1) for row in csv.DictReader(out.splitlines()))
    assert "1 record could not be read:" in err
    assert f"{log}:4: " in err
    assert f"(byte {byte:,})" in err


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--filter", "regx"], "did you mean 'regex'"),
        (["--filter", "regex=(a)"], "expected its options as a JSON object"),
        (["--filter", 'regex={"pattern": "a"}'], "option of filter 'regex'"),
        (["--metric", "exct_match"], "did you mean 'exact_match'"),
        (["--reducer", "pass@0"], "pass@0"),
        (["--score", "acuracy"], "recorded score"),
        (["--filters", "no/such.yaml"], "cannot read no/such.yaml"),
        (["--groups", "no/such.yaml"], "no/such.yaml"),
        (["--task", "no_such_task_at_all"], "no_such_task_at_all"),
        (["--group_by", "colour"], "fields: question, answer"),
        (["--cluster", "colour"], "fields: question, answer"),
        (["--confidence", "2"], "confidence"),
        (["--policy", "mine"], "policy"),
        (["--limit", "-1"], "limit"),
    ],
)
def test_bad_flags_are_one_message(run, refused, flags, told):
    assert told in refused(run / "samples_quickstart_simple_questions.jsonl", *flags)


def test_bad_paths_are_one_message(refused, tmp_path):
    assert "no such file" in refused(tmp_path / "nothing.jsonl")
    (tmp_path / "empty.jsonl").write_text("")
    assert "empty" in refused(tmp_path / "empty.jsonl")


def test_a_task_of_another_kind_is_refused(run, refused, tmp_path):
    (tmp_path / "task.yaml").write_text("task: t\noutput_type: generate_until\ndoc_to_target: gold\n")
    told = refused(run / "samples_quickstart_nature.jsonl", "--task", tmp_path / "task.yaml")
    assert "measures generate_until" in told
    assert "answers of multiple_choice" in told


def test_what_is_read_is_never_replaced(run, score, refused, tmp_path):
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    assert "holds what is scored" in refused(run, "--output_path", run)
    assert "holds what is scored" in refused(run / "samples_quickstart_nature.jsonl", "--output_path", run)
    score(run, "--output_path", tmp_path / "out")
    assert "holds results already" in refused(run, "--output_path", tmp_path / "out")
    score(run, "--output_path", tmp_path / "out", "--overwrite")
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


# --- rules ----------------------------------------------------------------------------------------------------------


def test_a_file_of_filters_has_two_keys(tmp_path):
    (tmp_path / "rules.yaml").write_text("filter_lst: []")
    with pytest.raises(EvalError, match="did you mean 'filter_list'"):
        read_rules(file=tmp_path / "rules.yaml")


def test_no_rules_change_nothing(run):
    from evalcore.core.task_config import task_from_config

    config = json.loads((run / "results.json").read_text())["configs"]["quickstart_one_step"]
    task = task_from_config(config)
    assert lay_over(task, Rules()) is task
