"""Lists, shows and the linter: plain data, everything with its place."""

import json
from pathlib import Path

import msgspec
import pytest

from evalcore import EvalError
from evalcore.shell.tasks import build_index, check, list_entries, show

TASKS = {
    "a.yaml": "task: a\ntag: [t]\ndataset_path: json\nmetadata: {day: 2024-02-29, limit: .inf}\n",
    "b.yaml": "task: b\ntag: t\ndataset_path: json\n",
    "c_one.yaml": "task: c_one\ndataset_path: json\nprocess_docs: !function nowhere_at_all.f\n",
    "c_two.yaml": "task: c_two\ndataset_path: json\n",
    "g.yaml": "group: g\ntask: [a, b]\n",
    "h.yaml": "group: h\ntask:\n  - g\n  - task: c_two\n    num_fewshot: 5\n",
    "broken_group.yaml": "group: broken_group\ntask: [{no: name}]\n",
}


@pytest.fixture
def folder(tmp_path) -> Path:
    for name, text in TASKS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def known(folder):
    return build_index([folder])


def test_lists_and_shows_are_plain_data(known):
    assert [one["name"] for one in list_entries(known, "C_")] == ["c_one", "c_two"]
    assert [one["name"] for one in list_entries(known, kinds=["tag"])] == ["t"]
    assert len(list_entries(known)) == len(known.entries)
    for name in known.entries:
        assert json.loads(json.dumps(show(known, name), allow_nan=False))["name"] == name
    assert show(known, "t")["tasks"] == ["a", "b"]
    assert show(known, "h")["tree"]["task"][0]["task"] == [{"task": "a"}, {"task": "b"}]
    with pytest.raises(EvalError, match="did you mean 'c_one'"):
        show(known, "c_onee")


def test_the_linter_tells_everything_with_its_place(folder):
    (folder / "bad.yaml").write_text(
        "task: bad\ndataset_path: json\ndoc_to_txt: x\ndoc_to_text: '{{ open'\nprocess_docs: !function nowhere_at_all.f\n"
        "fewshot_config:\n  doc_to_text: '{% if %}'\n"
    )
    (folder / "dup.yaml").write_text("task: a\n")
    (folder / "broken.yaml").write_text("task: [\n")
    (folder / "missing.yaml").write_text("task: m\ninclude: nope_yaml\n")
    (folder / "lost.yaml").write_text("group: lost\ntask: [aa]\n")
    found = check(build_index([folder]))
    places = {(one.kind, one.where.removeprefix(f"{folder}/")) for one in found}
    assert {
        ("unknown_key", "bad.yaml:3"),
        ("template", "bad.yaml:4"),
        ("function", "bad.yaml:5"),
        ("template", "bad.yaml:6"),
        ("duplicate_name", "dup.yaml:1"),
        ("unreadable", "broken.yaml:2"),
        ("include", "missing.yaml:2"),
        ("unknown_child", "lost.yaml:1"),
    } <= places
    assert "did you mean 'doc_to_text'" in next(one.message for one in found if one.where.endswith("bad.yaml:3"))
    assert json.dumps(msgspec.to_builtins(found))
    assert {one.kind for one in check(build_index([folder]), ["lost"])} == {"unknown_child"}
    assert {one.kind for one in check(build_index([folder]), ["bad"])} == {"unknown_key", "template", "function"}
