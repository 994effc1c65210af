"""Damaged and wrong recordings: what was expected, found and where; nothing skipped silently, nothing but our errors."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evalcore import EvalError
from evalcore.core.records.request import Failure
from evalcore.shell.logs.log import Logged, Problem
from evalcore.shell.logs.open import open_logs
from evalcore.shell.logs.tables.column_map import ColumnMap

TABLE = ColumnMap(answer="said", gold="right", id="n", repeat="run", score="ok")


def row(doc: object, name: str = "none", **more: object) -> dict[str, object]:
    return {
        "doc_id": doc,
        "doc": {"q": f"q{doc}"},
        "target": f"{doc}",
        "arguments": {"gen_args_0": {"arg_0": f"q{doc}", "arg_1": {"until": ["\n"]}}},
        "resps": [[f"é {doc}"]],
        "filtered_resps": [f"{doc}"],
        "filter": name,
        "metrics": ["exact_match"],
        "exact_match": 1.0,
        **more,
    }


def pair(doc: int) -> dict[str, object]:
    ends = {f"gen_args_{i}": {"arg_0": "Q", "arg_1": end} for i, end in enumerate((" yes", " no"))}
    return row(doc, arguments=ends, resps=[[["-1.5", "True"]], [["-2.0", "False"]]], target="1", acc=1.0)


def lines(rows: list[object]) -> bytes:
    return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in rows)


def inspect_sample(name: object, epoch: int) -> dict[str, object]:
    return {
        "id": name,
        "epoch": epoch,
        "input": "2+2?",
        "target": "4",
        "messages": [{"role": "assistant", "content": "4"}],
        "output": {"completion": "4", "choices": [{"message": {"role": "assistant", "content": "4"}}]},
        "scores": {"match": {"value": "C", "answer": "4"}},
    }


HEADER = {"version": 2, "status": "success", "eval": {"task": "sums", "model": "m"}, "plan": {}, "results": {}}
SAMPLES = [inspect_sample(name, epoch) for name in (1, "b") for epoch in (1, 2)]


def inspect_zip(samples: list[dict[str, object]] = SAMPLES) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for one in samples:
            made.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        made.writestr("header.json", json.dumps(HEADER))
    return out.getvalue()


def put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def fault(path: Path, **named: object) -> str:
    """The error of reading it strictly."""
    with pytest.raises(EvalError) as raised:
        [list(task.rows()) for task in open_logs([path], **named)]
    return str(raised.value)


def kept(path: Path, **named: object) -> tuple[list[Logged], list[Problem]]:
    """What is read, and what is told of, with ``keep_going``."""
    found = [one for task in open_logs([path], keep_going=True, **named) for one in task.rows()]
    return [one for one in found if isinstance(one, Logged)], [one for one in found if isinstance(one, Problem)]


# --- sample logs ------------------------------------------------------------------------------------------------------


WRONG = {
    "torn": (b'{"doc_id": 2, "doc": {"q', "not JSON"),
    "a list": (b"[1, 2]", "expected a row of a sample log (doc_id, doc, arguments, resps), got b'[1, 2]'"),
    "no replies": (json.dumps({"doc_id": 2, "doc": {}, "arguments": [["a", {}]]}).encode(), "expected resps in a row"),
    "text for a number": (json.dumps(row("two")).encode(), "expected the number of a document under doc_id, got 'two'"),
    "too large": (json.dumps(row(1 << 70)).encode(), "expected the number of a document under doc_id"),
    "no request": (
        json.dumps(row(2, arguments={})).encode(),
        "expected at least one request under arguments, got none",
    ),
    "odd arguments": (json.dumps(row(2, arguments=[[1, 2]])).encode(), "expected a prompt and options"),
    "odd replies": (json.dumps(row(2, resps=[[7]])).encode(), "expected a reply to a Generate, got '7'"),
    "replies as text": (json.dumps(row(2, resps="x")).encode(), "expected replies under resps, got 'x'"),
    "no reply": (json.dumps(row(2, resps=[[]])).encode(), "expected at least one reply to each request, got none"),
    "a document twice": (json.dumps(row(1)).encode(), "got a second one under 'none' - at doc 1"),
    "other replies": (json.dumps(row(1, "b", resps=[["x"]])).encode(), "expected the replies that the first row"),
    "not UTF-8": (b'{"doc_id": 2, "doc": "\xff"}', "not UTF-8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_line_is_told_with_its_place(tmp_path: Path, name: str) -> None:
    line, told = WRONG[name]
    good = lines([row(0), row(1)])
    path = put(tmp_path / "samples_t.jsonl", good + line + b"\n" + lines([row(3)]))
    message = fault(path)
    assert message.startswith(f"{path}:3: ")
    assert told in message
    assert f"(byte {len(good)}; 2 good documents of t before it; score --keep-going" in message
    found, problems = kept(path)
    assert [one.doc_id for one in found] == [0, 1, 3]
    assert [(one.path, one.line, one.byte) for one in problems] == [(path, 3, len(good))]
    assert told in problems[0].message


def test_a_log_that_lacks_rows_of_a_filter(tmp_path: Path) -> None:
    path = put(tmp_path / "samples_t.jsonl", lines([row(0, "a"), row(1, "a"), row(0, "b")]))
    told = "expected as many rows of each document (one per filter), got 2 rows of document 0 and 1 of document 1"
    assert told in fault(path)
    found, problems = kept(path)
    assert (len(found), [one.message for one in problems]) == (2, [told])


def test_a_document_twice_in_a_log_that_names_no_filter(tmp_path: Path) -> None:
    rows = [{key: value for key, value in row(doc).items() if key != "filter"} for doc in (0, 1, 1)]
    assert "got 1 rows of document 0 and 2 of document 1" in fault(put(tmp_path / "x.jsonl", lines(rows)))


def test_an_array_is_read_on_after_a_wrong_item(tmp_path: Path) -> None:
    text = json.dumps([row(0), row(1), row(2)], indent=2).replace('"doc_id": 1,', '"doc_id": 1 1,')
    path = put(tmp_path / "samples_t.jsonl", text.encode())
    found, problems = kept(path)
    assert [one.doc_id for one in found] == [0, 2]
    assert [one.line for one in problems] == [text[: text.index('"doc_id": 1 1')].count("\n")]


def test_an_item_of_an_array_in_one_line_is_told_by_its_number(tmp_path: Path) -> None:
    path = put(tmp_path / "samples_t.jsonl", json.dumps([row(0), row(1), {**row(2), "resps": []}]).encode())
    assert fault(path).startswith(f"{path}: item 3: expected replies under resps")


# --- files ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("x.jsonl", b"", "it is empty"),
        ("x.jsonl", b" \n\n", "it is empty"),
        ("x.jsonl", bytes(range(256)), "found bytes that are no text"),
        ("x.txt", b"hello\n", "found text, and no columns are declared"),
        ("x.jsonl", lines([{"q": 1}]), "found JSON of another kind, and no columns are declared"),
        ("x.jsonl", b'{"sum":"00000000",', "an answer log has no documents or golds"),
        ("x.jsonl", gzip.compress(lines([row(0)]))[:-9], "cannot be read"),
        ("x.jsonl.gz", gzip.compress(lines([row(0)]))[:-9], "cannot be read"),
        ("x.eval", b"PK\x03\x04", "cannot be read as a zip file"),
        ("x.eval", inspect_zip()[:-30], "cannot be read as a zip file"),
        ("results.json", b'{"results": {"t": {}}}', "holds totals only"),
    ],
)
def test_files_that_are_no_logs(tmp_path: Path, name: str, data: bytes, told: str) -> None:
    path = put(tmp_path / name, data)
    assert told in fault(path)
    assert str(path) in fault(path)
    found, problems = kept(path)
    assert found == []
    assert len(problems) == 1
    assert told in problems[0].message
    assert problems[0].path == path


def test_no_such_path(tmp_path: Path) -> None:
    with pytest.raises(EvalError, match="no such file or folder"):
        open_logs([tmp_path / "no"])
    with pytest.raises(EvalError, match="found no file there"):
        open_logs([tmp_path])
    with pytest.raises(EvalError, match="found no file of such a name"):
        open_logs([str(tmp_path / "*.jsonl")])
    put(tmp_path / "notes.md", b"hello")
    with pytest.raises(EvalError, match=r"expected a sample log.*found none"):
        open_logs([tmp_path])


def test_a_packed_file_that_is_cut_gives_what_it_has(tmp_path: Path) -> None:
    rows = [row(doc, noise=[str(hash((doc, i))) for i in range(200)]) for doc in range(200)]
    packed = gzip.compress(lines(rows))
    path = put(tmp_path / "samples_t.jsonl.gz", packed[: len(packed) // 2])
    found, problems = kept(path)
    assert 0 < len(found) < 200
    assert len(problems) == 1
    assert "cannot be read" in problems[0].message
    assert f"{len(found)} good documents of t before it" in fault(path)


def test_one_bad_file_among_many(tmp_path: Path) -> None:
    put(tmp_path / "samples_a.jsonl", lines([row(0)]))
    put(tmp_path / "samples_b.jsonl", b"")
    put(tmp_path / "c.eval", inspect_zip()[:-30])
    with pytest.raises(EvalError):
        open_logs([tmp_path])
    found, problems = kept(tmp_path)
    assert len(found) == 1
    assert sorted(one.path.name for one in problems) == ["c.eval", "samples_b.jsonl"]


def test_a_shard_that_lacks_rows_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    put(tmp_path / "a" / "samples_t.jsonl", lines([row(0, "a"), row(0, "b")]))
    torn = put(tmp_path / "b" / "samples_t.jsonl", lines([row(1, "a"), row(2, "a"), row(2, "b")]))
    for folder in "ab":
        put(tmp_path / folder / "results.json", b'{"results": {"t": {}}, "model_name": "m"}')
    _, [problem] = kept(tmp_path)
    assert (problem.path, problem.line) == (torn, 1)


def test_damaged_results_beside_a_log(tmp_path: Path) -> None:
    put(tmp_path / "samples_t_2025-07-21T14-41-47.889425.jsonl", lines([row(0)]))
    path = put(tmp_path / "results_2025-07-21T14-41-47.889425.json", b'{"results": {"t": {')
    assert fault(tmp_path).count(str(path)) == 1
    found, problems = kept(tmp_path)
    assert ([one.doc_id for one in found], [one.path for one in problems]) == ([0], [path])


TORN = {
    "samples_t.jsonl": (b'{"doc_id": 0, "doc": {"results": {', 1),
    "samples_u.jsonl": (b"oc_id: 0}", 1),
    "samples_v.jsonl": (b"\x00\x01", 1),
    "x.eval": (b"garbage", 0),
    "y.eval": (b"", 0),
    "z.json": (b'{"version": 2, "eval": {"task": "t"', 0),
    "2026-01-01T00-00-00_t_id.json": (b'{"vers', 0),
}


@pytest.mark.parametrize("name", TORN)
def test_damaged_logs_of_a_folder_are_told_of(tmp_path: Path, name: str) -> None:
    data, good = TORN[name]
    put(tmp_path / "samples_good.jsonl", lines([row(0)]))
    path = put(tmp_path / name, data + b"\n" + lines([pair(1)]) if good else data)
    assert fault(tmp_path).count(str(path)) == 1
    found, problems = kept(tmp_path)
    assert (len(found), [one.path for one in problems]) == (1 + good, [path])
    assert all(one.gold == 1 for one in found if one.doc_id == 1)  # the first whole row tells what the log is of


def test_json_that_is_torn_is_told_of(tmp_path: Path) -> None:
    put(tmp_path / "samples_t.jsonl", lines([row(0)]))
    put(tmp_path / "whole.json", b'{\n"a": 1\n}')
    path = put(tmp_path / "a.json", b'{\n"a": ')
    [task] = open_logs([tmp_path])
    assert task.warnings == (f"1 file is no log, and is not read: {path}",)


def test_messages_name_a_place_once(tmp_path: Path) -> None:
    path = put(tmp_path / "samples_t.jsonl", lines([row(0)]) + b'{"doc_id": "a\n')
    _, [problem] = kept(path)
    assert problem.message.startswith("not JSON: Unterminated string starting at byte 11 of")
    assert fault(path).startswith(f"{path}:2: not JSON: ")
    whole = put(tmp_path / "o.json", b'{\n"model_configs": {},\n"logs": [')
    assert fault(whole).count(str(whole)) == 1
    assert not kept(whole)[1][0].message.startswith((":", str(whole)))


# --- Inspect --------------------------------------------------------------------------------------------------------------


def test_an_inspect_sample_that_is_damaged(tmp_path: Path) -> None:
    odd = [SAMPLES[0], {**SAMPLES[1], "target": 5}, *SAMPLES[2:]]
    for path in (
        put(tmp_path / "a.eval", inspect_zip(odd)),
        put(tmp_path / "a.json", json.dumps({**HEADER, "samples": odd}).encode()),
    ):
        found, problems = kept(path)
        assert [(one.id, len(one.replies[0])) for one in found] == [(1, 1), ("b", 2)]
        assert [one.line for one in problems] == [2]
        assert "expected a sample of Inspect" in problems[0].message
        assert "expected a sample of Inspect" in fault(path)


def test_an_inspect_sample_that_ended_in_an_error(tmp_path: Path) -> None:
    bare = {"id": 7, "epoch": 1, "error": {"message": "no luck"}, "scores": None, "output": None}
    odd = {**SAMPLES[0], "id": 8, "error": {"message": "no luck"}, "scores": {"match": None}, "output": {"choices": []}}
    for path in (
        put(tmp_path / "a.eval", inspect_zip([bare, odd])),
        put(tmp_path / "a.json", json.dumps({**HEADER, "samples": [bare, odd]}).encode()),
    ):
        [first, second], problems = kept(path)
        assert (first.scores, first.replies, problems) == ({}, ((Failure("no luck"),),), [])
        assert second.scores == {"match,none": None}


def test_an_inspect_sample_without_a_number_keeps_its_metadata(tmp_path: Path) -> None:
    told = {"topic": "sums", "share": float("nan")}
    odd = {**SAMPLES[0], "input": "a\ud800", "metadata": told, "scores": {"match": {"value": float("nan")}}}
    for path in (
        put(tmp_path / "a.eval", inspect_zip([odd])),
        put(tmp_path / "a.json", json.dumps({**HEADER, "samples": [odd]}).encode()),
    ):
        [found], problems = kept(path)
        doc = json.loads(found.doc)
        assert (doc["input"], doc["metadata"]["topic"], problems) == ("a\ud800", "sums", [])
        assert doc["metadata"]["share"] != doc["metadata"]["share"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_inspect_sample_twice(tmp_path: Path) -> None:
    path = put(tmp_path / "a.eval", inspect_zip([*SAMPLES, SAMPLES[0]]))
    assert "expected each sample once, got 1, epoch 1 twice" in fault(path)
    found, problems = kept(path)
    assert ([len(one.replies[0]) for one in found], len(problems)) == ([2, 2], 1)


def test_a_zip_that_unpacks_to_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalcore.shell.data.unpack.FREE_BYTES", 1 << 16)
    big = {**inspect_sample("bomb", 1), "metadata": "0" * (1 << 24)}
    path = put(tmp_path / "a.eval", inspect_zip([*SAMPLES, big]))
    assert "samples/bomb_epoch_1.json: unpacks to more than" in fault(path)
    assert [len(part) for part in kept(path)] == [2, 1]


# --- tables ---------------------------------------------------------------------------------------------------------------


def test_wrong_rows_of_a_table(tmp_path: Path) -> None:
    rows = [
        {"n": 0, "said": "a"},
        {"n": 1},
        {"n": 0, "said": "b"},
        ["x"],
        {"n": 3, "said": {"a": 1}},
        {"n": 4, "said": "c"},
    ]
    path = put(tmp_path / "x.jsonl", lines(rows))
    found, problems = kept(path, mapping=ColumnMap(answer="said", id="n"))
    assert [one.replies[0][0] for one in found] == ["a", "c"]
    told = [(one.line, one.message.split(";")[0]) for one in problems]
    assert told == [
        (2, "expected a column 'said', got n"),
        (3, "expected each id once, got 0 again"),
        (4, "expected a JSON object, got \"['x']\""),
        (5, "expected a text, got \"{'a': 1}\" under 'said'"),
    ]


@pytest.mark.parametrize("repeat", [None, "run"])
def test_rows_without_an_id(tmp_path: Path, repeat: str | None) -> None:
    rows = [{"n": name, "run": 0, "said": "a"} for name in (0, None, float("nan"), 1)]
    path = put(tmp_path / "x.jsonl", lines(rows))
    found, problems = kept(path, mapping=ColumnMap(answer="said", id="n", repeat=repeat))
    assert [one.id for one in found] == [0, 1]
    assert [(one.line, one.message) for one in problems] == [
        (at, "expected an id under 'n', got nothing") for at in (2, 3)
    ]


def test_a_table_whose_first_line_is_torn(tmp_path: Path) -> None:
    path = put(tmp_path / "x.jsonl", b'{"n": 0, "sai\n' + lines([{"n": 1, "said": "b"}, {"n": 2, "said": "c"}]))
    found, problems = kept(path, mapping=ColumnMap(answer="said"))
    assert ([one.replies[0][0] for one in found], [one.line for one in problems]) == (["b", "c"], [1])
    whole = put(tmp_path / "o.json", b'{"data": [\n{"said": "a"},\n{"said": "b"}\n]}')
    assert [len(part) for part in kept(whole, mapping=ColumnMap(answer="said"))] == [2, 0]


def test_rows_of_a_csv_that_are_cut(tmp_path: Path) -> None:
    path = put(tmp_path / "x.csv", b"n,said\n0,a\n1\n2,c\n")
    found, problems = kept(path, mapping=ColumnMap(answer="said"))
    assert ([one.replies[0][0] for one in found], problems[0].line) == (["a", "c"], 3)
    assert problems[0].message == "expected 2 cells, got 1"


def test_scores_that_are_no_numbers(tmp_path: Path) -> None:
    path = put(tmp_path / "x.jsonl", lines([{"ok": "often"}]))
    assert "expected a score as a number, got 'often'" in fault(path, mapping=ColumnMap(score="ok"))


DECLARED = ColumnMap(answer="said", gold="right", id="n")
DAMAGED = {
    "cut.parquet": (lambda: parquet()[:300], 1, 0, "cannot be read: "),
    "no.parquet": (lambda: b"\0" + parquet(), 1, 0, "found bytes that are no text"),
    "latin.csv": (
        lambda: b"n,said,right\n0,caf\xe9,b\n",
        2,
        18,
        "not utf-8: invalid continuation byte in b'0,caf\\xe9,b'",
    ),
    "quote.csv": (
        lambda: b'n,said,right\n0,"a,b\n1,b,b\n',
        2,
        0,
        "expected a closing quote, found the end of the file",
    ),
    "last.csv": (lambda: b'n,right,said\n0,a,"b\n1,b,b\n', 2, 0, "expected a closing quote, found the end of the file"),
    "utf16.csv": (lambda: "n,said,right\n0,a,b\n".encode("utf-16"), 1, 0, "found bytes that are no text"),
    "torn.jsonl": (lambda: b'{"n": 0, "said": "a", "ri', 1, 0, "not JSON: "),
    "torn.json": (lambda: b'[{"n": 0, "said": "a"}, {"n', 1, 0, "not JSON: "),
    "twice.csv": (lambda: b"n,said,said,right\n0,a,b,b\n", 1, 0, "expected one answer column 'said', got 2; rename"),
}
"""Tables that cannot be read: the bytes, the line, the byte and what is told."""


@pytest.mark.parametrize("name", DAMAGED)
def test_a_table_that_cannot_be_read_is_an_error_in_a_folder_too(tmp_path: Path, name: str) -> None:
    data, line, byte, message = DAMAGED[name]
    put(tmp_path / "good.csv", b"n,said,right\n0,a,b\n")
    path = put(tmp_path / name, data())
    for place in (tmp_path, tmp_path / "*"):
        assert fault(place, mapping=DECLARED).count(str(path)) == 1
        found, [problem] = kept(place, mapping=DECLARED)
        assert (len(found), problem.path, problem.line, problem.byte) == (1, path, line, byte)
        assert message in problem.message
    assert message in fault(path, mapping=DECLARED)


def test_other_files_of_a_folder_are_no_damaged_tables(tmp_path: Path) -> None:
    put(tmp_path / "good.csv", b"n,said,right\n0,a,b\n")
    others = {
        "latin.csv": b"x,y\ncaf\xe9,b\n",
        "list.jsonl": b"[1, 2]\n",
        "log.txt": b"[INFO] begun\n",
        "meta.json": b'{\n"a": 1\n}',
        "none.json": b"[\n]",
        "note.md": b"said, caf\xe9\n",
    }
    paths = [put(tmp_path / name, data) for name, data in others.items()]
    [task] = open_logs([tmp_path], mapping=DECLARED)
    assert task.warnings == (f"2 files are no logs, and are not read: {paths[0]}, {paths[1]}",)


def test_every_file_that_is_no_log_is_told_of(tmp_path: Path) -> None:
    put(tmp_path / "good.csv", b"n,said,right\n0,a,b\n")
    for folder, count in (("x", 7), ("y", 2)):
        (tmp_path / folder).mkdir()
        for number in range(count):
            put(tmp_path / folder / f"{number}.jsonl", b'{"q": 1}\n')
    [task] = open_logs([tmp_path], mapping=DECLARED)
    assert task.warnings[0].startswith(f"9 files are no logs, and are not read: {tmp_path / 'x' / '0.jsonl'}, ")
    assert task.warnings[0].endswith(f"4.jsonl; 2 more in {tmp_path / 'x'}; 2 more in {tmp_path / 'y'}")


def test_a_doubled_column_is_refused_only_where_it_is_used(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    path = put(tmp_path / "x.csv", b"n,said,n\n0,a,1\n")
    assert len(kept(path, mapping=ColumnMap(answer="said"))[0]) == 1
    assert f"{path}:1: expected one id column 'n', got 2" in fault(path, mapping=ColumnMap(answer="said", id="n"))
    table = pyarrow.table([["a"], ["b"]], names=["said", "said"])
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    assert "expected one answer column 'said', got 2" in fault(tmp_path / "x.parquet", mapping=ColumnMap(answer="said"))


def test_the_place_of_a_bad_byte_far_into_a_table(tmp_path: Path) -> None:
    good = b"n,said\n" + b"".join(b"%d,a\n" % n for n in range(9000))
    path = put(tmp_path / "x.csv", good + b"9000,\xff\n9001,b\n")
    _, [problem] = kept(path, mapping=ColumnMap(answer="said"))
    assert (problem.line, problem.byte) == (9002, len(good) + 5)


# --- any damage at all ------------------------------------------------------------------------------------------------------


def arrow_table(write: Callable[[object, object], None]) -> bytes:
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    write(pyarrow.Table.from_pylist(PLAIN), sink)
    return sink.getvalue().to_pybytes()


def parquet() -> bytes:
    import pyarrow.parquet

    return arrow_table(lambda table, sink: pyarrow.parquet.write_table(table, sink))


PLAIN = [{"n": n, "run": run, "said": f"s{n}", "right": "é", "ok": True} for n in (0, 1) for run in (0, 1)]
CSV = 'n,run,said,right,ok\n0,0,a,b,1\n0,1,é,b,0\n1,0,"x\ny",b,1\n'.encode()
WHOLE = {
    "x.jsonl": lines([row(doc, name) for name in ("a", "b") for doc in (0, 1)]),
    "p.jsonl": lines([pair(0), pair(1), {**pair(2), "evalcore": {"cluster": 1}}]),
    "a.jsonl": json.dumps([pair(0), row(1)], indent=2).encode(),
    "m.jsonl": lines([{"doc_id": 0, "input": "Q", "target": "t", "filtered_resps": ["A"], "vqa": {"s": 1}}]),
    "o.json": json.dumps({"args": {}, "model_configs": {"task": "t"}, "logs": [row(0)]}).encode(),
    "z.jsonl.gz": gzip.compress(lines([row(0), row(1)])),
    "i.eval": inspect_zip(),
    "i.json": json.dumps({**HEADER, "samples": SAMPLES}).encode(),
    "t.jsonl": lines(PLAIN),
    "c.csv": CSV,
    "q.parquet": parquet(),
}
"""Small recordings of every kind."""


def damaged(data: bytes, cut: int, flips: list[tuple[int, int]]) -> bytes:
    out = bytearray(data)
    for at, bits in flips:
        out[at % len(out)] ^= bits
    return bytes(out[: len(out) - cut % len(out)]) if cut else bytes(out)


def mostly_slow(names: Iterable[str]) -> list[object]:
    """Every third by default, the others among the slow tests."""
    return [pytest.param(name, marks=[pytest.mark.slow] if at % 3 else []) for at, name in enumerate(names)]


@pytest.mark.parametrize("name", WHOLE)
def test_whole_recordings_are_read_whole(tmp_path: Path, name: str) -> None:
    found, problems = kept(put(tmp_path / name, WHOLE[name]), mapping=TABLE)
    assert found
    assert problems == []


@pytest.mark.parametrize("name", mostly_slow(WHOLE))
@settings(
    max_examples=120, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    cut=st.one_of(st.just(0), st.integers(0, 1 << 12)),
    flips=st.lists(st.tuples(st.integers(0, 1 << 14), st.integers(1, 255)), max_size=3),
)
@example(cut=1, flips=[])
def test_any_damage_gives_documents_problems_or_our_error(tmp_path: Path, name: str, cut: int, flips: list) -> None:
    path = put(tmp_path / name, damaged(WHOLE[name], cut, flips))
    for going in (False, True):
        try:
            tasks = open_logs([path], mapping=TABLE, keep_going=going, scores=True)
            found = [one for task in tasks for one in task.rows()]
        except EvalError:
            continue
        assert all(isinstance(one, Logged | Problem) for one in found)
        assert going or not any(isinstance(one, Problem) for one in found)


# --- any other value in any place ---------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.floats() | st.sampled_from(["", "[0]", "x", "1", "None"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["arg_0", "results", "id"]), inner, max_size=2),
    max_leaves=3,
)  # fmt: skip
SETTINGS = {"output_type": "multiple_choice", "doc_to_target": "{{q}}", "doc_to_choice": ["yes", "no"], "repeats": 1}
RECORDS: dict[str, object] = {
    "x.jsonl": row(0),
    "p.jsonl": {**pair(0), "evalcore": {"cluster": 1, "unscored": {"acc": "failed: x"}, "nonfinite": {"doc.q": "nan"}}},
    "l.jsonl": {**pair(0), "arguments": [["Q", " yes"]], "resps": [[[-1.0, True]], [[-2.0, False]]]},
    "m.jsonl": {"doc_id": 0, "input": "Q", "target": "t", "filtered_resps": ["A"], "vqa": {"s": 1}},
    "o.json": {"args": {}, "model_configs": {"task": "t"}, "logs": [row(0)]},
    "i.json": {**HEADER, "samples": SAMPLES[:2]},
    "t.jsonl": PLAIN[0],
    "results.json": {"results": {"p": {"acc,none": 1.0}}, "configs": {"p": SETTINGS}},
}


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Every place of a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


def with_other(value: object, path: tuple[object, ...], other: object) -> object:
    if not path:
        return other
    changed = {path[0]: with_other(value[path[0]], path[1:], other)}
    if isinstance(value, dict):
        return {**value, **changed}
    return [changed.get(at, one) for at, one in enumerate(value)]


@pytest.mark.parametrize("name", mostly_slow(RECORDS))
@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_other_value_gives_documents_problems_or_our_error(tmp_path: Path, name: str, data: st.DataObject) -> None:
    whole = RECORDS[name]
    changed = with_other(whole, data.draw(st.sampled_from(places(whole))), data.draw(VALUES))
    put(tmp_path / name, json.dumps(changed).encode() + b"\n")
    if name == "results.json":
        put(tmp_path / "samples_p.jsonl", lines([pair(0)]))
    for going in (False, True):
        try:
            tasks = open_logs([tmp_path], mapping=TABLE, keep_going=going, scores=True)
            found = [one for task in tasks for one in task.rows()]
        except EvalError:
            continue
        assert all(isinstance(one, Logged | Problem) for one in found)
