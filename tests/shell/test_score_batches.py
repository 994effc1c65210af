"""Batches of Arrow are scored to the numbers of the table they are from, in any order; bad rows are named."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pandas
import polars
import pyarrow
import pytest
from msgspec.structs import replace

import evalcore
from evalcore import (
    GENERATE_UNTIL,
    Answer,
    EvalError,
    Generate,
    Instance,
    MetricSpec,
    Pipeline,
    Sample,
    Step,
    Task,
    report_task,
    score_task,
)
from evalcore.core.partials.partial import decode_partial
from evalcore.core.records.frozen_dict import thaw_dict
from evalcore.scale import ScorePartial, merge_partials
from evalcore.shell.run.run_result import RunResult
from evalcore.shell.score.hosts import batch_rows

ERROR = "__inference_error__"
NUMBER = 'regex={"regex_pattern": "([0-9]+)"}'
COLUMNS = {"answer": "reply", "gold": "gold", "id": "n"}
ROWS = [
    {"n": at * 5 - 20, "reply": f"it is {at % 7}", "gold": str(at % 3), "topic": "ab"[at % 2], ERROR: ""}
    for at in range(30)
]
ROWS[4] |= {"reply": None, ERROR: "out of memory"}
ROWS[9] |= {"reply": None, ERROR: "too long"}
TABLE = pyarrow.Table.from_pylist(ROWS)

YAML = """
task: sums
output_type: generate_until
doc_to_text: "{{n}}"
doc_to_target: "{{gold}}"
filter_list:
  - name: number
    filter: [{function: regex, regex_pattern: "([0-9]+)"}, {function: take_first}]
metric_list:
  - metric: exact_match
  - metric: exact_match
    name: first
    aggregation: !function own.lean_on_the_first
"""
CODE = "def lean_on_the_first(scores):\n    return sum(scores) / len(scores) + 2 * scores[0] + scores[3] / 7\n"


def lean_on_the_first(scores: list[float]) -> float:
    """An aggregation on which the order of documents tells."""
    return sum(scores) / len(scores) + 2 * scores[0] + scores[3] / 7


def text(result: RunResult) -> str:
    return json.dumps(thaw_dict(result.results))


def cut(rows: list[dict[str, object]], size: int, like: pyarrow.Table = TABLE) -> list[pyarrow.Table]:
    """Batches of these rows, the last first, the first one twice, and an empty one."""
    made = [pyarrow.Table.from_pylist(rows[at : at + size], like.schema) for at in range(0, len(rows), size)]
    return [*made[::-1], made[0], like.slice(0, 0)]


def score_file(folder: Path, rows: list[dict[str, object]], **keys: object) -> str:
    path = folder / "sums.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return text(evalcore.score(path, **keys))  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1, 7, 30])
@pytest.mark.parametrize(
    "keys",
    [
        {**COLUMNS, "metric": ["exact_match", 'f1={"aggregation": "median"}'], "filter": NUMBER, "cluster": "topic"},
        {**COLUMNS, "metric": "exact_match", "filter": NUMBER, "group_by": "topic", "ci": "t"},
        {**COLUMNS, "metric": ["bleu", "ter"], "confidence": 0.9},
    ],
)
def test_batches_have_the_numbers_of_their_table(tmp_path, keys, size):
    score = ScorePartial(name="sums", **keys)
    made = list(map(score, cut(ROWS, size)))
    assert text(merge_partials(made)) == score_file(tmp_path, ROWS, error=ERROR, **keys)


@pytest.mark.parametrize("size", [1, 7])
def test_a_task_file_and_its_code(tmp_path, size):
    """Its documents are read by the file, in the order of their ids; the code that closes numbers is found again."""
    (tmp_path / "sums.yaml").write_text(
        YAML.replace("    name: first\n", "").replace("  - metric: exact_match\n", "", 1)
    )
    (tmp_path / "own.py").write_text(CODE)
    keys = {"answer": "reply", "id": "n", "trust": str(tmp_path / "own.py")}
    score = pickle.loads(pickle.dumps(ScorePartial(str(tmp_path / "sums.yaml"), **keys)))
    want = score_file(tmp_path, ROWS, task=str(tmp_path / "sums.yaml"), error=ERROR, **keys)
    assert text(merge_partials(map(score, cut(ROWS, size)))) == want


def test_a_task_with_functions():
    """A Task is scored as ``score_task`` scores it; what only its functions can close needs it again."""
    steps = (Step.of("regex", regex_pattern="([0-9]+)"), Step.of("take_first"))
    task = Task("sums", GENERATE_UNTIL, (MetricSpec("exact_match", lean_on_the_first),), (Pipeline("number", steps),))
    rows = [row for row in ROWS if not row[ERROR]]
    made = list(map(ScorePartial(task, **COLUMNS), cut(rows, 7)))
    answers = [Answer(Instance("sums", row["n"], 0, Generate("")), (row["reply"],)) for row in rows]
    [(key, want)] = report_task(score_task(task, [Sample(row["n"], row["gold"]) for row in rows], answers)).estimates
    [(own, found)] = merge_partials(made, task=task).report.tasks[0].estimates
    assert (own, found.value, found.stderr, found.ci, found.counts) == (
        *(key, want.value, want.stderr, want.ci),
        want.counts,
    )
    [(_, lost)] = merge_partials(made).report.tasks[0].estimates
    assert lost.value is None
    assert "lean_on_the_first is a function of the task's own" in str(lost.reason)


def test_log_likelihoods_of_choices(tmp_path):
    rows = [
        {"n": at, "lls": [-1.5, -0.1 * at, -3.0], "choices": ["1", "2", "4"], "gold": at % 3, "why": None}
        for at in range(20)
    ]
    rows[0] |= {"lls": None, "why": "cut off"}
    keys = {"loglikelihoods": "lls", "choices": "choices", "gold": "gold", "id": "n", "error": "why"}
    like = pyarrow.Table.from_pylist(rows)
    made = map(ScorePartial(name="sums", **keys), cut(rows, 1, like))
    assert text(merge_partials(made)) == score_file(tmp_path, rows, **keys)
    rows[3]["gold"] = 4
    told = r"got 4 under 'gold', the text of one; make golds texts if they are - at sums n 3"
    with pytest.raises(EvalError, match=told):
        ScorePartial(name="sums", **keys)(pyarrow.Table.from_pylist(rows))


def test_a_failed_row_is_no_score():
    score = ScorePartial(name="sums", metric="exact_match", **COLUMNS)
    [row] = score(TABLE).to_pylist()
    assert (row["documents"], row["failed"]) == (30, 2)
    counts = merge_partials([row]).report.tasks[0].estimates[0][1].counts
    assert (counts.scored, counts.failed) == (28, 2)
    [column] = decode_partial(row["partial"]).scored[0].columns
    assert [why.partition(" - ")[0] for _, why in column.column.reasons] == ["out of memory", "too long"]
    [row] = score(TABLE.drop_columns([ERROR]).slice(0, 4)).to_pylist()  # a job without such a column
    assert row["failed"] == 0
    with pytest.raises(EvalError, match=r"unknown error column 'why'"):
        ScorePartial(name="sums", metric="exact_match", error="why", **COLUMNS)(TABLE)


def test_rows_come_from_anywhere():
    made = [ScorePartial(name="sums", metric="exact_match", **COLUMNS)(one) for one in cut(ROWS, 11)]
    table = pyarrow.concat_tables(made)
    want = text(merge_partials(table))
    batches = ScorePartial(name="sums", metric="exact_match", **COLUMNS).each(TABLE.to_batches(7))
    frames = [pandas.DataFrame(table.to_pylist()), polars.from_arrow(table), polars.from_arrow(table).lazy()]
    for rows in (made, table.to_pylist(), table["partial"].to_pylist(), batches, *frames):
        assert text(merge_partials(rows)) == want
    assert len(made[0]["partial"][0].as_py()) < 3000


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([b"junk"], "partial 1: expected a partial of evalcore"),
        ([{"documents": 3}], "expected a column of partials, got documents"),
        ([5], "expected rows with partials, got int"),
        ("partial", "expected rows with partials, got str"),
        ([], "expected partials of some documents, got 0 without any"),
    ],
)
def test_what_is_no_partial_is_refused(rows, told):
    with pytest.raises(EvalError, match=told):
        merge_partials(rows)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"reply": {"text": "4"}}, r"expected a text, got \"\{'text': '4'\}\" under 'reply' - at sums n 7"),
        ({"n": None}, r"expected an id under 'n', got nothing - at sums row 2 of its batch"),
        ({"n": 6}, "expected one row per id, got two different ones - at sums n 6"),
    ],
)
def test_bad_rows_are_named(changed, told):
    rows = [{"n": 6, "reply": None, "gold": "1"}, {"n": 7, "reply": None, "gold": "4", **changed}]
    with pytest.raises(EvalError, match=told):
        ScorePartial(name="sums", metric="exact_match", **COLUMNS)(pyarrow.Table.from_pylist(rows))


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"id": None}, r"expected the column of ids \(id=...\)"),
        ({"limit": 5}, "limit is not for batches: batches have no order"),
        ({"tally": True}, "tally is not for batches: a batch that is scored twice would count twice"),
        ({"repeat": "k"}, "repeat is not for batches: .* put the repeats into one row, as a list"),
        ({"task_column": "topic"}, "task_column is not for batches"),
        ({"metric": "exact_mach"}, "did you mean 'exact_match'"),
        ({"anser": "reply"}, "unknown key 'anser'; did you mean 'answer'"),
        ({"name": None}, "expected one task with a name, or name="),
        ({"gold": "target"}, "unknown gold column 'target'"),
    ],
)
def test_bad_keys_are_named(keys, told):
    with pytest.raises(EvalError, match=told):
        ScorePartial(**{"name": "sums", "metric": "exact_match", **COLUMNS, **keys})(TABLE)


def test_two_texts_with_one_hash_are_refused(monkeypatch):
    """Within a batch and between batches; two batches that disagree on a document are refused as well."""
    rows = [{"n": name, "reply": "4", "gold": "4"} for name in ("a", "b")]
    score = ScorePartial(name="sums", metric="exact_match", **COLUMNS)
    one, two = (pyarrow.Table.from_pylist([row]) for row in rows)
    other = pyarrow.Table.from_pylist([{**rows[0], "reply": "5"}])
    with pytest.raises(
        EvalError, match=r"expected one score per document, got two different ones: [01]\.0 and [01]\.0"
    ):
        merge_partials([score(one), score(other)])
    monkeypatch.setattr(batch_rows, "key_document", lambda name: (3, ord(str(name))))
    with pytest.raises(EvalError, match="got 'a' and 'b' with one; rename one of them - at sums n 'b'"):
        score(pyarrow.Table.from_pylist(rows))
    with pytest.raises(EvalError, match="expected ids with hashes of their own, got two with the hash 3"):
        merge_partials([score(one), score(two)])


def test_a_batch_that_all_failed_learns_from_the_others(tmp_path):
    """What the first document shows of a log (here how many replies a row has) holds for batches without any."""
    (tmp_path / "sums.yaml").write_text(YAML.split("  - metric: exact_match\n    name")[0] + "    reducer: mean\n")
    rows = [{"n": at, "reply": [str(at), "3"], "gold": "3", ERROR: None} for at in range(6)]
    rows[0] |= {"reply": None, ERROR: "lost"}
    like, keys = pyarrow.Table.from_pylist(rows), {"answer": "reply", "id": "n"}
    made = map(ScorePartial(str(tmp_path / "sums.yaml"), **keys), cut(rows, 1, like))
    want = score_file(tmp_path, rows, task=str(tmp_path / "sums.yaml"), error=ERROR, **keys)
    assert text(merge_partials(made)) == want


def test_a_filter_over_all_documents_is_refused():
    from evalcore import EVALCORE

    wide = EVALCORE.filters["lowercase"]
    tables = replace(EVALCORE, name="wide", filters=EVALCORE.filters.set("lowercase", replace(wide, scope="task")))
    score = ScorePartial(name="sums", metric="exact_match", filter="lowercase", tables=tables, **COLUMNS)
    with pytest.raises(EvalError, match="sums: a filter looks at all documents at once; write all rows to a table"):
        score(TABLE)


def test_a_copy_for_a_worker_is_small():
    score = ScorePartial(name="sums", metric="exact_match", **COLUMNS)
    assert len(pickle.dumps(score)) < 500
    assert pickle.loads(pickle.dumps(score))(TABLE).equals(score(TABLE))
