"""What ``evalcore score -o`` writes is read again as the same tasks, asked in the same way, and nothing older with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalcore.shell.cli import main

REPEATED = ["--answer", "said", "--gold", "gold"]


def table(path: Path, rows: list[dict[str, object]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def score(capsys):
    """What ``evalcore score`` finds under each task."""

    def typed(*argv, code=0):
        found = main(["score", *map(str, argv), "--json", "--quiet"])
        out, err = capsys.readouterr()
        assert found == code, err
        return json.loads(out)["evalcore"]["estimates"]

    return typed


# --- read again ---------------------------------------------------------------------------------------------------


def test_a_task_whose_name_ends_in_an_underscore_is_found_again(score, tmp_path):
    log = table(
        tmp_path / "t.jsonl", [{"said": s, "gold": "a", "v": v} for s, v in (("a", "x"), ("b", ""), ("b", "y"))]
    )
    found = score(log, *REPEATED, "--group_by", "v", "-o", tmp_path / "out")
    assert sorted(found) == ["t", "t_", "t_x", "t_y"]
    assert score(tmp_path / "out") == found


def test_samples_of_tasks_that_are_replaced_go_and_others_stay(score, tmp_path):
    out = tmp_path / "out"
    rows: list[dict[str, object]] = [{"said": "a", "gold": "a", "task": one} for one in "abc"]
    score(table(tmp_path / "t.jsonl", rows), *REPEATED, "--task_column", "task", "-o", out)
    (out / "samples_own.jsonl").write_text("mine")
    flags = ["--task_column", "task", "-o", out, "--overwrite"]
    score(table(tmp_path / "t.jsonl", rows[:2]), *REPEATED, *flags)
    assert sorted(path.name for path in out.glob("samples_*")) == [
        "samples_a.jsonl",
        "samples_b.jsonl",
        "samples_own.jsonl",
    ]


def test_samples_beside_results_of_another_harness_stay(score, tmp_path):
    out = tmp_path / "out"
    table(out / "samples_old.jsonl", [{}])
    (out / "results.json").write_text(json.dumps({"results": {"old": {}}, "configs": {"old": {}}}))
    score(table(tmp_path / "t.jsonl", [{"said": "a", "gold": "a"}]), *REPEATED, "-o", out, "--overwrite")
    assert (out / "samples_old.jsonl").exists()


def test_tables_of_samples_that_are_replaced_go_with_them(score, tmp_path):
    pytest.importorskip("pyarrow.parquet")
    rows: list[dict[str, object]] = [{"said": "a", "gold": "a", "task": one} for one in "ab"]
    flags = [*REPEATED, "--task_column", "task", "-o", tmp_path / "out", "--overwrite"]
    score(table(tmp_path / "t.jsonl", rows), *flags, "--parquet")
    score(table(tmp_path / "t.jsonl", rows[1:]), *flags)
    assert [path.name for path in (tmp_path / "out").glob("samples_*.parquet")] == ["samples_b.parquet"]


def test_no_samples_are_written_of_a_file_that_cannot_be_read(score, tmp_path):
    table(tmp_path / "in" / "good.jsonl", [{"said": "a", "gold": "a"}] * 2)
    (tmp_path / "in" / "bad.csv").write_text('said,gold\n"a,a\n')
    found = score(tmp_path / "in", *REPEATED, "--keep-going", "-o", tmp_path / "out", code=1)
    assert sorted(path.name for path in (tmp_path / "out").glob("samples_*")) == ["samples_good.jsonl"]
    assert list(json.loads((tmp_path / "out" / "results.json").read_text())["task_hashes"]) == ["good"]
    assert score(tmp_path / "out") == found


def test_scores_without_answers_are_read_again(score, tmp_path):
    log = table(tmp_path / "t.jsonl", [{"right": one} for one in (1, 0, 1)])
    found = score(log, "--score", "right", "-o", tmp_path / "out")
    assert found["t"]["right,none"]["value"] == pytest.approx(2 / 3)
    assert score(tmp_path / "out") == found
    assert score(tmp_path / "out", "--score", "right")["t"]["right,none"]["value"] == pytest.approx(2 / 3)
    assert main(["explain", str(tmp_path / "out"), "--doc", "1"]) == 0


def test_recorded_scores_say_how_many_of_them_a_document_has(score, tmp_path):
    rights = ([1, 0.5, None], [0, 1, 0.5], [0, 0, 1])
    rows: list[dict[str, object]] = [{"said": list("abc"), "gold": ["a", "b"], "right": one} for one in rights]
    flags = [*REPEATED, "--score", "right", "--reducer", "mean"]
    found = score(table(tmp_path / "t.jsonl", rows), *flags, "-o", tmp_path / "out")
    assert "|repeats:2-3|" in found["t"]["right,none"]["signature"]
    assert found["t"]["right,none"]["errata"] == []  # lm-eval's ways with golds are not those of recorded scores
    assert score(tmp_path / "out") == found


@pytest.mark.parametrize("metric", ["bleu", "chrf", "chrf++", "ter"])
def test_a_corpus_metric_is_recorded_as_reference_and_reply(score, tmp_path, metric):
    pytest.importorskip("sacrebleu")
    texts = (("a cat on the mat", "a cat on a mat"), ("it rains all day", "it rained all day"), ("yes it is", "no"))
    log = table(tmp_path / "t.jsonl", [{"said": said, "gold": gold} for gold, said in texts])
    found = score(log, *REPEATED, "--metric", metric, "-o", tmp_path / "out")["t"][f"{metric},none"]
    rows = [json.loads(line) for line in (tmp_path / "out" / "samples_t.jsonl").read_text().splitlines()]
    assert [tuple(row[metric]) for row in rows] == list(texts)
    again = score(tmp_path / "out", "--score", metric)["t"][f"{metric},none"]
    same = ("value", "stderr", "ci", "n")
    assert {key: again[key] for key in same} == {key: found[key] for key in same}
    assert found["value"] > 0


# --- how it was asked ---------------------------------------------------------------------------------------------


def lm_eval_run(folder: Path, doc: int, **told: object) -> Path:
    asked = {"gen_args_0": {"arg_0": "Q", "arg_1": {}}}
    row = {"doc_id": doc, "doc": {}, "target": "a", "arguments": asked, "resps": [["a"]], "filtered_resps": ["a"]}
    table(folder / "samples_t_2024-01-01T00-00-00.000000.jsonl", [{**row, "filter": "none", "exact_match": 1.0}])
    config = {"output_type": "generate_until", "metric_list": [{"metric": "exact_match"}]}
    results = {"results": {"t": {"exact_match,none": 1.0}}, "configs": {"t": config}, **told}
    (folder / "results_2024-01-01T00-00-00.000000.json").write_text(json.dumps(results))
    return folder


SET: dict[str, object] = {"model": "m", "gen_kwargs": {"top_k": 1}, "random_seed": 7, "fewshot_seed": 8}
TOLD: dict[str, object] = {
    "system_instruction": "be terse",
    "chat_template": "{{ messages }}",
    "fewshot_as_multiturn": True,
    "versions": {"t": 1.0},
    "config": SET,
}


def test_results_say_how_the_answers_were_asked_for(score, tmp_path):
    score(lm_eval_run(tmp_path / "a", 0, **TOLD), "-o", tmp_path / "out")
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert {key: written[key] for key in TOLD} == {**TOLD, "config": written["config"]}
    assert {key: written["config"][key] for key in SET} == SET
    assert written["config"]["numpy_seed"] is None


def test_logs_that_were_asked_otherwise_stay_apart_when_scored_again(score, tmp_path):
    for at, said in enumerate(("be terse", "think hard")):
        run = lm_eval_run(tmp_path / str(at), at, **{**TOLD, "system_instruction": said})
        score(run, "-o", tmp_path / "out" / str(at))
    assert len(score(tmp_path / "out")) == 2


def test_results_of_several_logs_say_only_what_all_of_them_do(score, tmp_path):
    (tmp_path / "in").mkdir()
    lm_eval_run(tmp_path / "in" / "a", 0, **TOLD)
    lm_eval_run(tmp_path / "in" / "b", 1, **{**TOLD, "system_instruction": "think hard"})
    score(tmp_path / "in", "-o", tmp_path / "out")
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert written["system_instruction"] is None
    assert written["chat_template"] == TOLD["chat_template"]


def test_reasons_stay_as_long_as_they_are(score, tmp_path):
    """Where a document lost its answer is said once, however often the log is scored again."""
    log = table(tmp_path / "t.jsonl", [{"said": None, "gold": "1"}, {"said": "1", "gold": "1"}])
    score(log, *REPEATED, "-o", tmp_path / "0", code=1)
    for at in range(2):
        score(tmp_path / str(at), "-o", tmp_path / str(at + 1), code=1)
    first = [(tmp_path / str(at) / "samples_t.jsonl").read_text().splitlines()[0] for at in range(3)]
    reasons = [json.loads(line)["evalcore"]["unscored"] for line in first]
    assert reasons[0] == reasons[1] == reasons[2]
    assert str(reasons[2]).count(" - at ") == 1


def test_repeats_without_a_score_are_told_of(tmp_path, capsys):
    log = table(tmp_path / "t.jsonl", [{"s": [1, None]}, {"s": [1, 0]}])
    main(["score", str(log), "--score", "s", "--reducer", "mean", "--quiet"])
    told = " ".join("".join(capsys.readouterr()).split())
    assert "repeats without a score: 1, in 1 document, which count by their other repeats" in told


NAN_TASK = """task: gaps
dataset_path: json
dataset_kwargs: {data_files: {test: docs.jsonl}}
test_split: test
doc_to_text: "{{n}}"
doc_to_target: x
process_results: !function code.read
metric_list: [{metric: m, aggregation: nanmean, higher_is_better: true}]
"""
NAN_CODE = """def read(doc, results):
    return {"m": float("nan") if doc["n"] % 4 == 0 else float(doc["n"])}
"""


def test_a_recorded_nan_is_a_score_under_lm_evals_policy_only(score, tmp_path, monkeypatch, capsys):
    """The number of documents and the error are those of the run, not those of the documents with a number."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task.yaml").write_text(NAN_TASK)
    (tmp_path / "code.py").write_text(NAN_CODE)
    table(tmp_path / "docs.jsonl", [{"n": n} for n in range(20)])
    policy = ["--policy", "lm-eval-0.4.13"]
    asked = ["run", "--model", "dummy", "--tasks", "task.yaml", "--trust", ".", "--output_path", "out", "--quiet"]
    assert main([*asked, *policy]) == 0
    capsys.readouterr()
    made = json.loads((tmp_path / "out" / "results.json").read_text())["evalcore"]["estimates"]["gaps"]["m,none"]
    again = score("out", *policy)["gaps"]["m,none"]
    assert made["n_scored"] == 20
    assert {key: again[key] for key in ("value", "stderr", "n_scored")} == {
        key: made[key] for key in ("value", "stderr", "n_scored")
    }
    right = score("out", code=1)["gaps"]["m,none"]
    assert (right["value"], right["n_scored"], right["n_unscorable"]) == (made["value"], 15, 5)
