"""Data files of every kind and packing, and what is said of bad ones."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore.core.records.errors import EvalError
from evalcore.shell.data import unpack as opening
from evalcore.shell.data.align import align_documents
from evalcore.shell.data.csv_files import type_column
from evalcore.shell.data.readers import find_files, read_files

DOCS = [{"q": "2 + 2 =", "a": 4, "x": None}, {"q": "é \u2028 😀", "a": 5, "x": "y"}]
LINES = b"".join(json.dumps(doc).encode() + b"\n" for doc in DOCS)
TABLE = 'q,a,x\n2 + 2 =,4,\n"é \u2028 😀",5,y\n'.encode()


def read_documents(source: object, options: object = None, *, roots: object = ()) -> list[dict[str, object]]:
    return read_files(find_files(source, roots), options or {})


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", LINES),
        ("a.ndjson", LINES),
        ("a.json", LINES),
        ("a", LINES),
        ("crlf.jsonl", LINES.replace(b"\n", b"\r\n\r\n")),
        ("bom.jsonl", b"\xef\xbb\xbf" + LINES),
        ("raw.jsonl", "\n".join(json.dumps(doc, ensure_ascii=False) for doc in DOCS).encode()),
        ("array.jsonl", json.dumps(DOCS).encode()),
        ("a.json", json.dumps(DOCS).encode()),
        ("pretty.json", b"\xef\xbb\xbf" + json.dumps(DOCS, indent=2).encode()),
        ("held.json", json.dumps({"version": 1, "data": DOCS}).encode()),
        ("a", json.dumps(DOCS, indent=1).encode()),
        ("a.csv", TABLE),
        ("A.CSV", b"\xef\xbb\xbf" + TABLE.replace(b"\n", b"\r\n")),
        ("a.tsv", TABLE.replace(b",", b"\t")),
    ],
)
@pytest.mark.parametrize("packing", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_every_text_format(tmp_path: Path, name: str, data: bytes, packing: str) -> None:
    pack = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd}[packing]
    assert read_documents(write(tmp_path / (name + packing), pack(data))) == DOCS


def zstd(data: bytes) -> bytes:
    compressed: bytes = pytest.importorskip("zstandard").compress(data)
    return compressed


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather", ".stream.arrow", ""])
def test_arrow_formats(tmp_path: Path, suffix: str) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, ipc, parquet

    docs = [{"q": "a", "n": [1, 2], "s": {"k": 1.5}}, {"q": None, "n": [], "s": None}]
    table, path = pa.Table.from_pylist(docs), tmp_path / f"a{suffix}"
    if suffix in (".parquet", ""):
        parquet.write_table(table, path)
    elif suffix == ".stream.arrow":
        with ipc.new_stream(path, table.schema) as sink:
            sink.write_table(table)
    else:
        feather.write_feather(table, path)
    assert read_documents(path) == docs
    write(path, path.read_bytes()[:40])
    with pytest.raises(EvalError, match="cannot be read"):
        read_documents(path)


def test_globs_lists_folders_and_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in (2, 1, 3):
        write(tmp_path / f"part-{n}.jsonl", b'{"n": %d}' % n)
    (tmp_path / "deep").mkdir()
    write(tmp_path / "deep" / "part-4.csv", b"m\n4\n")
    write(tmp_path / ".hidden.jsonl", b"broken")
    assert read_documents("part-*.jsonl", roots=[tmp_path]) == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert read_documents(["part-3.jsonl", "deep/*.csv"], roots=[tmp_path]) == [
        {"n": 3, "m": None},
        {"n": None, "m": 4},
    ]
    assert len(read_documents(tmp_path)) == 4
    monkeypatch.chdir(tmp_path)
    assert read_documents("part-1.jsonl", roots=[tmp_path / "deep"]) == [{"n": 1}]
    (tmp_path / "deep" / "part-1.jsonl").write_text('{"n": "nearer"}')
    assert read_documents("part-1.jsonl", roots=[tmp_path / "deep"]) == [{"n": "nearer"}]


def test_magic_characters_in_a_real_name(tmp_path: Path) -> None:
    assert read_documents(write(tmp_path / "a[1].jsonl", b'{"n": 1}')) == [{"n": 1}]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.jsonl", b'{"a": 1}\n\n{"a": \n', "a.jsonl:3: not JSON: Expecting value at byte 5"),
        ("a.jsonl", b'{"a": 1}\n[1]\n', "a.jsonl:2: expected a JSON object"),
        ("a.jsonl", b'{"a": 1}\n{"a": "\xff"}\n', "a.jsonl:2: not UTF-8: invalid start byte at byte 7"),
        ("a.json", b'[{"a": 1},\n {"a": }]', "a.json:2: not JSON"),
        ("a.json", b"[1, 2]", "expected objects, got '1' in place 0"),
        ("a.json", b"7", "expected an array of documents"),
        ("a.json", b"[" * 100_000, "a.json: not read as JSON"),
        ("a.jsonl", b'{"a": ' + b"[" * 600 + b"1" + b"]" * 600 + b"}", "a.jsonl: documents nested too deep"),
        ("a.csv", b"a,b\n1,2\n3,4,5\n", "a.csv:3: expected 2 cells, got 3"),
        ("a.csv", b"a,b\n1,2\n\xff,4\n", "a.csv:.*not utf-8: invalid start byte"),
        ("a.jsonl", b'{"a": 1.5}\n{"a": 1%s}\n' % (b"0" * 400), "a.jsonl: an integer too large for the floats"),
        ("a.txt", b"a\nb\xff", "a.txt:2: not UTF-8: invalid start byte at byte 3"),
        ("a.gz", b"not gzip", "a.gz: cannot be read: Not a gzipped file"),
        ("a.jsonl.gz", gzip.compress(LINES * 50)[:-20], "a.jsonl.gz: cannot be read"),
        ("a.jsonl.xz", b"not xz", "a.jsonl.xz: cannot be unpacked"),
        ("a.jsonl.zst", b"not zstd", "a.jsonl.zst: cannot be unpacked"),
        ("a.parquet", b"PAR1", "a.parquet: cannot be read"),
        ("a.exe", b"MZ", "unknown kind of data file '.exe'"),
        ("a", b"\x00\x01", "unknown kind of data file 'a'"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    with pytest.raises(EvalError, match=said) as raised:
        read_documents(write(tmp_path / name, data))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("a.csv", {"encoding": "utf-16"}, r"a\.csv: not read as a table: .*BOM"),
        ("a.csv", {"encoding": "\0"}, r"a\.csv: not read as a table: .*null"),
        ("a.csv", {"encoding": "nonsense"}, r"a\.csv: unknown encoding: nonsense"),
        ("a.csv", {"quotechar": "ab"}, r"a\.csv: not read as a table"),
        ("a.csv", {"zeta": 1, "alpha": 1, "mu": 1}, r"unknown csv option 'alpha'.*a\.csv"),
        ("a.json", {"field": ["x"]}, r"unknown field .*a\.json"),
        ("a.json", {"field": {"x": 1}}, r"unknown field .*a\.json"),
        ("a.json", {"field": "y"}, r"unknown field 'y'.*Known: x - at .*a\.json"),
        ("a.parquet", {"columns": [1]}, r"a\.parquet: expected columns to be a list of names, got \[1\]"),
        ("a.parquet", {"columns": {"a": 1}}, r"a\.parquet: expected columns to be a list of names"),
        ("a.parquet", {"columns": "a"}, r"a\.parquet: expected columns to be a list of names"),
    ],
)
def test_bad_options(tmp_path: Path, name: str, options: dict[str, object], said: str) -> None:
    if name == "a.parquet":
        pytest.importorskip("pyarrow")
    write(tmp_path / name, b'{"x": [{"q": 1}]}' if name == "a.json" else b"a,b\n1,2\n")
    with pytest.raises(EvalError, match=said) as raised:
        read_documents(tmp_path / name, options)
    assert "\n" not in str(raised.value)


def test_a_number_with_more_digits_than_python_reads_is_text(tmp_path: Path) -> None:
    long = "9" * 5000
    assert read_documents(write(tmp_path / "a.csv", f"a,b\n1,2\n{long},3\n".encode())) == [
        {"a": "1", "b": 2},
        {"a": long, "b": 3},
    ]


def test_damaged_gzip_content(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(LINES * 50))
    for at in range(10, len(data), 7):
        damaged = data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]
        with pytest.raises(EvalError):
            read_documents(write(tmp_path / "a.jsonl.gz", bytes(damaged)))


def test_missing_file_names_the_places(tmp_path: Path) -> None:
    with pytest.raises(EvalError, match=rf"none\*\.jsonl: no such file; looked in {tmp_path}, \."):
        read_documents("none*.jsonl", roots=[tmp_path])


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "FREE_BYTES", 1 << 20)
    packed = io.BytesIO()
    with gzip.open(packed, "wb", 9) as file:
        for _ in range(64):
            file.write(b" " * (1 << 20))
    path = write(tmp_path / "a.jsonl.gz", packed.getvalue())
    with pytest.raises(EvalError, match="unpacks to more than 13,050,200 bytes, 200 times its size"):
        read_documents(path)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.txt"])
def test_empty_files_have_no_documents(tmp_path: Path, name: str) -> None:
    assert read_documents(write(tmp_path / name, b"")) == []


def test_long_cells_and_the_library_limit_is_put_back(tmp_path: Path) -> None:
    import csv

    before = csv.field_size_limit()
    assert read_documents(write(tmp_path / "a.csv", b'a\n"' + b"x" * 300_000 + b'"\n')) == [{"a": "x" * 300_000}]
    assert csv.field_size_limit() == before


SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=3)
CELLS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner), max_leaves=6
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), CELLS), max_size=6))
@settings(deadline=None)
def test_aligned_documents_differ_only_in_none_and_float(docs: list[dict[str, object]]) -> None:
    once = align_documents(docs)
    assert align_documents(once) == once
    assert len({tuple(doc) for doc in once}) <= 1
    for doc, new in zip(docs, once, strict=True):
        assert {name: new[name] for name in doc} == doc  # 1 == 1.0
        assert all(value is None for name, value in new.items() if name not in doc)


@given(st.lists(st.integers(-(10**18), 10**18), min_size=1))
def test_columns_of_numbers_come_back(numbers: list[int]) -> None:
    assert type_column([str(n) for n in numbers]) == numbers
    assert type_column([repr(float(n)) for n in numbers]) == [float(n) for n in numbers]
    assert [type(one) for one in type_column([str(n) for n in numbers])] == [int] * len(numbers)
