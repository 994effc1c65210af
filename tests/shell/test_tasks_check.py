"""Lists, shows and the linter: plain data, everything with its place."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from evalcore import EvalError
from evalcore.shell.tasks.description import show_name
from evalcore.shell.tasks.library.cache import build_index
from evalcore.shell.tasks.library.entries import list_entries
from evalcore.shell.tasks.linter import check_tasks

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
        assert json.loads(json.dumps(show_name(known, name), allow_nan=False))["name"] == name
    assert show_name(known, "t")["tasks"] == ["a", "b"]
    assert show_name(known, "h")["tree"]["task"][0]["task"] == [{"task": "a"}, {"task": "b"}]
    with pytest.raises(EvalError, match="did you mean 'c_one'"):
        show_name(known, "c_onee")


def test_the_linter_tells_everything_with_its_place(folder):
    (folder / "bad.yaml").write_text(
        "task: bad\ndataset_path: json\ndoc_to_txt: x\ndoc_to_text: '{{ open'\nprocess_docs: !function nowhere_at_all.f\n"
        "fewshot_config:\n  doc_to_text: '{% if %}'\n"
    )
    (folder / "dup.yaml").write_text("task: a\n")
    (folder / "broken.yaml").write_text("task: [\n")
    (folder / "missing.yaml").write_text("task: m\ninclude: nope_yaml\n")
    (folder / "lost.yaml").write_text("group: lost\ntask: [aa]\n")
    found = check_tasks(build_index([folder]))
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
    assert {one.kind for one in check_tasks(build_index([folder]), ["lost"])} == {"unknown_child"}
    assert {one.kind for one in check_tasks(build_index([folder]), ["bad"])} == {"unknown_key", "template", "function"}


START = "task: own\ndataset_path: json\noutput_type: generate_until\ndoc_to_text: '{{q}}'\ndoc_to_target: a\n"
UNREADY = {
    "generation_kwargs: {max_gen_toks: -5}": "expected max_gen_toks to be a positive integer, got -5",
    "metric_list: [{metric: exact_mtch}]": "unknown metric 'exact_mtch'; did you mean 'exact_match'?",
    "metric_list: exact_match": "metric_list",
    "filter_list: [{name: f, filter: [{function: regx}]}]": "unknown filter 'regx'; did you mean 'regex'?",
    "filter_list: [{name: f, filter: [{function: regex, regex_pattern: '('}]}]": "expected a regular expression, got '('",
    "num_fewshot: five": "num_fewshot",
    "generation_kwargs: [a]": "generation_kwargs",
    "metric_list: [{metric: exact_match, aggregation: men}]": "'mean'",
}


@pytest.mark.parametrize("line", UNREADY)
def test_tasks_that_would_not_start_are_found(tmp_path, line):
    (tmp_path / "own.yaml").write_text(START + line + "\n")
    (found,) = check_tasks(build_index([tmp_path]))
    assert (found.kind, found.level, found.where) == ("task", "error", f"{tmp_path}/own.yaml:1")
    assert found.message.startswith("own: ")
    assert UNREADY[line] in found.message


@pytest.mark.parametrize(
    ("output_type", "told"),
    [
        ("generate", "unknown output_type 'generate'; did you mean 'generate_until'?"),
        ("multiple_choice", "expected doc_to_choice, which multiple_choice needs"),
    ],
)
def test_output_types_that_would_not_start_are_found(tmp_path, output_type, told):
    (tmp_path / "own.yaml").write_text(START.replace("generate_until", output_type))
    (found,) = check_tasks(build_index([tmp_path]))
    assert (found.kind, found.level, found.where) == ("task", "error", f"{tmp_path}/own.yaml:1")
    assert told in found.message


def test_what_an_include_gives_counts_and_code_is_not_run(tmp_path):
    (tmp_path / "_base").write_text("metric_list: [{metric: acc, aggregation: mean}]\ndoc_to_choice: [a, b]\n")
    ready = "\n".join(
        [
            "# a comment",
            "task: own",
            "include: _base",
            "dataset_path: json",
            "output_type: multiple_choice",
            "doc_to_text: !function code.ask",
            "doc_to_target: a",
        ]
    )
    (tmp_path / "own.yaml").write_text(ready)
    (tmp_path / "code.py").write_text("raise SystemExit\ndef ask(doc): ...\n")
    assert check_tasks(build_index([tmp_path])) == ()
    (tmp_path / "_base").write_text("metric_list: [{metric: accc}]\ndoc_to_choice: [a, b]\n")
    (found,) = check_tasks(build_index([tmp_path]))
    assert (found.kind, found.where) == ("task", f"{tmp_path}/own.yaml:2")
    assert "did you mean 'acc'" in found.message


def test_ordinary_tasks_would_start(tmp_path):
    (tmp_path / "own.yaml").write_text(START + "repeats: 2\nrepeat_cfg: {reducer: [mean, pass@2]}\n")
    (tmp_path / "bare.yaml").write_text("task: bare\ndataset_path: json\n")
    assert check_tasks(build_index([tmp_path])) == ()


def test_the_command_fails_on_them(tmp_path, capsys):
    from evalcore.shell.cli import main

    (tmp_path / "own.yaml").write_text(START + "metric_list: [{metric: exact_mtch}]\n")
    assert main(["tasks", "check", str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert "own.yaml:1" in told.out + told.err


def test_an_unknown_child_is_not_said_to_be_the_group_itself(tmp_path):
    (tmp_path / "g.yaml").write_text("group: b16\ntask: [b1]\n")
    (found,) = check_tasks(build_index([tmp_path]), ["b16"])
    assert found.message == "unknown task or group 'b1' in group 'b16'"


def test_shows_and_hints_do_not_depend_on_the_hash_seed(tmp_path):
    (tmp_path / "a.yaml").write_text("task: a\ndataset_path: json\n")
    (tmp_path / "g.yaml").write_text(
        "group: g\ntask: [a]\naggregate_metric_list: [{metric: acc}]\nmetadata: {z: 1, version: 2, y: {q: 1, p: 2}, x: 3}\n"
    )
    (tmp_path / "near.yaml").write_text("task: near\ndataset_path: json\ndoc_to: x\n")
    code = (
        "import json, sys\nfrom evalcore.shell.tasks.description import show_name\n"
        "from evalcore.shell.tasks.library.cache import build_index\n"
        "from evalcore.shell.tasks.linter import check_tasks\n"
        "index = build_index([sys.argv[1]])\n"
        "print(json.dumps(show_name(index, 'g')), [one.message for one in check_tasks(index)])"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in range(4)
    }
    assert len(texts) == 1
