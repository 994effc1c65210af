"""A key that comes twice in an object of JSON is a located error, and never the last value without a word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from small_tasks import evalcore

from evalcore.core.records.errors import EvalError
from evalcore.shell.data.doubled_keys import decode_once, may_double, refuse_doubled

TASK = {
    "task": "t",
    "output_type": "generate_until",
    "doc_to_text": "{{q}}",
    "doc_to_target": "{{a}}",
    "metric_list": [{"metric": "exact_match"}],
    "dataset_path": "json",
    "test_split": "test",
}


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("d.jsonl", '{"q": "1?", "a": "1"}\n{"q": "2?", "a": "2", "a": "3"}\n', "d.jsonl:2"),
        ("d.json", '[\n{"q": "1?", "a": "1"},\n{"q": "2?", "a": "2",\n "a": "3"}\n]', "d.json:4"),
        ("d.json", '{"data": [{"q": "2?", "a": "x: y", "a" : "3"}]}', "d.json"),
    ],
)
def test_in_the_documents_of_a_task(tmp_path: Path, name: str, text: str, place: str) -> None:
    (tmp_path / name).write_text(text)
    task = {**TASK, "dataset_kwargs": {"data_files": {"test": name}}}
    (tmp_path / "t.yaml").write_text(yaml.safe_dump(task))
    done = evalcore(tmp_path, "run", "--model", "dummy", "--tasks", "t.yaml", "--output_path", "out")
    assert done.returncode == 2
    assert f"{place}: the key 'a' comes twice in one object" in done.stderr


def test_in_a_table(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"g": "1", "r": "1"}\n{"g": "2", "r": "3", "r": "2"}\n')
    done = evalcore(tmp_path, "score", "t.jsonl", "--answer", "r", "--gold", "g", "--metric", "exact_match")
    assert done.returncode == 2
    assert "t.jsonl:2" in done.stdout + done.stderr
    assert "the key 'r' comes twice in one object" in done.stdout + done.stderr


@pytest.mark.parametrize(
    "key",
    [
        "resps",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("doc_id", "target", "arguments", "filter", "doc")),
    ],
)
def test_in_a_row_of_a_log(tmp_path: Path, key: str) -> None:
    def write(number: int) -> str:
        row = {
            "doc_id": number,
            "doc": {"q": "?"},
            "target": "1",
            "arguments": {"gen_args_0": {"arg_0": f"Q{number}", "arg_1": {"until": []}}},
            "resps": [["1"]],
            "filtered_resps": ["1"],
            "filter": "none",
            "metrics": ["exact_match"],
            "exact_match": 1.0,
        }
        line = json.dumps(row)
        return line if number != 2 else f'{{"{key}": {json.dumps(row[key])}, ' + line[1:]

    (tmp_path / "samples_t.jsonl").write_text("".join(write(number) + "\n" for number in range(4)))
    done = evalcore(tmp_path, "score", "samples_t.jsonl", "--metric", "exact_match")
    assert done.returncode == 2
    assert "samples_t.jsonl:3" in done.stdout + done.stderr
    assert f"the key '{key}' comes twice in one object" in done.stdout + done.stderr


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(':"\\a{}[] ,\n', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(':"ab\\', max_size=3), inner, max_size=3),
    max_leaves=9,
)


@given(JSON, st.sampled_from([None, 1]), st.booleans())
def test_what_has_every_key_once_is_read(value: object, indent: int | None, ascii: bool) -> None:
    line = json.dumps(value, indent=indent, ensure_ascii=ascii).encode()
    assert decode_once(line, "") == value
    assert not may_double(line, value)


@given(st.lists(JSON, max_size=2), st.dictionaries(st.text(':"ab\\', max_size=3), JSON, min_size=1, max_size=3))
def test_what_has_a_key_twice_is_refused_at_any_depth(around: list[object], once: dict[str, object]) -> None:
    again = json.dumps(next(iter(once)))
    inner = json.dumps(once)[:-1] + f", {again} : 0}}"
    for line in (inner, json.dumps([*around, {"x": 0}]).replace('{"x": 0}', inner)):
        with pytest.raises(EvalError, match="comes twice in one object"):
            decode_once(line.encode(), "")
        with pytest.raises(EvalError, match="comes twice in one object"):
            refuse_doubled(line.encode())
