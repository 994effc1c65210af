"""``evalcore score``: the same numbers by the same rules, new ones by new rules, piece by piece, and never a traceback."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from math import comb
from pathlib import Path

import numpy as np
import pytest
from counting import count_steps, growth

from bench.scale.rescoring import make_logs
from evalcore.core.records.errors import EvalError
from evalcore.shell.cli import main
from evalcore.shell.score import stream as streaming
from evalcore.shell.score.rules import Rules, lay_over, read_file

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
        (["--filter", 'regex={"a":' + "[" * 100_000], "expected its options as a JSON object"),
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
        read_file(tmp_path / "rules.yaml")


def test_no_rules_change_nothing(run):
    from evalcore.core.lm_eval.task_config import task_from_config

    config = json.loads((run / "results.json").read_text())["configs"]["quickstart_one_step"]
    task = task_from_config(config)
    assert lay_over(task, Rules()) is task


# --- recorded scores, tables as they come -------------------------------------------------------------------------


def table_of(path: Path, rows: Iterable[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """Five answers to each question, with a label each; all but a few are right."""
    rows = (
        {
            "id": at,
            "said": list("aaabb"),
            "gold": "a",
            "right": [True, *[at > 0] * 4],
            "long": at % 2 == 0,
            "about": {"topic": "law" if at % 3 else "art"},
        }
        for at in range(30)
    )
    return table_of(tmp_path / "labels.jsonl", rows)


def test_reducers_apply_without_a_metric_being_named(labelled, score, refused):
    flags = [labelled, "--answer", "said", "--gold", "gold"]
    found = estimates(score(*flags, "--reducer", "mean"))["labels"]["exact_match,none"]
    assert found["value"] == pytest.approx(0.6)
    assert "unknown reducer 'pss@2'" in refused(*flags, "--reducer", "pss@2")
    assert estimates(score(*flags, "--reducer", "pass@7", code=1))["labels"]["exact_match,none"]["n_unscorable"] == 30


def test_labels_are_shares_and_can_be_scored_again(labelled, score, refused, tmp_path):
    flags = [labelled, "--answer", "said", "--score", "right", "--reducer", "pass@1", "--reducer", "pass@2"]
    found = estimates(score(*flags, "--output_path", tmp_path / "out"))["labels"]
    assert sorted(found) == ["right@pass@1,none", "right@pass@2,none"]
    assert all(0 <= one["ci"][0] <= one["ci"][1] <= 1 for one in found.values())
    again = estimates(score(tmp_path / "out"))["labels"]
    for key, one in found.items():
        assert [again[key][part] for part in ("value", "n", "ci")] == [one[part] for part in ("value", "n", "ci")]
    assert "taken as recorded when this was written" in refused(tmp_path / "out", "--reducer", "pass@3")


def test_several_scores_of_a_table(labelled, score, refused):
    found = estimates(score(labelled, "--score", "long"))["labels"]
    assert found["long,none"]["value"] == 0.5
    both = estimates(score(labelled, "--score", "right", "--score", "long", "--reducer", "mean"))["labels"]
    assert both["long,none"]["value"] == 0.5
    assert both["right,none"]["value"] > 0.8
    assert "unknown score column 'lng'; did you mean 'long'" in refused(labelled, "--score", "long", "--score", "lng")


@pytest.mark.parametrize("field", ["about.topic", "{{about.topic}}"])
def test_groups_by_a_path_or_a_template(labelled, score, refused, field):
    found = estimates(score(labelled, "--answer", "said", "--gold", "gold", "--group_by", field))
    assert {name: one["exact_match,none"]["n"] for name, one in found.items()} == {
        "labels": 30,
        "labels_art": 10,
        "labels_law": 20,
    }
    assert "about.topic" in refused(labelled, "--answer", "said", "--group_by", "topic")


@pytest.mark.parametrize("flags", [["--answer", "a"], ["--score", "a"], ["--answer", "a", "--group_by", "b"]])
def test_a_table_without_rows_is_an_error(refused, tmp_path, flags):
    (tmp_path / "head.csv").write_text("a,b\n")
    assert "head.csv: no documents" in refused(tmp_path / "head.csv", *flags)


def test_a_recorded_score_under_its_filter(run, score, tmp_path):
    log = run / "samples_quickstart_one_step.jsonl"
    wanted = {key: one["value"] for key, one in estimates(score(log))["quickstart_one_step"].items()}
    assert len(wanted) > 1
    for key, value in wanted.items():
        found = estimates(score(log, "--score", key))["quickstart_one_step"]
        assert {name: one["value"] for name, one in found.items()} == {key: value}
    every = estimates(score(log, "--score", "exact_match", "--output_path", tmp_path / "out"))["quickstart_one_step"]
    assert {key: one["value"] for key, one in every.items()} == wanted
    again = estimates(score(tmp_path / "out"))["quickstart_one_step"]  # not measured anew, without the filters
    assert {key: one["value"] for key, one in again.items()} == wanted


def inspect_log(path: Path, scores: list[dict[str, object] | None]) -> Path:
    """A log of Inspect; a sample without scores ended in an error."""
    error = {"message": "timeout", "traceback": "", "traceback_ansi": ""}
    samples = [
        {
            "id": at,
            "epoch": 1,
            "input": "?",
            "target": "4",
            "output": {"completion": "5", "model": "m", "choices": []},
            "metadata": {"topic": "art" if at % 2 else "law"},
            **({"scores": one} if one else {"error": error}),
        }
        for at, one in enumerate(scores)
    ]
    head = {"task": "sums", "model": "m", "dataset": {}, "config": {}, "created": "2024-01-01T00:00:00"}
    path.write_text(json.dumps({"version": 2, "status": "success", "eval": head, "samples": samples}))
    return path


def test_inspect_samples_without_scores_are_counted(score, tmp_path):
    right, wrong = ({"match": {"value": one}} for one in "CI")
    log = inspect_log(tmp_path / "log.json", [None, right, right, wrong, {**right, "more": {"value": 0.5}}])
    found = estimates(score(log, code=1))["sums"]
    assert list(found) == ["match,none", "more,none"]
    assert (found["match,none"]["value"], found["match,none"]["n"], found["match,none"]["n_failed"]) == (0.75, 4, 1)
    more = estimates(score(log, "--score", "more", code=1))["sums"]["more,none"]
    assert (more["value"], more["n_failed"]) == (0.5, 4)
    split = estimates(score(log, "--group_by", "metadata.topic", code=1))
    assert {name: one["match,none"]["n"] for name, one in split.items()} == {"sums": 4, "sums_art": 2, "sums_law": 2}


# --- shards, folders, flags ---------------------------------------------------------------------------------------


@pytest.fixture
def shards(run: Path, coded: tuple[Path, Path], score: Callable[..., Results], tmp_path: Path) -> Path:
    """A task scored by code, its log in two files and two folders."""
    log, own = run / "samples_quickstart_simple_questions.jsonl", coded[0]
    score(log, "--task", own, "--trust", own.parent / "own.py", "--output_path", tmp_path / "one")
    rows = (tmp_path / "one" / log.name).read_text().splitlines(keepends=True)
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "results.json").write_bytes((tmp_path / "one" / "results.json").read_bytes())
    (tmp_path / "one" / log.name).write_text("".join(rows[:12]))
    (tmp_path / "two" / log.name).write_text("".join(rows[12:]))
    return tmp_path


def test_every_shard_is_read_and_none_is_replaced(shards, score, refused):
    name = "samples_quickstart_simple_questions.jsonl"
    logs = [shards / one / name for one in ("one", "two")]
    stated = json.loads((shards / "one" / "results.json").read_text())
    found = estimates(score(*logs))
    assert found["quickstart_simple_questions"]["own,none"]["n"] == 30
    assert found["quickstart_simple_questions"] == estimates(stated)["quickstart_simple_questions"]
    for folder in ("one", "two"):
        assert "holds what is scored" in refused(*logs, "--output_path", shards / folder, "--overwrite")


def test_no_output_inside_a_folder_that_is_read(run, refused):
    assert "lies in" in refused(run, "--output_path", run / "below" / "out")
    assert not (run / "below").exists()


def test_only_some_tasks(run, score, refused):
    assert set(estimates(score(run, "--only", "*_step"))) >= {"quickstart_one_step", "quickstart_two_step"}
    assert not {"quickstart_nature", "quickstart_prose"} & set(estimates(score(run, "--only", "*_step")))
    assert "unknown task of the logs 'no*'" in refused(run, "--only", "no*")


def test_a_log_without_results_says_by_which_rules(run, score, tmp_path):
    log = tmp_path / "samples_quickstart_prose.jsonl"
    log.write_bytes((run / log.name).read_bytes())
    found = score(log)
    told = " ".join(found["evalcore"]["warnings"])
    assert "no results with its rules lie beside samples_quickstart_prose.jsonl; word_perplexity" in told
    assert "--score NAME takes a recorded score" in told
    assert found["n-shot"] == {"quickstart_prose": None}


def test_flags_without_effect_are_told(run, score):
    log = run / "samples_quickstart_one_step.jsonl"
    found = score(log, "--weights", "equal", "--answer", "reply", "--metric", "f1", "--score", "exact_match")
    told = " ".join(found["evalcore"]["warnings"])
    for flag in ("--weights", "--answer", "--metric"):
        assert f"{flag} had no effect" in told
    assert "no effect" not in " ".join(score(log)["evalcore"]["warnings"])


def test_unknown_shots_are_not_none(labelled, score, tmp_path, capsys):
    flags = ["--answer", "said", "--gold", "gold", "--group_by", "about.topic"]
    found = score(labelled, *flags, "--output_path", tmp_path / "out")
    assert found["n-shot"] == {"labels": None, "labels_art": None, "labels_law": None}
    assert score(tmp_path / "out")["n-shot"] == found["n-shot"]
    assert main(["score", str(labelled), *flags, "--csv", "--quiet"]) == 0
    assert {row["num_fewshot"] for row in csv.DictReader(capsys.readouterr().out.splitlines())} == {""}


def test_problems_are_printed_without_what_a_terminal_obeys(tmp_path, capsys):
    log = tmp_path / "an\x1b[31m\u202eswers.jsonl"
    log.write_text('{"said": "a", "gold": "a"}\n{"said"\n')
    assert main(["score", str(log), "--answer", "said", "--gold", "gold", "--keep_going", "--quiet"]) == 1
    said = "".join(capsys.readouterr())
    assert "could not be read" in said
    assert not {"\x1b", "\u202e"} & set(said)


def test_an_aggregation_that_is_no_name_is_one_message(run, refused, tmp_path):
    log = tmp_path / "samples_quickstart_prose.jsonl"
    log.write_bytes((run / log.name).read_bytes())
    results = json.loads((run / "results.json").read_text())
    results["configs"]["quickstart_prose"]["metric_list"][0]["aggregation"] = {"a": 1}
    (tmp_path / "results.json").write_text(json.dumps(results))
    assert "expected the name of an aggregation" in refused(log)


def test_thousands_of_problems_are_listed_in_one_pass(tmp_path, capsys):
    def score(count):
        log = tmp_path / "answers.jsonl"
        log.write_text('{"said": "a", "gold": "a"}\n' + '{"said"\n' * count)
        assert main(["score", str(log), "--answer", "said", "--gold", "gold", "--keep_going", "--quiet"]) == 1
        assert f"{count:,} records could not be read" in capsys.readouterr().err

    assert growth(score, 2_000) < 2.1
    score(40_000)


def test_scoring_takes_a_few_steps_a_row(tmp_path, score):
    """Beside only decoding the log that is 2 to 3 times the time (`python -m bench rescoring`); here every step counts.

    Of the first 2 MB every row is searched for keys that come twice, and then one in 256.
    """
    rows, steps = [], []
    for size in (5_000_000, 6_000_000, 7_000_000):
        folder = tmp_path / str(size)
        folder.mkdir()
        make_logs(folder, size)
        score(folder)  # modules are imported before
        rows.append(sum(log.read_bytes().count(b"\n") for log in folder.glob("samples_*.jsonl")))
        steps.append(count_steps(lambda folder=folder: score(folder)))
    assert steps[1] - steps[0] < 300 * (rows[1] - rows[0])  # 187 of them
    assert steps[2] - steps[1] < 300 * (rows[2] - rows[1])


# --- names of filters -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bare", [False, True])
def test_new_steps_keep_the_name_of_the_one_filter_they_replace(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], bare: bool
) -> None:
    """So old and new numbers pair; a bare log says by its rows what its filter was called."""
    log = run / "samples_quickstart_simple_questions.jsonl"
    if bare:
        log = tmp_path / log.name
        log.write_bytes((run / log.name).read_bytes())
    typed = ["score", str(log), "--filter", NUMBER, "--reducer", "mean"]
    assert main([*typed, "--output_path", str(tmp_path / "new"), "--quiet"]) == 0
    results = json.loads((tmp_path / "new" / "results.json").read_text())["results"]["quickstart_simple_questions"]
    assert {key.partition(",")[2] for key in results if "," in key} == {"first-word"}
    capsys.readouterr()
    assert main([*typed, "--filter_name", "mine", "--json", "--quiet"]) == 0
    assert "exact_match,mine" in capsys.readouterr().out


def test_old_and_new_numbers_pair_without_a_name_being_given(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = ["score", str(run / "samples_quickstart_simple_questions.jsonl"), "--quiet", "--reducer", "mean"]
    for folder, given in (("old", []), ("new", ["--filter", NUMBER])):
        assert main([*typed, *given, "--output_path", str(tmp_path / folder)]) == 0
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "old"), str(tmp_path / "new"), "--json"]) == 0
    [line] = json.loads(capsys.readouterr().out)["pairs"][0]["lines"]
    assert (line["filter"], line["n"]) == ("first-word", 30)


def test_new_steps_in_place_of_several_filters_say_what_they_are_called(
    run: Path, score: Callable[..., Results]
) -> None:
    found = score(run / "samples_quickstart_one_step.jsonl", "--filter", NUMBER)
    assert "exact_match,none" in found["results"]["quickstart_one_step"]  # type: ignore[operator]
    [told] = [one for one in found["evalcore"]["warnings"] if "several filters" in str(one)]  # type: ignore[attr-defined]
    assert "(strict-match, flexible-extract), and these steps are called none" in told
