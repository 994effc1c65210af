"""Plain tables with bytes that are no text, golds and choices that are numbers, and lists of scores."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from evalcore.shell.cli import main
from evalcore.shell.logs.log import Logged, Problem
from evalcore.shell.logs.open import open_logs
from evalcore.shell.logs.tables.column_map import ColumnMap

SAID = ColumnMap(answer="said")
CHOSEN = ColumnMap(loglikelihoods="l", choices="c", gold="g")


def put(path: Path, content: bytes | list[dict[str, object]]) -> Path:
    path.write_bytes(
        content if isinstance(content, bytes) else b"".join(json.dumps(one).encode() + b"\n" for one in content)
    )
    return path


def kept(path: Path, mapping: ColumnMap) -> tuple[list[Logged], list[Problem]]:
    rows = [one for task in open_logs([path], mapping=mapping, keep_going=True) for one in task.rows()]
    return [one for one in rows if isinstance(one, Logged)], [one for one in rows if isinstance(one, Problem)]


# --- bytes that are no text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_only_the_rows_with_bad_bytes_are_lost(tmp_path: Path, end: bytes, mark: bytes, pack) -> None:
    cells = {3: b"caf\xe9", 4: b'"\xfe' + end + b'b\xff\xff"', 2000: b"\xe2\x82", 2001: "é€".encode()}
    rows = [b"%d,%b" % (n, cells.get(n, b"a")) for n in range(2010)]
    data = mark + end.join([b"n,said", *rows, b""])
    found, problems = kept(put(tmp_path / "x.csv", pack(data)), ColumnMap(answer="said", id="n"))
    assert [one.id for one in found] == [str(n) for n in range(2010) if n not in (3, 4, 2000)]
    assert found[1998].replies == (("é€",),)
    places = [data.index(byte) for byte in (b"\xe9" + end, b"\xfe", b"\xe2\x82" + end)]
    assert [(one.line, one.byte) for one in problems] == list(zip((5, 6, 2003), places, strict=True))
    assert problems[0].message.startswith("not utf-8: invalid continuation byte in b'")


def test_how_many_rows_come_before_a_bad_byte(tmp_path: Path, capsys) -> None:
    path = put(tmp_path / "x.csv", b"n,said\n" + b"0,a\n" * 900 + b"1,\xff\n" + b"0,a\n" * 900)
    assert main(["score", str(path), "--answer", "said", "--gold", "said"]) == 2
    assert "byte 3,609; 900 good documents of x before it" in capsys.readouterr().err


def test_a_header_with_a_bad_byte_is_the_fault_of_the_file(tmp_path: Path) -> None:
    found, [problem] = kept(put(tmp_path / "x.csv", b"caf\xe9,said\n0,a\n"), SAID)
    assert (found, problem.line, problem.byte) == ([], 1, 3)


# --- golds and choices that are numbers ---------------------------------------------------------------------------


def golds(path: Path, mapping: ColumnMap = CHOSEN) -> tuple[list[object], tuple[str, ...]]:
    [task] = open_logs([path], mapping=mapping)
    return [one.gold for one in task.rows()], task.warnings


def rows_of(*pairs: tuple[list[object], object]) -> list[dict[str, object]]:
    return [{"c": choices, "g": gold, "l": [-1.0] * len(choices), "a": "5"} for choices, gold in pairs]


NUMBERS = {
    "one gold is no index": ([([1, 2], 1), ([2, 5], 5), ([0, 1], 0), ([1, 0], 0)], [0, 1, 0, 1]),
    "one gold is no text": ([([1, 0], 0), ([7, 8], 1)], [0, 1]),
    "several golds": ([([1, 0], [0]), ([2, 5], [2, 5])], [(1,), (0, 1)]),
    "floats": ([([1.0, 0.0], 0.0), ([2.5, 3.0], 3.0)], [1, 1]),
    "no gold in a row": ([([1, 0], 0), ([1, 0], None), ([2, 5], 5)], [1, None, 1]),
    "the same either way": ([([0, 1], 0), ([0, 1], 1)], [0, 1]),
    "words": ([(["a", "b"], 1), (["1", "0"], 0)], [1, 0]),
    "texts": ([(["1", "0"], "0"), (["7", "8"], "1")], [1, 1]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_indices_or_texts_in_all_rows(tmp_path: Path, name: str) -> None:
    pairs, expected = NUMBERS[name]
    for turned in (False, True) if name != "words" else (False,):
        rows = rows_of(*pairs)
        path = put(tmp_path / "x.jsonl", rows[::-1] if turned else rows)
        assert golds(path) == (expected[::-1] if turned else expected, ())


def test_numbers_that_may_be_both_are_told_of(tmp_path: Path) -> None:
    path = put(tmp_path / "x.jsonl", rows_of(([1, 0], 0), ([0, 1], 1)))
    found, [told] = golds(path)
    assert found == [0, 1]
    assert told.startswith("x: golds and choices are numbers, and no row settles")
    assert told.endswith('they are taken as indices; write them as texts ("1") if they are texts')
    table = put(tmp_path / "x.csv", b'c;g;l\n"[1, 0]";0;"[-1, -2]"\n')
    found, [told] = golds(table)
    assert (found, "they are taken as texts; write JSON lines" in told) == ([1], True)
    texts = put(tmp_path / "x.jsonl", rows_of(([1, 0], "0"), ([0, 1], "1")))
    assert golds(texts) == ([1, 1], ())


def test_indices_of_a_csv_are_indices_in_all_rows(tmp_path: Path) -> None:
    table = put(tmp_path / "x.csv", b'c;g;l\n"[1, 0]";0;"[-1, -2]"\n"[7, 8]";0;"[-1, -2]"\n')
    assert golds(table) == ([0, 0], ())


def test_numbers_beside_answers_are_settled_too(tmp_path: Path) -> None:
    mapping = ColumnMap(answer="a", choices="c", gold="g")
    assert golds(put(tmp_path / "x.jsonl", rows_of(([1, 0], 0), ([2, 5], 5))), mapping) == ([1, 1], ())
    assert golds(put(tmp_path / "x.jsonl", rows_of((["b", "c"], 1))), mapping) == ([1], ())


# --- lists of scores ----------------------------------------------------------------------------------------------


def value(path: Path, capsys, *flags: str) -> object:
    assert main(["score", str(path), "--answer", "a", "--score", "s", "--json", *flags]) == 0
    return json.loads(capsys.readouterr().out)["results"]["x"]["s,none"]


def test_scores_in_lists_of_one(tmp_path: Path, capsys) -> None:
    several = put(tmp_path / "x.jsonl", [{"a": ["x", "y"], "s": [1, 0]}, {"a": ["x"], "s": [1]}])
    assert value(several, capsys, "--reducer", "mean") == 0.75
    single = put(tmp_path / "x.jsonl", [{"a": ["x"], "s": [1]}, {"a": "x", "s": [0]}])
    assert (value(single, capsys), value(single, capsys, "--reducer", "mean")) == (0.5, 0.5)


def test_as_many_scores_as_answers(tmp_path: Path) -> None:
    rows = [{"a": ["x", "y"], "s": given} for given in ([1, 0, 1], [1], 1, [])]
    found, problems = kept(put(tmp_path / "x.jsonl", rows), ColumnMap(answer="a", score="s"))
    assert [one.scores for one in found] == [{"s,none": 1.0}, {"s,none": None}]
    assert [one.message for one in problems] == [f"expected a score for each of 2 repeats, got {n}" for n in (3, 1)]


# --- declared columns ---------------------------------------------------------------------------------------------


def test_columns_are_not_for_nothing_where_no_table_can_be_read(tmp_path: Path, capsys) -> None:
    put(tmp_path / "x.csv", b"said\n\0\n")
    main(["score", str(tmp_path), "--answer", "said", "--keep_going"])
    told = "".join(capsys.readouterr())
    assert "found bytes that are no text" in told
    assert "had no effect" not in told
