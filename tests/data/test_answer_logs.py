"""Real recordings read as answers: every document of every file, to the figures that were published for them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from recorded import read_lines

from evalcore import Answer, Instance, Sample, Task, report_task, score_task
from evalcore.core.records.task import MetricSpec
from evalcore.shell.logs.json_records import read_records
from evalcore.shell.logs.lm_eval.forms import read_asked
from evalcore.shell.logs.lm_eval.requests import list_arguments, read_exchanges, read_replies
from evalcore.shell.logs.lm_eval.rows import read_row, read_value
from evalcore.shell.logs.log import Logged, LogTask
from evalcore.shell.logs.open import open_logs
from evalcore.shell.logs.tables.column_map import ColumnMap


def rows_of(task: LogTask) -> list[Logged]:
    return list(task.rows())


def accuracy(task: LogTask, metric: str = "acc") -> tuple[float | None, int]:
    """The value and the count of documents, from what a log holds."""
    rows = rows_of(task)
    samples = [Sample(one.doc_id, one.gold, one.choices) for one in rows]
    answers = [
        Answer(Instance(task.name, one.doc_id, idx, one.requests[min(idx, len(one.requests) - 1)]), replies)
        for one in rows
        for idx, replies in enumerate(one.replies)
    ]
    scored = score_task(Task(task.name, task.output_type, (MetricSpec(metric),)), samples, answers)
    [(_, found)] = report_task(scored).estimates
    return found.value, found.n


# --- lm-eval --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def logs(recorded) -> dict[str, LogTask]:
    return {task.name: task for task in open_logs([recorded("lmeval_raw_logs").folder])}


def test_rows_decoded_in_one_go_are_what_they_are_field_by_field(logs) -> None:
    """One definition of the row: what scoring reads at once, comparing by field and replaying by request is the same."""
    checked = 0
    for task in logs.values():
        for at in read_records(task.path):
            whole, lazy = read_asked(at.data, task.output_type), read_row(at.data, at.line, str(task.path))
            doc, name, target = (read_value(lazy.fields, field) for field in ("doc", "filter", "target"))
            assert (whole.key, whole.filter, whole.target) == (lazy.key, name, target)
            assert json.loads(whole.doc) == doc
            asked = read_value(lazy.fields, "arguments")
            if len(read_value(lazy.fields, "resps")) == len(list_arguments(asked)):
                exchanges = list(read_exchanges(at.data, "x"))
                assert whole.requests == tuple(request for request, _ in exchanges)
                assert read_replies(whole) == tuple(heard for _, heard in exchanges)
                checked += 1
    assert checked > 150


def test_every_row_of_every_log(recorded, logs) -> None:
    folder = recorded("lmeval_raw_logs").folder
    files = sorted(folder.rglob("*.jsonl"))
    assert sorted(task.path for task in logs.values()) == files
    assert len(files) == 12
    for task in logs.values():
        raw = {row["doc_id"]: row for row in read_lines(task.path)}
        found = {one.doc_id: one for one in rows_of(task)}
        assert list(found) == list(raw)
        for key, one in found.items():
            row = raw[key]
            assert json.loads(one.doc) == row["doc"]
            first = [each[0] for each in row["resps"]]
            wanted = [
                (float(reply[0]), reply[1] in (True, "True")) if isinstance(reply, list) else reply for reply in first
            ]
            assert [each[0][:2] if isinstance(each[0], tuple) else each[0] for each in one.replies] == wanted
            assert {len(each) for each in one.replies} == {1}  # padding of 2023 is no repeat


def test_four_generations_have_their_own_configs(logs) -> None:
    old = {"boolq-seq2seq", "mathqa", "pubmed_qa", "qnli", "winogrande"}
    assert {name for name, task in logs.items() if not task.config} == old
    assert all(task.config["task"] == name for name, task in logs.items() if name not in old)
    assert {name: task.output_type for name, task in logs.items() if name in old} == {
        **dict.fromkeys(old, "multiple_choice"),
        "boolq-seq2seq": "generate_until",
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("asdiv", "asdiv"),
        ("negotiationtom_belief", "negotiationtom_belief"),
        ("negotiationtom_desire", "negotiationtom_desire"),
        ("qnli", "2023_qnli"),
        ("winogrande", "2023_winogrande"),
    ],
)
def test_golds_give_the_published_accuracy(recorded, logs, name, expected) -> None:
    wanted = recorded("lmeval_raw_logs").meta["expected"][expected]
    assert accuracy(logs[name]) == (wanted["acc"], wanted["n"])


def test_golds_that_a_log_of_2023_cannot_tell_stay_as_text(logs) -> None:
    """Three and five choices, of which one request is written: no index is made up."""
    assert {one.gold for one in rows_of(logs["pubmed_qa"])} <= {"yes", "no", "maybe"}
    assert all(isinstance(one.gold, str) and one.choices == () for one in rows_of(logs["mathqa"]))


def test_generations_of_2023_and_2026(recorded, logs) -> None:
    expected = recorded("lmeval_raw_logs").meta["expected"]
    wanted = expected["2023_boolq-seq2seq"]
    assert accuracy(logs["boolq-seq2seq"], "exact_match") == (wanted["exact_match_logged"], wanted["n"])
    assert accuracy(logs["math_perturbed_full"], "exact_match")[0] == 0.0


# --- Inspect --------------------------------------------------------------------------------------------------------------


def test_inspect_logs_are_what_was_taken_from_them(recorded) -> None:
    data = recorded("inspect_logs")
    runs = {Path(one["path"]).name: one["run"] for one in data.meta["provenance"]["files"]}
    tasks = open_logs([data.folder / "raw"])
    assert len(tasks) == 4
    assert len({task.name for task in tasks}) == 4
    for task in tasks:
        run = runs[task.path.name]
        rows = sorted((row for row in data.rows if row["run"] == run), key=lambda row: (row["sample_id"], row["epoch"]))
        found = [
            (one.id, epoch, one.gold, reply, answer)
            for one in rows_of(task)
            for epoch, (reply, answer) in enumerate(zip(one.replies[0], one.kept["match"], strict=True), 1)
        ]
        assert found == [(one["sample_id"], one["epoch"], one["target"], one["output"], one["answer"]) for one in rows]
        scores = [one.scores["match,none"] for one in rows_of(task)]
        means = [sum(one) / len(one) if isinstance(one, tuple) else one for one in scores]
        published = data.meta["expected"][run]["published"]["accuracy"]
        assert sum(means) / len(means) == pytest.approx(published, rel=1e-15)
        with zipfile.ZipFile(task.path) as zipped:
            assert len(found) == sum(name.startswith("samples/") for name in zipped.namelist())


def test_inspect_rows_as_a_table(recorded) -> None:
    data = recorded("inspect_logs")
    mapping = ColumnMap(answer="answer", gold="target", id="sample_id", repeat="epoch", task="run")
    tasks = {task.name: rows_of(task) for task in open_logs([data.folder / "data.jsonl"], mapping=mapping)}
    assert tasks.keys() == data.meta["expected"].keys()
    for run, one in data.meta["expected"].items():
        assert (len(tasks[run]), sum(len(doc.replies[0]) for doc in tasks[run])) == (one["n_samples"], one["n_rows"])


# --- tables ---------------------------------------------------------------------------------------------------------------


def table(recorded, name: str, **columns: str) -> dict[str, list[Logged]]:
    (path,) = recorded(name).folder.glob("data.jsonl*")
    return {task.name: rows_of(task) for task in open_logs([path], mapping=ColumnMap(**columns))}


def test_gsm8k_scores_as_published(recorded) -> None:
    expected = recorded("gsm8k_openai").meta["expected"]
    for model in expected:
        found = table(recorded, "gsm8k_openai", answer=model, gold="answer", id="idx", score=f"{model}_is_correct")
        scores = [one.scores[f"{model}_is_correct,none"] for one in found["data"]]
        assert (sum(scores), len(scores)) == (expected[model]["correct"], expected[model]["n"])


def test_winogrande_likelihoods_give_the_published_accuracy(recorded) -> None:
    data = recorded("winogrande_llama2")
    mapping = ColumnMap(loglikelihoods="loglikelihoods", gold="gold", id="doc_id", task="model")
    for task in open_logs([data.folder / "data.jsonl.gz"], mapping=mapping):
        wanted = data.meta["expected"][task.name]
        assert accuracy(task) == (pytest.approx(wanted["acc"], rel=1e-15), wanted["n"])


def test_cruxeval_scores_of_ten_repeats(recorded) -> None:
    expected = recorded("cruxeval_codellama7b").meta["expected"]
    found = table(
        recorded, "cruxeval_codellama7b", answer="generations", gold="output", id="id", task="mode", score="correct"
    )
    for mode, rows in found.items():
        scores = [one.scores["correct,none"] for one in rows]
        assert {len(one.replies[0]) for one in rows} == {10}
        assert sum(map(sum, scores)) == expected[mode]["correct_samples"]


@pytest.mark.parametrize(
    ("name", "columns", "tasks"),
    [
        ("bbh_codex", {"answer": "prediction_cot", "gold": "target", "task": "task"}, 27),
        ("mmlu_pro_llama3_70b", {"answer": "model_output", "gold": "answer", "task": "category"}, 14),
        ("wmt17_ende_sacrebleu", {"answer": "online-A.0.en-de", "gold": "reference"}, 1),
    ],
)
def test_every_row_of_the_other_sets(recorded, name, columns, tasks) -> None:
    found, data = table(recorded, name, **columns), recorded(name)
    assert len(found) == tasks
    pairs = [(str(one.gold), one.replies[0][0]) for rows in found.values() for one in rows]
    given = columns.get("task")
    order = [str(row[given]) if given else "data" for row in data.rows]
    wanted = [
        (str(row[columns["gold"]]), row[columns["answer"]])
        for part in found
        for row, own in zip(data.rows, order, strict=True)
        if own == part
    ]
    assert pairs == wanted
