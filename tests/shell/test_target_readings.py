"""Targets of logs of which nothing is known, read in one way in all rows; and what evalcore writes, read back as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import GENERATE_UNTIL, MULTIPLE_CHOICE
from evalcore.shell.cli import main
from evalcore.shell.logs.json_records import Record, read_records
from evalcore.shell.logs.lm_eval.golds import read_own_choices, read_own_gold
from evalcore.shell.logs.lm_eval.samples import SampleLog, read_samples
from evalcore.shell.logs.log import Logged, Problem
from evalcore.shell.logs.open import open_logs
from evalcore.shell.logs.tables.column_map import ColumnMap
from evalcore.shell.score import stream as streaming

Row = dict[str, object]


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def read(path: Path, mapping: ColumnMap | None = None) -> list[Logged]:
    [task] = open_logs([path], mapping=mapping)
    found = list(task.rows())
    assert all(isinstance(one, Logged) for one in found)
    return found  # type: ignore[return-value]


def generation(doc: int, target: str) -> Row:
    named = {"gen_args_0": {"arg_0": "Q", "arg_1": {"until": []}}}
    return {"doc_id": doc, "doc": {}, "target": target, "arguments": named, "resps": [["x"]], "filter": "none"}


def choice(
    doc: int, target: str, choices: Sequence[str], values: Sequence[float], before: str = " ", **scores: float
) -> Row:
    named = {f"gen_args_{at}": {"arg_0": "Q", "arg_1": f"{before}{one}"} for at, one in enumerate(choices)}
    replies = [[[str(one), "False"]] for one in values]
    return {"doc_id": doc, "doc": {}, "target": target, "arguments": named, "resps": replies, "filter": "none"} | scores


# --- logs of which nothing is known -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("targets", "golds"),
    [
        (["['a', 'b']", "x", "[1, 2]"], ["['a', 'b']", "x", "[1, 2]"]),
        (["['a', 'b']", "['c']"], [("a", "b"), ("c",)]),
        (["[1, 2]", "[3]"], [("1", "2", "[1, 2]"), ("3", "[3]")]),
        (["['a', 'b']"] * 300 + ["x", "['c']"], ["['a', 'b']"] * 300 + ["x", "['c']"]),
    ],
)
def test_texts_are_lists_if_all_are(tmp_path: Path, targets: list[str], golds: list[object]) -> None:
    log = write(tmp_path / "samples_t.jsonl", [generation(*one) for one in enumerate(targets)])
    assert [one.gold for one in read(log)] == golds


def test_a_choice_that_looks_like_a_list_is_a_choice(tmp_path: Path) -> None:
    rows = [choice(doc, "[1, 2]", ["[2, 1]", "[1, 2]"], [-1, -2]) for doc in (0, 1)]
    assert [one.gold for one in read(write(tmp_path / "samples_t.jsonl", rows))] == [1, 1]


AMBIGUOUS = choice(0, "2", ["2", "0", "1"], [-1, -3, -2])
"""The first choice as a text, the third as an index; the first is the most likely one."""


@pytest.mark.parametrize(
    ("first", "more", "gold"),
    [
        ({}, choice(1, "1", ["5", "6", "7"], [-1, -2, -3]), 2),  # only an index
        ({}, choice(1, "7", ["5", "6", "7"], [-1, -2, -3]), 0),  # only a text
        ({}, choice(1, "1", ["1", "0", "2"], [-1, -2, -3], acc=0.0), 2),
        ({}, choice(1, "1", ["1", "0", "2"], [-1, -2, -3], acc=1.0), 0),
        ({"acc": 0.0}, choice(1, "1", ["1", "0", "2"], [-1, -2, -3]), 2),
        ({"acc": 1.0}, choice(1, "1", ["1", "0", "2"], [-1, -2, -3]), 0),
        ({}, choice(1, "1", ["1", "0", "2"], [-3, -2, -1], acc=0.0), 2),  # both stand: what lm-eval writes
        ({}, choice(1, "1", ["1", "0", "2"], [-3, -2, -1]), 0),  # nothing tells
    ],
)
def test_numbers_are_indices_or_texts_in_all_rows(tmp_path: Path, first: Row, more: Row, gold: int) -> None:
    found = read(write(tmp_path / "samples_t.jsonl", [AMBIGUOUS | first, more]))
    assert found[0].gold == gold


def test_the_accuracy_of_one_row_changes_no_other_reading(tmp_path: Path) -> None:
    """Two rows speak for indices and one against: all three are indices."""
    accs = [0.0, 0.0, 1.0]
    rows = [AMBIGUOUS | {"doc_id": doc, "acc": acc} for doc, acc in enumerate(accs)]
    assert [one.gold for one in read(write(tmp_path / "samples_t.jsonl", rows))] == [2, 2, 2]


def numbered(rows: Sequence[Row]) -> list[Row]:
    return [row | {"doc_id": doc} for doc, row in enumerate(rows)]


AS_TEXT = choice(0, "2", ["2", "1", "0"], [-1, -2, -3], acc=1.0)
AS_INDEX = choice(0, "0", ["2", "1", "0"], [-1, -2, -3], acc=1.0)
EITHER = choice(0, "1", ["2", "1", "0"], [-2, -1, -3], acc=1.0)
ONLY_INDEX = choice(0, "1", ["5", "7", "9"], [-1, -2, -3], acc=0.0)


@pytest.mark.parametrize(
    ("rows", "golds"),
    [
        ([ONLY_INDEX, *[AS_TEXT] * 10], [1] + [0] * 10),
        ([*[EITHER] * 300, *[AS_INDEX] * 3], [1] * 300 + [0] * 3),
        ([*[AS_TEXT] * 300, *[AS_INDEX] * 301], [2] * 300 + [0] * 301),
        (
            [choice(0, "[0, 1]", ["no", "yes"], [-1, -2]), *[choice(0, "1", ["no", "yes"], [-2, -1])] * 3],
            [(0, 1), 1, 1, 1],
        ),
        ([choice(0, target, "210", [-1, -2, -3], "\n", acc=acc) for target, acc in (("2", 1.0), ("0", 0.0))], [0, 2]),
    ],
    ids=["one odd row", "late evidence", "few against many", "lists and numbers", "line breaks"],
)
def test_all_rows_tell_how_numbers_are_meant(tmp_path: Path, rows: list[Row], golds: list[object]) -> None:
    log = numbered(rows)
    assert [one.gold for one in read(write(tmp_path / "samples_t.jsonl", log))] == golds
    backwards = read(write(tmp_path / "samples_t.jsonl", log[::-1]))
    assert [one.gold for one in backwards[::-1]] == golds


@pytest.mark.parametrize(
    ("row", "times"),
    [(EITHER, 1), (ONLY_INDEX, 1), (AS_TEXT, 2), (generation(0, "x"), 1), (generation(0, "['a']"), 2)],
)
def test_a_log_is_read_again_only_if_a_target_is_open(tmp_path: Path, row: Row, times: int) -> None:
    log, opened = write(tmp_path / "samples_t.jsonl", numbered([row] * 3)), list[Path]()

    def records(path: Path) -> Iterator[Record | Problem]:
        opened.append(path)
        return read_records(path)

    kind = GENERATE_UNTIL if "until" in str(row) else MULTIPLE_CHOICE
    assert len(list(read_samples(SampleLog(paths=(log,), output_type=kind, records=records)))) == 3
    assert len(opened) == times


NUMERIC = st.permutations(["0", "1", "2", "7"]).map(lambda found: found[:3])
LISTED = st.sampled_from(["0", "1", "2", "7", "[0, 1]", "['2', '0']", "x"])
MODEL = st.permutations([-1.0, -2.0, -3.0])
ACCURACY = st.sampled_from([{}, {"acc": 0.0}, {"acc": 1.0}])
CHOOSING = st.builds(lambda *row: choice(0, *row[:3]) | row[3], LISTED, NUMERIC, MODEL, ACCURACY)
SAYING = st.builds(lambda target: generation(0, target), st.sampled_from(["['a', 'b']", "[1, 2]", "['c']", "x"]))


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.lists(CHOOSING, min_size=2, max_size=7), st.lists(SAYING, min_size=2, max_size=4)), st.data())
def test_the_order_of_rows_changes_no_gold(rows: list[Row], data: st.DataObject) -> None:
    log = numbered(rows)
    with TemporaryDirectory() as made:
        found = [read(write(Path(made) / "samples_t.jsonl", one)) for one in (log, data.draw(st.permutations(log)))]
    first, second = ({one.doc_id: one.gold for one in each} for each in found)
    assert first == second


# --- what evalcore writes ---------------------------------------------------------------------------------------------

TEXTS = st.sampled_from(["a", "0", "1", "2", "7", "['a', 'b']", "[1, 2]", "[0]", "None", " a", "", "[1, 'a']", "é"])
GOLDS = st.one_of(TEXTS, st.integers(-1, 3), st.lists(TEXTS, max_size=3), st.lists(st.integers(0, 3)), st.none())
TEXT_ROW = st.fixed_dictionaries({"said": TEXTS, "gold": GOLDS})
PICK = st.sampled_from(["0", "1", "2", "3", " 1", " 2", "a", " a", "a ", "[1, 2]", "['a']", "45678"])
VALUES = st.lists(st.integers(-9, -1), min_size=3, max_size=3)
CHOICE_ROW = st.fixed_dictionaries(
    {"lls": VALUES, "options": st.lists(PICK, min_size=3, max_size=3), "gold": st.one_of(PICK, st.integers(0, 2))}
)


def scored(*argv: object) -> None:
    assert main(["score", *map(str, argv), "--quiet"]) in (0, 1)


def estimates(folder: Path) -> object:
    return json.loads((folder / "results.json").read_text("utf-8"))["evalcore"]["estimates"]


def check_round_trip(rows: Sequence[Row], mapping: ColumnMap, *argv: str) -> None:
    with TemporaryDirectory() as made:
        folder = Path(made)
        table = write(folder / "t.jsonl", rows)
        scored(table, *argv, "-o", folder / "one")
        scored(folder / "one", "-o", folder / "two")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(streaming, "PIECE", 2)
            scored(table, *argv, "-o", folder / "pieces")
        before, after = read(table, mapping), read(folder / "one")
        assert [(one.gold, one.choices) for one in after] == [(one.gold, one.choices) for one in before]
        assert estimates(folder / "two") == estimates(folder / "one")
        logs = [(folder / name / "samples_t.jsonl").read_bytes() for name in ("one", "two", "pieces")]
        assert logs[0] == logs[1] == logs[2]


@settings(max_examples=25, deadline=None)
@given(st.lists(TEXT_ROW, min_size=1, max_size=6))
def test_golds_of_generations_are_read_back(rows: list[Row]) -> None:
    check_round_trip(rows, ColumnMap(answer="said", gold="gold"), "--answer", "said", "--gold", "gold")


@settings(max_examples=25, deadline=None)
@given(st.lists(CHOICE_ROW, min_size=1, max_size=6))
def test_golds_and_choices_are_read_back(rows: list[Row]) -> None:
    mapping = ColumnMap(loglikelihoods="lls", choices="options", gold="gold")
    check_round_trip(rows, mapping, "--loglikelihoods", "lls", "--choices", "options", "--gold", "gold")


def test_a_gold_that_evalcore_wrote_says_nothing_of_other_rows(tmp_path: Path) -> None:
    rows = [generation(0, "['a', 'b']"), generation(1, "[]") | {"evalcore": {"gold": []}}]
    assert [one.gold for one in read(write(tmp_path / "samples_t.jsonl", rows))] == [("a", "b"), ()]


def test_choices_keep_the_space_before_them() -> None:
    mapping = ColumnMap(loglikelihoods="lls", choices="options", gold="gold")
    rows: list[Row] = [{"lls": [-1, -2], "options": [" yes", " no"], "gold": gold} for gold in (0, " no")]
    check_round_trip(rows, mapping, "--loglikelihoods", "lls", "--choices", "options", "--gold", "gold")


TASK = """
task: t
output_type: multiple_choice
dataset_path: x
test_split: test
doc_to_text: "{{q}}"
doc_to_target: a
doc_to_choice: c
metric_list: [{metric: acc}]
"""


@pytest.mark.parametrize("size", [3, 7])
@pytest.mark.parametrize("known", [True, False])
def test_pieces_are_written_as_one_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, known: bool
) -> None:
    """A reader learns from the first document of a log what targets are, whatever its first piece was."""
    (tmp_path / "t.yaml").write_text(TASK, "utf-8")
    docs = [{"q": "Q", "a": "1" if doc < 7 else 0, "c": ["1", "0"]} for doc in range(10)]
    rows = [choice(at, str(doc["a"]), "10", [-1, -2], acc=1.0) | {"doc": doc} for at, doc in enumerate(docs)]
    log = write(tmp_path / "samples_t.jsonl", rows)
    argv = [log, *(["--task", tmp_path / "t.yaml"] if known else [])]
    scored(*argv, "-o", tmp_path / "whole")
    monkeypatch.setattr(streaming, "PIECE", size)
    scored(*argv, "-o", tmp_path / "one")
    scored(tmp_path / "one", "-o", tmp_path / "two")
    logs = [(tmp_path / name / "samples_t.jsonl").read_bytes() for name in ("whole", "one", "two")]
    assert logs[0] == logs[1] == logs[2]
    assert logs[0].count(b'"gold"') == 10  # "0" is written, which is the other choice as a text
    assert estimates(tmp_path / "one") == estimates(tmp_path / "two")


def test_lists_after_texts_are_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are written in pieces, of which none knows what is in the others."""
    monkeypatch.setattr(streaming, "PIECE", 3)
    write(tmp_path / "t.jsonl", [{"said": "a", "gold": gold} for gold in [*"aaa", *[["a", "b"]] * 3]])
    scored(tmp_path / "t.jsonl", "--answer", "said", "--gold", "gold", "-o", tmp_path / "one")
    assert [one.gold for one in read(tmp_path / "one")] == [*"aaa", *[("a", "b")] * 3]


def test_ordinary_rows_say_nothing_more(tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl", [{"said": "a", "gold": gold} for gold in ("a", 1)])
    scored(tmp_path / "t.jsonl", "--answer", "said", "--gold", "gold", "-o", tmp_path / "one")
    assert "evalcore" not in (tmp_path / "one" / "samples_t.jsonl").read_text("utf-8")


@pytest.mark.parametrize("given", [{}, [1, "a"], True, [None]])
def test_a_gold_that_is_none_is_an_error(tmp_path: Path, given: object) -> None:
    with pytest.raises(EvalError, match=r"expected a gold under evalcore\.gold"):
        read_own_gold(given)
    log = write(tmp_path / "samples_t.jsonl", [generation(0, "x") | {"evalcore": {"gold": given}}])
    with pytest.raises(EvalError, match=r"samples_t\.jsonl:1: expected a gold under evalcore\.gold"):
        read(log)


@pytest.mark.parametrize("given", [{}, [1], "ab"])
def test_choices_that_are_none_are_an_error(given: object) -> None:
    with pytest.raises(EvalError, match=r"expected a list of texts under evalcore\.choices"):
        read_own_choices(given)


def test_documents_without_any_score_are_written_with_their_reason(tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl", [{"a": ["x", "y"], "s": [None, None]}, {"a": ["x", "y"], "s": [1, 0]}])
    scored(tmp_path / "t.jsonl", "--answer", "a", "--score", "s", "--reducer", "mean", "-o", tmp_path / "one")
    scored(tmp_path / "one", "-o", tmp_path / "two")
    assert estimates(tmp_path / "one") == estimates(tmp_path / "two")
    rows = [json.loads(line)["evalcore"] for line in (tmp_path / "one" / "samples_t.jsonl").open(encoding="utf-8")]
    assert "the score is None" in rows[0]["unscored"]["s"]
    assert [one.get("noise") for one in rows] == [None, {"s": [0.25, 2]}]
