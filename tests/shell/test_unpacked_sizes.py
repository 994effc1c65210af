"""Small files that would become huge: refused while they are read, by every reader, with what to do."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import pytest
import yaml
from small_tasks import write_tasks

from evalcore.core.records.errors import EvalError
from evalcore.shell.cli import main
from evalcore.shell.data.readers import read_files
from evalcore.shell.data.unpack import RAISED
from evalcore.shell.prompts.templates.compile import compile_template

ROW = b'{"q": "2 + 2 =", "a": "4"}\n'


def run_data(folder: Path, file: Path) -> int:
    """A run of one task on this file."""
    task = {"task": "t", "test_split": "test", "doc_to_text": "{{q}}", "doc_to_target": "{{a}}", "dataset_path": "json"}
    config = {"model": "dummy", "tasks": [task], "data": {"t": str(file)}, "output_path": str(folder / "out")}
    (folder / "run.yaml").write_text(yaml.safe_dump(config))
    return main(["run", str(folder / "run.yaml"), "--quiet", "--overwrite"])


def pack_newlines(name: str) -> bytes:
    """One row and 900 MB of newlines, in parts that are packed once."""
    part = b"\n" * 10_000_000
    if name.endswith(".gz"):
        return gzip.compress(ROW) + 90 * gzip.compress(part)
    if name.endswith(".xz"):
        return lzma.compress(ROW) + 90 * lzma.compress(part, preset=0)
    zstandard = pytest.importorskip("zstandard")
    return bytes(zstandard.compress(ROW) + 90 * zstandard.compress(part))


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.txt.gz", "a.csv.gz", "a.jsonl.xz", "a.jsonl.zst"])
def test_900_mb_of_newlines_are_not_read(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_bytes(pack_newlines(name))
    assert run_data(tmp_path, tmp_path / name) == 2
    said = capsys.readouterr().err
    assert f"{name}: unpacks to more than 268,435,456 bytes, 200 times its size" in said
    assert f"set the environment variable {RAISED} to more" in said


def test_the_environment_raises_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalcore.shell.data.unpack.FREE_BYTES", 1000)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(ROW + b"\n" * 1000))
    with pytest.raises(EvalError, match="unpacks to more than"):
        read_files([path], {})
    monkeypatch.setenv(RAISED, "1_000_000")
    assert len(read_files([path], {})) == 1
    monkeypatch.setenv(RAISED, "much")
    with pytest.raises(EvalError, match=f"expected a number of bytes in the environment variable {RAISED}, got 'much'"):
        read_files([path], {})


def make_tables() -> dict[str, object]:
    arrow = pytest.importorskip("pyarrow")
    long = "x" * 10_000
    return {
        "one long text in every row": arrow.table({"q": [long] * 1000}),
        "inside lists": arrow.table({"q": [[long, "b"]] * 1000}),
        "inside objects": arrow.table({"q": [{"a": [{"b": long}]}] * 1000}),
        "one number in every row": arrow.table({"q": arrow.repeat(7, 100_000)}),
        "a long list": arrow.table({"q": arrow.ListArray.from_arrays([0, 400_000], arrow.repeat(True, 400_000))}),
        "packed pages": arrow.table({"q": ["x" * 10_000_000]}),
    }


def test_a_parquet_file_is_weighed_before_it_is_unfolded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("evalcore.shell.data.unpack.FREE_BYTES", 1 << 20)
    monkeypatch.setattr("evalcore.shell.data.unpack.MOST_FOLD", 2)
    for name, table in make_tables().items():
        path = tmp_path / "a.parquet"
        parquet.write_table(table, path, compression="zstd")
        assert path.stat().st_size < 100_000, name
        assert run_data(tmp_path, path) == 2, name
        assert "a.parquet: unpacks to more than" in capsys.readouterr().err, name
        assert main(["score", str(path), "--answer", "q", "--gold", "q"]) != 0, name
        assert "unpacks to more than" in capsys.readouterr().err, name


def test_what_parquet_holds_is_read_as_before(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [
        {"q": None if n % 7 == 0 else f"q{n % 5}", "l": [f"a{n}", None], "s": {"b": b"\xff", "d": [{"e": "f"}]}, "n": n}
        for n in range(20_000)
    ]
    table = arrow.Table.from_pylist(rows).append_column(
        "m", arrow.array([[("k", "v")]] * len(rows), arrow.map_(arrow.string(), arrow.large_string()))
    )
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=7000)
    assert read_files([tmp_path / "a.parquet"], {}) == table.to_pylist()
    assert read_files([tmp_path / "a.parquet"], {"columns": ["n", "q"]}) == table.select(["n", "q"]).to_pylist()


def test_a_yaml_file_of_500_000_keys_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "big.yaml").write_text("".join(f"k{n}: v{n}\n" for n in range(500_000)))
    assert main(["run", str(tmp_path / "big.yaml")]) == 2
    assert "big.yaml:100000: expected at most 200,000 keys and values" in capsys.readouterr().err
    (tmp_path / "flow.yaml").write_text(f"a: [{'b,' * 300_000}]")
    assert main(["run", str(tmp_path / "flow.yaml")]) == 2
    assert "flow.yaml:1: expected at most 200,000 keys and values" in capsys.readouterr().err


def test_a_rendered_text_is_at_most_a_megabyte_longer_than_its_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "{% for n in range(1100) %}{{q}}{% endfor %}"
    write_tasks(tmp_path / "tasks")
    task = {"task": "t", "test_split": "test", "doc_to_text": text, "doc_to_target": "x", "dataset_path": "json"}
    (tmp_path / "a.jsonl").write_text(json.dumps({"q": "x" * 1000}) + "\n")
    config = {"model": "dummy", "tasks": [task], "data": {"t": "a.jsonl"}, "output_path": str(tmp_path / "out")}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
    assert main(["run", str(tmp_path / "run.yaml"), "--quiet"]) == 2
    assert "expected a text of at most 1001007 characters" in capsys.readouterr().err


@pytest.mark.parametrize(
    "template", ["{{a}}" * 30, "{{[a,a,a,a,a,a,a,a,a,a,a,a]}}", "{% if a %}{{a}}{{a}}{{a}}{% endif %}"]
)
def test_every_form_of_template_has_that_limit(template: str) -> None:
    with pytest.raises(EvalError, match="expected a text of at most"):
        compile_template(template)({"a": "x" * 900_000})


def test_long_documents_are_rendered_whole() -> None:
    assert len(compile_template("Read: {{a}}\nAnswer:")({"a": "x" * 5_000_000})) == 5_000_014
    assert len(compile_template("{{a}}")({"a": "x" * 5_000_000})) == 5_000_000
    assert len(compile_template("{{a|trim}}!")({"a": "x" * 5_000_000})) == 5_000_001
