"""Local files give the documents that Hugging Face's datasets gives, read live."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalcore.shell.data.splits import load_splits

datasets = pytest.importorskip("datasets")


def both(tmp_path: Path, kind: str, name: str, content: bytes, **kwargs: object) -> tuple[object, object]:
    """Our documents and theirs, with the types of all values."""
    path = tmp_path / name
    path.write_bytes(content)
    options = {"data_files": {"test": str(path)}, **kwargs}
    theirs = datasets.load_dataset(kind, cache_dir=str(tmp_path / "cache"), **options)
    ours = load_splits({"task": "t", "dataset_path": kind, "dataset_kwargs": options})
    return repr([dict(doc) for doc in ours["test"]]), repr([dict(doc) for doc in theirs["test"]])


def lines(*docs: object) -> bytes:
    return "".join(json.dumps(doc, ensure_ascii=False) + "\n" for doc in docs).encode()


@pytest.mark.parametrize(
    "content",
    [
        lines({"q": "é \u2028 😀", "a": 1}, {"q": "", "a": 2}),
        lines({"a": 1}, {"a": 2.5, "b": "x"}),
        lines({"b": 1}, {"a": 2}, {"c": None}),
        lines({"s": {"a": 1, "b": [1]}}, {"s": {"a": 2.5, "b": []}}, {"s": None}, {}),
        lines({"s": {"a": 1}}, {"s": {"b": 2}}),
        lines({"l": [{"a": 1}, {"b": 2}]}, {"l": []}),
        lines({"l": [1, 2.5]}, {"l": [3]}, {"l": None}),
        lines({"l": [[1], [2.5, None]]}, {"l": [[]]}),
        lines({"t": True, "n": None}, {"t": None, "n": None}),
        lines({"m": 1}, {"m": "x"}),
        lines({"choices": {"text": ["a", "b"], "label": ["A", "B"]}}, {"choices": {"text": ["c"], "label": ["C"]}}),
        b'{"a": NaN}\n{"a": 1}\n',
        b'{"a": 1}\n\n{"a": 2}',
        b'{"a": 1}\r\n{"a": 2}\r\n',
        b'\xef\xbb\xbf{"a": 1}\n',
        json.dumps([{"a": 1}, {"b": 2}]).encode(),
        json.dumps([{"a": 1, "q": "x"}, {"a": 2, "q": "y"}], indent=1).encode(),
        json.dumps(["x", "y"]).encode(),
        json.dumps({"q": "one document", "n": [1, 2]}).encode(),
    ],
)
@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_json(tmp_path: Path, content: bytes, name: str) -> None:
    ours, theirs = both(tmp_path, "json", name, content)
    assert ours == theirs


def test_json_field(tmp_path: Path) -> None:
    content = json.dumps({"version": 3, "items": [{"a": 1}, {"a": 2}]}).encode()
    ours, theirs = both(tmp_path, "json", "a.json", content, field="items")
    assert ours == theirs


@pytest.mark.parametrize(
    "text",
    [
        "a,b,c\n1,x,True\n2,,False\n",
        "a,b,c\n1,NA,True\n,N/A,\n",
        "a,b,c\n1,1.5,True\n2,3,x\n",
        "a,a,,a\n1,2,3,4\n",
        "a,b\n1\n2,3\n",
        "a,b\n 1, x\n2 ,y \n",
        "a,b\n007,1e3\n-0,+5\n",
        'a,b\n\n"x ""q"" y","m\nn"\n   ,z\n',
        "a,b\ntrue,TRUE\nfalse,False\n",
        "a,b\n1_000,inf\n2,-inf\n",
        "a,b\n,\n,\n",
        'a,b\n"",\'q\'\n"1",2\n',
        "a,b\nx\r,1\r\ny,2\r\n",
        "a,b\n0x10,1.\nyes,.5\n",
        "a,b\n2020-01-01,None\n2020-01-02,null\n",
        "\ufeffa,b\n1,2\n",
        "a,b\n1,True\n0,1\n",
        "a\n12345678901234567890\n1\n",
        'q,"a, b"\n"x, y",é 😀\n',
    ],
)
def test_csv(tmp_path: Path, text: str) -> None:
    ours, theirs = both(tmp_path, "csv", "a.csv", text.encode())
    assert ours == theirs


@pytest.mark.parametrize(
    "kwargs",
    [
        {"sep": ";"},
        {"delimiter": ";"},
        {"sep": ";", "column_names": ["x", "y"]},
        {"sep": ";", "keep_default_na": False},
    ],
)
def test_csv_options(tmp_path: Path, kwargs: dict[str, object]) -> None:
    ours, theirs = both(tmp_path, "csv", "a.csv", b"a;b\nNA;x\nv;\n", **kwargs)
    assert ours == theirs


def test_text(tmp_path: Path) -> None:
    ours, theirs = both(tmp_path, "text", "a.txt", "one\n\ntwo \u2028 three\r\nfour".encode())
    assert ours == theirs


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_arrow(tmp_path: Path, kind: str) -> None:
    import datetime

    import pyarrow as pa
    from pyarrow import ipc, parquet

    docs = [
        {"q": "é", "l": [1, 2], "s": {"k": 1.5}, "t": datetime.datetime(2020, 1, 2), "b": b"x", "o": [{"k": 1}]},
        {"q": None, "l": [], "s": None, "t": None, "b": None, "o": None},
    ]
    table, sink = pa.Table.from_pylist(docs), pa.BufferOutputStream()
    if kind == "parquet":
        parquet.write_table(table, sink)
    else:
        with ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
    ours, theirs = both(tmp_path, kind, f"a.{kind}", sink.getvalue().to_pybytes())
    assert ours == theirs


def test_folder(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    (folder / "data").mkdir(parents=True)
    for n, name in enumerate(
        ["train-00000-of-00002", "train-00001-of-00002", "validation-00000-of-00001", "test-00000-of-00001"]
    ):
        (folder / "data" / f"{name}.jsonl").write_bytes(lines({"n": n}))
    theirs = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    ours = load_splits({"dataset_path": str(folder)})
    assert {name: list(docs) for name, docs in ours.items()} == {name: list(docs) for name, docs in theirs.items()}


def test_datasets_stay_datasets_for_process_docs() -> None:
    made = datasets.DatasetDict({"test": datasets.Dataset.from_list([{"a": 1}])})
    docs = load_splits({"task": "t", "custom_dataset": lambda: made})["test"]
    assert docs is made["test"]
    assert list(docs) == [{"a": 1}]
