"""Recorded answers of every kind, told apart by content and read as documents, golds, choices and replies."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from evalcore import EvalError
from evalcore.core.records.frozen_dict import thaw_dict
from evalcore.core.records.request import Failure, Generate, Likelihood, LogLikelihood
from evalcore.shell.logs.lm_eval import results
from evalcore.shell.logs.lm_eval.log import LMMS, SAMPLES
from evalcore.shell.logs.lm_eval.pools import Pages
from evalcore.shell.logs.lm_eval.results import list_tasks
from evalcore.shell.logs.log import Logged, LogTask, Problem
from evalcore.shell.logs.open import open_logs
from evalcore.shell.logs.tables.column_map import ColumnMap

STAMP = "2025-07-21T14-41-47.889425"


def generation(doc: int, *replies: object, name: str | None = "none", **more: object) -> dict[str, object]:
    """A row as lm-eval writes it for a generation task."""
    row = {
        "doc_id": doc,
        "doc": {"q": f"q{doc}", "a": str(doc)},
        "target": str(doc),
        "arguments": {"gen_args_0": {"arg_0": f"q{doc}", "arg_1": {"until": ["\n"]}}},
        "resps": [list(replies or [str(doc)])],
        "filtered_resps": [str(doc)],
        **({"filter": name, "metrics": ["exact_match"]} if name is not None else {}),
        "exact_match": 1.0,
        **more,
    }
    return {key: value for key, value in row.items() if value is not None}


def write(path: Path, rows: list[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, "utf-8")
    return path


def rows_of(task: LogTask) -> list[Logged]:
    found = list(task.rows())
    assert all(isinstance(one, Logged) for one in found)
    return found


def only(path: Path, **named: object) -> list[Logged]:
    [task] = open_logs([path], **named)
    return rows_of(task)


# --- sample logs ------------------------------------------------------------------------------------------------------


def test_a_log_is_told_by_its_content(tmp_path: Path) -> None:
    path = write(tmp_path / "whatever.txt", [generation(0), generation(1)])
    [task] = open_logs([path])
    assert (task.output_type, task.reader, task.path) == ("generate_until", SAMPLES, path)
    first, second = rows_of(task)
    assert first.requests == (Generate("q0", {"until": ["\n"]}),)
    assert (second.doc_id, second.gold, second.replies, second.line) == (1, "1", (("1",),), 2)
    assert json.loads(second.doc) == {"q": "q1", "a": "1"}
    assert rows_of(task) == [first, second]  # again and again


def test_each_document_comes_once_whatever_its_filters(tmp_path: Path) -> None:
    named = [generation(doc, name=name) for name in ("strict", "loose") for doc in (0, 1)]
    assert [one.doc_id for one in only(write(tmp_path / "named.jsonl", named))] == [0, 1]
    unnamed = [generation(doc, name=None, exact_match=score) for score in (1, 0) for doc in (0, 1)]
    found = only(write(tmp_path / "unnamed.jsonl", unnamed), scores=True)
    assert [one.doc_id for one in found] == [0, 1]
    assert found[0].scores == {"exact_match,none": 1, "exact_match,filter 2": 0}


@pytest.mark.parametrize(
    ("name", "results"),
    [
        (f"samples_gsm8k_{STAMP}.jsonl", f"results_{STAMP}.json"),
        ("samples_gsm8k.jsonl", "results.json"),
        ("pretrained__org__model_gsm8k.jsonl", "results.json"),
        ("20250102_0304_samples_gsm8k.jsonl", "20250102_0304_results.json"),
    ],
)
def test_the_results_beside_a_log_name_it_and_its_filters(tmp_path: Path, name: str, results: str) -> None:
    rows = [generation(doc, name=None) for _ in range(2) for doc in (0, 1)]
    write(tmp_path / name, rows)
    filters = [{"name": "strict", "filter": []}, {"name": "loose", "filter": []}]
    config = {"task": "gsm8k", "output_type": "greedy_until", "filter_list": filters}
    told = {"results": {"gsm8k": {"exact_match,strict": 1.0}}, "configs": {"gsm8k": config}}
    (tmp_path / results).write_text(json.dumps(told, indent=1))
    for given in (tmp_path, tmp_path / name, tmp_path / results):
        [task] = open_logs([given], scores=True)
        assert (task.name, task.output_type, thaw_dict(task.config)) == ("gsm8k", "generate_until", config)
        assert set(rows_of(task)[0].kept) == {"strict", "loose"}


def test_results_of_another_time_are_not_those_of_a_log(tmp_path: Path) -> None:
    write(tmp_path / f"samples_gsm8k_{STAMP}.jsonl", [generation(0)])
    (tmp_path / "results_2024-01-01T00-00-00.000000.json").write_text(json.dumps({"results": {"gsm8k": {}}}))
    [task] = open_logs([tmp_path])
    assert (task.name, task.results) == ("gsm8k", {})


def test_shards_are_one_task_and_other_logs_of_its_name_are_named_apart(tmp_path: Path) -> None:
    first = write(tmp_path / "a" / "samples_t.jsonl", [generation(doc) for doc in (0, 2)])
    write(tmp_path / "b" / "samples_t.jsonl.gz", [generation(doc) for doc in (1, 3)])
    for folder in "abc":
        write(tmp_path / folder / "results.json", [{"results": {"t": {}}, "model_name": "m"}])
    [task] = open_logs([tmp_path])
    assert (task.name, task.path) == ("t", first)
    assert [one.doc_id for one in rows_of(task)] == [0, 2, 1, 3]
    write(tmp_path / "c" / "samples_t.jsonl", [generation(doc) for doc in (5, 3)])
    tasks = open_logs([str(tmp_path / "*" / "samples_*")])
    assert [task.name for task in tasks] == [
        "t (a/samples_t.jsonl)",
        "t (b/samples_t.jsonl.gz)",
        "t (c/samples_t.jsonl)",
    ]
    assert [len(rows_of(task)) for task in tasks] == [2, 2, 2]


def test_shards_are_of_one_model(tmp_path: Path) -> None:
    for number, model in enumerate("aabb"):
        folder = tmp_path / f"{model}{number}"
        write(folder / "samples_t.jsonl", [generation(number)])
        told = {"results": {"t": {}}, "configs": {"t": {"repeats": 1}}, "model_name": model}
        (folder / "results.json").write_text(json.dumps(told))
    first, second = open_logs([tmp_path])
    assert [one.doc_id for one in rows_of(first)] == [0, 1]
    assert [(one.doc_id, one.path) for one in rows_of(second)] == [(at, second.paths[at - 2]) for at in (2, 3)]
    assert [path.parent.name for path in (*first.paths, *second.paths)] == ["a0", "a1", "b2", "b3"]


def test_a_log_without_shards_has_its_path_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", [{"said": "a"}])
    assert open_logs([path], mapping=ColumnMap(answer="said"))[0].paths == (path,)


def test_document_numbers_far_apart_take_little_memory() -> None:
    pages = Pages()
    tracemalloc.start()
    for key in range(5000):
        pages.put(key << 20, key + 1)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert size < 5000 * 400
    for key in range(-100, 100):
        pages.put(key, key)
        pages.put(key, key + 1)
    assert [pages.get(key) for key in (-100, 99, 7 << 20, 8 << 20, 101)] == [-99, 100, 8, 9, 0]
    assert len(dict(pages.items())) == 5000 + 198


def test_many_tasks_of_one_run_are_placed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"task_{number}" for number in range(200)]
    for name in names:
        write(tmp_path / f"samples_{name}.jsonl", [generation(0)])
    (tmp_path / "results.json").write_text(json.dumps({"results": {name: {} for name in names}}))
    listed = []
    monkeypatch.setattr(results, "list_tasks", lambda results: listed.append(1) or list_tasks(results))
    assert len(open_logs([tmp_path])) == 200
    assert len(listed) == 1


def test_many_files_in_one_call(tmp_path: Path) -> None:
    for number in range(300):
        write(tmp_path / f"m{number % 7}" / f"samples_t{number}.jsonl", [generation(0), generation(1)])
    tasks = open_logs([tmp_path])
    assert len(tasks) == 300
    assert sum(len(rows_of(task)) for task in tasks) == 600
    assert len(open_logs([tmp_path, str(tmp_path / "*" / "*.jsonl")])) == 300  # each file once


def test_files_that_are_no_logs_are_told_of(tmp_path: Path) -> None:
    write(tmp_path / "samples_t.jsonl", [generation(0)])
    write(tmp_path / "data.jsonl", [{"q": 1}])
    (tmp_path / "config.yaml").write_text("model: x")
    [task] = open_logs([tmp_path])
    assert task.warnings == (f"1 file is no log, and is not read: {tmp_path / 'data.jsonl'}",)


def test_evalcore_says_why_a_document_failed_and_what_it_belongs_to(tmp_path: Path) -> None:
    own = {"unscored": {"exact_match": "failed: timed out"}, "cluster": "p7"}
    rows = [generation(0, evalcore={"cluster": 3}), generation(1, None, evalcore=own)]
    found = only(write(tmp_path / "samples_t.jsonl", rows))
    assert [one.cluster for one in found] == [3, "p7"]
    assert found[1].replies == ((Failure("timed out"),),)


def test_numbers_that_json_has_no_words_for(tmp_path: Path) -> None:
    row = generation(0, evalcore={"nonfinite": {"doc.x": "nan"}})
    row["doc"] = {"x": None}
    assert b"NaN" in only(write(tmp_path / "ours.jsonl", [row]))[0].doc
    plain = generation(0)
    plain["doc"] = {"x": float("-inf"), "s": "\ud83d"}
    found = only(write(tmp_path / "theirs.jsonl", [plain]))[0]
    assert json.loads(found.doc) == {"x": float("-inf"), "s": "\ud83d"}


def choice(doc: int, *, target: object, ends: list[str], values: list[float], **more: object) -> dict[str, object]:
    return {
        "doc_id": doc,
        "doc": {"q": "?"},
        "target": target,
        "arguments": [["Q", end] for end in ends],
        "resps": [[[value, False]] for value in values],
        **more,
    }


@pytest.mark.parametrize(
    ("target", "gold"), [("1", 1), (1, 1), ("no", 1), (" no", 1), ("[0, 1]", (0, 1)), (["no"], (1,)), ("7", "7")]
)
def test_golds_of_choices(tmp_path: Path, target: object, gold: object) -> None:
    row = choice(0, target=target, ends=[" yes", " no"], values=[-1.0, -2.0])
    [one] = only(write(tmp_path / "x.jsonl", [row]))
    assert (one.gold, one.choices) == (gold, ("yes", "no"))
    assert one.requests == (LogLikelihood("Q", " yes"), LogLikelihood("Q", " no"))
    assert one.replies == ((Likelihood(-1.0),), (Likelihood(-2.0),))


NUMBERS = ["10", "2", "1"]


@pytest.mark.parametrize(("target", "gold"), [("2", 1), ("10", 0), ("1", 2), (2, 2), (1, 1)])
def test_a_text_is_the_choice_that_it_equals_before_it_is_an_index(tmp_path: Path, target: object, gold: int) -> None:
    row = {"lls": [-1, -2, -3], "options": NUMBERS, "gold": target}
    mapping = ColumnMap(loglikelihoods="lls", choices="options", gold="gold")
    assert only(write(tmp_path / "t.jsonl", [row]), mapping=mapping)[0].gold == gold
    logged = choice(0, target=target, ends=[f" {one}" for one in NUMBERS], values=[-1.0, -2.0, -3.0])
    assert only(write(tmp_path / "s.jsonl", [logged]))[0].gold == gold


@pytest.mark.parametrize(
    ("values", "acc", "gold"), [([-2, -3, -1], 1.0, 2), ([-2, -1, -3], 0.0, 2), ([-2, -1, -3], 1.0, 1)]
)
def test_the_accuracy_tells_an_index_from_a_choice(tmp_path: Path, values: list[float], acc: float, gold: int) -> None:
    row = choice(0, target="2", ends=[f" {one}" for one in NUMBERS], values=values, acc=acc)
    assert only(write(tmp_path / "s.jsonl", [row]))[0].gold == gold


def test_a_generated_list_may_be_meant_as_it_is_written(tmp_path: Path) -> None:
    assert only(write(tmp_path / "x.jsonl", [generation(0, target="[1, 2]")]))[0].gold == ("1", "2", "[1, 2]")


def test_a_template_of_a_log_with_loops_is_not_rendered(tmp_path: Path) -> None:
    loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}1"
    config = {"output_type": "generate_until", "doc_to_target": loops}
    write(tmp_path / "samples_t.jsonl", [generation(0)])
    (tmp_path / "results.json").write_text(json.dumps({"results": {"t": {}}, "configs": {"t": config}}))
    assert only(tmp_path)[0].gold == "0"


def test_a_log_of_2023_has_a_request_for_each_reply(tmp_path: Path) -> None:
    row = {**choice(0, target=0, ends=[" yes"], values=[-1.0, -2.0]), "arguments": [["Q", " yes"]]}
    [bare] = only(write(tmp_path / "bare.jsonl", [row]))
    assert bare.requests == (LogLikelihood("Q", " yes"), LogLikelihood("Q", ""))
    config = {"output_type": "multiple_choice", "doc_to_choice": ["yes", "no"]}
    write(tmp_path / "r" / "samples_t.jsonl", [row])
    (tmp_path / "r" / "results.json").write_text(json.dumps({"results": {"t": {}}, "configs": {"t": config}}))
    assert only(tmp_path / "r")[0].requests == (LogLikelihood("Q", " yes"), LogLikelihood("Q", " no"))


def test_a_config_that_is_code_is_never_run(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    code = f"def f(doc):\n    open({str(touched)!r}, 'w')\n"
    danger = "{{ ''.__class__.__mro__[1].__subclasses__() }}"
    rows = [
        choice(doc, target=target, ends=[" yes", " no"], values=[-1.0, -2.0]) for doc, target in ((0, "no"), (1, "1"))
    ]
    write(tmp_path / "samples_t.jsonl", rows)
    for target, choices in ((code, code), (danger, danger), ("<function f>", ["yes", "no"])):
        config = {"output_type": "multiple_choice", "doc_to_target": target, "doc_to_choice": choices}
        (tmp_path / "results.json").write_text(json.dumps({"results": {"t": {}}, "configs": {"t": config}}))
        assert [(one.gold, one.choices) for one in only(tmp_path)] == [(1, ("yes", "no"))] * 2
    assert not touched.exists()


def test_padding_of_processes_is_no_repeat(tmp_path: Path) -> None:
    row = choice(0, target=0, ends=["a", "b"], values=[-1.0, -2.0])
    row["resps"] = [[[-1.0, True]], [[-2.0, False]] * 4]
    assert [len(one) for one in only(write(tmp_path / "x.jsonl", [row]))[0].replies] == [1, 1]


def test_more_than_ten_choices_stay_in_order(tmp_path: Path) -> None:
    ends = [f" {letter}" for letter in "abcdefghijkl"]
    row = choice(0, target="11", ends=ends, values=[-float(i) for i in range(12)])
    named = {f"gen_args_{i}": {"arg_0": "Q", "arg_1": end} for i, end in enumerate(ends)}
    row["arguments"] = dict(sorted(named.items()))  # as a writer with sorted keys has them: 0, 1, 10, 11, 2
    [one] = only(write(tmp_path / "x.jsonl", [row]))
    assert one.choices == tuple("abcdefghijkl")
    assert one.gold == 11


# --- lmms-eval ----------------------------------------------------------------------------------------------------------


def test_lmms_rows_without_arguments_document_and_replies(tmp_path: Path) -> None:
    rows = [
        {"doc_id": 0, "target": "a", "filtered_resps": ["A cat"], "doc_hash": "x", "input": "What?", "vqa": {"s": 1}},
        {"doc_id": 1, "target": "b", "resps": [["B dog"]], "filtered_resps": ["dog"], "input": "Who?", "vqa": {"s": 0}},
        {"doc_id": 2, "target": "c", "filtered_resps": [["x", "y"]], "input": ["Two?"], "submission": {"id": 2}},
    ]
    path = write(tmp_path / "20250102_0304_samples_mme.jsonl", rows)
    [task] = open_logs([path], scores=True)
    assert (task.name, task.reader, task.output_type) == ("mme", SAMPLES, "generate_until")
    found = rows_of(task)
    assert [one.replies for one in found] == [(("A cat",),), (("B dog",),), (("x", "y"),)]
    assert [one.requests[0].prompt for one in found] == ["What?", "Who?", "Two?"]
    assert [one.gold for one in found] == ["a", "b", "c"]
    assert found[0].scores == {"vqa,none": {"s": 1}}
    assert found[2].scores == {}


def test_lmms_likelihoods(tmp_path: Path) -> None:
    row = {
        "doc_id": 0,
        "target": "1",
        "input": "Q",
        "resps": [[["-1.5", "True"]], [["-2.5", "False"]]],
        "filtered_resps": [["-1.5", "True"], ["-2.5", "False"]],
    }
    [task] = open_logs([write(tmp_path / "x.jsonl", [row])])
    assert task.output_type == "multiple_choice"
    assert rows_of(task)[0].replies == ((Likelihood(-1.5, True),), (Likelihood(-2.5, False),))


def test_lmms_before_2025_is_one_object(tmp_path: Path) -> None:
    logs = [
        {"doc_id": 0, "target": "a", "doc": {"q": 1}, "arguments": ["Q", {"until": []}, 0, "mme", "test"],
         "resps": [["A"]], "filtered_resps": ["A"], "score": 1}
    ]  # fmt: skip
    whole = {"args": {"model": "x"}, "model_configs": {"task": "mme", "output_type": "generate_until"}, "logs": logs}
    for indent in (None, 4):
        path = tmp_path / "mme.json"
        path.write_text(json.dumps(whole, indent=indent))
        [task] = open_logs([path], scores=True)
        assert (task.name, task.reader) == ("mme", LMMS)
        [one] = rows_of(task)
        assert (one.replies, one.gold, json.loads(one.doc)) == ((("A",),), "a", {"q": 1})
        assert (one.scores, one.kept) == ({"score,none": 1}, {"none": ["A"]})


# --- plain tables -------------------------------------------------------------------------------------------------------

TABLE = [
    {"n": 0, "said": "4", "right": "4", "ok": True, "unit": "a"},
    {"n": 1, "said": "five", "right": "6", "ok": False, "unit": "a"},
    {"n": 2, "said": '1, "2"\nand 3', "right": "3", "ok": True, "unit": "b"},
]
MAPPED = ColumnMap(answer="said", gold="right", id="n", score="ok", cluster="unit")


def table_files(folder: Path) -> list[Path]:
    """The same table in every kind of file, under names that tell nothing where that is possible."""
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.Table.from_pylist(TABLE)
    pyarrow.parquet.write_table(table, folder / "p.bin")
    with pyarrow.OSFile(str(folder / "f.bin"), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pyarrow.OSFile(str(folder / "s.bin"), "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    for name, separator in (("c.txt", ","), ("t.txt", "\t"), ("d.txt", ";")):
        with open(folder / name, "w", newline="", encoding="utf-8-sig") as file:
            writer = csv.DictWriter(file, list(TABLE[0]), delimiter=separator)
            writer.writeheader()
            writer.writerows(TABLE)
    (folder / "a.json").write_text(json.dumps(TABLE, indent=2))
    (folder / "b.json").write_text(json.dumps(TABLE))
    (folder / "o.json").write_text(json.dumps({"data": TABLE}, indent=1))
    write(folder / "l.log", TABLE)
    write(folder / "z.jsonl.gz", TABLE)
    return sorted(folder.iterdir())


def test_the_same_table_in_every_kind_of_file(tmp_path: Path) -> None:
    files = table_files(tmp_path)
    assert len(files) == 11
    for path in files:
        found = only(path, mapping=MAPPED)
        assert [one.replies for one in found] == [((row["said"],),) for row in TABLE], path
        assert [one.gold for one in found] == ["4", "6", "3"]
        assert [str(one.id) for one in found] == ["0", "1", "2"]
        assert [one.scores for one in found] == [{"ok,none": 1.0}, {"ok,none": 0.0}, {"ok,none": 1.0}]
        assert [one.cluster for one in found] == ["a", "a", "b"]
        assert [one.doc_id for one in found] == [0, 1, 2]
        assert json.loads(found[2].doc)["said"] == TABLE[2]["said"]


def test_log_likelihoods_and_choices_of_a_table(tmp_path: Path) -> None:
    rows = [{"lls": [-1, -2.5], "options": ["no", "yes"], "gold": gold} for gold in (1, "yes", "0", [0, 1])]
    mapping = ColumnMap(loglikelihoods="lls", choices="options", gold="gold")
    found = only(write(tmp_path / "x.jsonl", rows), mapping=mapping)
    assert [one.gold for one in found] == [1, 1, 0, (0, 1)]
    assert found[0].choices == ("no", "yes")
    assert found[0].replies == ((Likelihood(-1.0),), (Likelihood(-2.5),))
    text = tmp_path / "x.csv"
    text.write_text('lls,options,gold\n"[-1, -2.5]","[""no"", ""yes""]",yes\n')
    assert only(text, mapping=mapping)[0].gold == 1
    bare = only(write(tmp_path / "y.jsonl", rows[:1]), mapping=ColumnMap(loglikelihoods="lls", gold="gold"))
    assert (bare[0].gold, bare[0].choices, len(bare[0].requests)) == (1, (), 2)


def test_repeats_as_lists_and_as_rows(tmp_path: Path) -> None:
    listed = [{"said": ["a", "b"], "ok": [True, False], "gold": ["a", "A"]}]
    [one] = only(write(tmp_path / "l.jsonl", listed), mapping=ColumnMap(answer="said", gold="gold", score="ok"))
    assert (one.replies, one.gold, one.scores) == ((("a", "b"),), ("a", "A"), {"ok,none": (1.0, 0.0)})
    rows = [{"id": name, "run": run, "said": f"{name}{run}", "ok": run / 10} for run in (10, 9) for name in "xy"]
    mapping = ColumnMap(answer="said", id="id", repeat="run", score="ok")
    found = only(write(tmp_path / "r.jsonl", rows), mapping=mapping)
    assert [one.replies for one in found] == [(("x9", "x10"),), (("y9", "y10"),)]
    assert found[0].scores == {"ok,none": (0.9, 1.0)}


def test_numbers_and_gaps_of_a_table(tmp_path: Path) -> None:
    mapping = ColumnMap(answer="said", gold="gold", id="n")
    rows = [{"n": -1, "said": 4.0, "gold": 4.0}, {"n": -2, "said": float("nan"), "gold": float("nan")}]
    first, second = only(write(tmp_path / "x.jsonl", rows), mapping=mapping)
    assert (first.gold, first.replies) == ("4", (("4",),))
    assert (second.gold, second.replies) == (None, ((Failure("the table has no answer"),),))
    text = tmp_path / "x.csv"
    text.write_text("n,said,gold\n0,,\n1,a,b\n")
    assert [(one.gold, one.replies) for one in only(text, mapping=mapping)] == [(None, (("",),)), ("b", (("a",),))]
    picked = ColumnMap(loglikelihoods="lls", choices="c", gold="gold")
    rows = [{"lls": [-1, -2], "c": ["x", "y"], "gold": 1.0}]
    assert only(write(tmp_path / "p.jsonl", rows), mapping=picked)[0].gold == 1


def test_ids_of_other_types_are_other_documents(tmp_path: Path) -> None:
    rows = [{"id": name, "run": 0, "said": "s"} for name in (1, "1", -1, -2)]
    for mapping in (ColumnMap(answer="said", id="id"), ColumnMap(answer="said", id="id", repeat="run")):
        assert [one.id for one in only(write(tmp_path / "x.jsonl", rows), mapping=mapping)] == [1, "1", -1, -2]


def test_repeats_are_gathered_by_unpacked_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": name, "run": run, "said": "s" * 1000} for run in (0, 1) for name in range(20)]
    path, mapping = write(tmp_path / "a.jsonl.gz", rows), ColumnMap(answer="said", id="id", repeat="run")
    monkeypatch.setattr("evalcore.shell.logs.tables.table.GATHERED", 2000)
    assert path.stat().st_size < 2000
    with pytest.raises(EvalError, match="one after another"):
        only(path, mapping=mapping)


def test_repeats_in_large_files_follow_one_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalcore.shell.logs.tables.table.GATHERED", 10)
    mapping = ColumnMap(answer="said", id="id", repeat="run")
    rows = [{"id": name, "run": run, "said": "s"} for name in "xy" for run in (0, 1)]
    assert [len(one.replies[0]) for one in only(write(tmp_path / "a.jsonl", rows), mapping=mapping)] == [2, 2]
    apart = write(tmp_path / "b.jsonl", rows[::2] + rows[1::2])
    with pytest.raises(EvalError, match=r"b\.jsonl:3: expected the repeats of 'x' one after another.*sort it by id"):
        only(apart, mapping=mapping)


def test_a_task_column_makes_tasks(tmp_path: Path) -> None:
    rows = [{"task": name, "said": str(i)} for i, name in enumerate(["a", "b", "a"])]
    tasks = open_logs([write(tmp_path / "x.jsonl", rows)], mapping=ColumnMap(answer="said", task="task"))
    assert [task.name for task in tasks] == ["a", "b"]
    assert [[one.replies[0][0] for one in rows_of(task)] for task in tasks] == [["0", "2"], ["1"]]
    assert [[one.doc_id for one in rows_of(task)] for task in tasks] == [[0, 1], [0]]


def test_tasks_of_a_large_table_are_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"task": name, "said": str(i)} for i, name in enumerate(["a", "b", None, "a"])]
    path, mapping = write(tmp_path / "x.jsonl", rows), ColumnMap(answer="said", task="task")
    for limit in (1 << 20, 0):
        monkeypatch.setattr("evalcore.shell.logs.tables.table_tasks.HELD", limit)
        found = {task.name: list(task.rows()) for task in open_logs([path], mapping=mapping, keep_going=True)}
        assert [one.replies[0][0] for one in found["a"] if isinstance(one, Logged)] == ["0", "3"]
        assert [one.replies[0][0] for one in found["b"]] == ["1"]
        assert [one.line for one in found["a"] if isinstance(one, Problem)] == [3]


def test_scores_alone(tmp_path: Path) -> None:
    [one] = only(write(tmp_path / "x.jsonl", [{"ok": 0.5}]), mapping=ColumnMap(score="ok"))
    assert (one.replies, one.requests, one.scores) == ((), (), {"ok,none": 0.5})


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"answer": "sad"}, r"unknown answer column 'sad'; did you mean 'said'\? Known: n, ok, right, said, unit"),
        ({"gold": "right"}, r"expected the column of the answers, of the log-likelihoods or of the scores"),
        ({"answer": "said", "loglikelihoods": "n"}, r"expected a list of log-likelihoods, got '0'"),
    ],
)
def test_columns_that_are_not_there(tmp_path: Path, mapping: dict[str, str], message: str) -> None:
    with pytest.raises(EvalError, match=message):
        only(write(tmp_path / "x.jsonl", TABLE), mapping=ColumnMap(**mapping))


def test_a_repeat_needs_an_id() -> None:
    with pytest.raises(EvalError, match="expected id with repeat"):
        ColumnMap(answer="a", repeat="r")


def test_tables_of_a_folder_that_have_other_columns_are_told_of(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", TABLE)
    write(tmp_path / "other.jsonl", [{"x": 1}])
    (tmp_path / "README.md").write_text("hello, world\n")
    (tmp_path / "meta.json").write_text('{"name": "set"}')
    [task] = open_logs([tmp_path], mapping=MAPPED)
    assert task.path == tmp_path / "data.jsonl"
    assert task.warnings == (f"1 file is no log, and is not read: {tmp_path / 'other.jsonl'}",)


@pytest.mark.parametrize("indent", [None, 1])
def test_an_object_that_holds_the_rows_in_one_line_or_several(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"version": 1, "data": [{"said": "a"}, {"said": "b"}]}, indent=indent))
    assert [one.replies for one in only(path, mapping=ColumnMap(answer="said"))] == [(("a",),), (("b",),)]
    path.write_text(json.dumps({"said": "a", "data": [{"said": "b"}]}))
    assert [one.replies for one in only(path, mapping=ColumnMap(answer="said"))] == [(("a",),)]  # a row of its own


def test_letters_of_inspect_are_scores(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", [{"score": one} for one in ("C", "I", "P", "N", ["C", 0])])
    found = [one.scores["score,none"] for one in only(path, mapping=ColumnMap(score="score"))]
    assert found == [1.0, 0.0, 0.5, 0.0, (1.0, 0.0)]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_a_packed_file_without_its_suffix(tmp_path: Path, suffix: str) -> None:
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}.get(suffix)
    if pack is None:
        pack = pytest.importorskip("zstandard").ZstdCompressor().compress
    plain = write(tmp_path / "plain" / "samples_t.jsonl", [generation(doc) for doc in range(3)])
    path = tmp_path / "samples_t.jsonl"
    path.write_bytes(pack(plain.read_bytes()))
    assert [(one.doc, one.replies) for one in only(path)] == [(one.doc, one.replies) for one in only(plain)]


def test_what_a_run_writes_as_parquet_is_no_other_log(tmp_path: Path) -> None:
    write(tmp_path / "samples_t.jsonl.gz", [generation(0)])
    (tmp_path / "results.json").write_text(json.dumps({"results": {"t": {"alias": "t"}}}))
    for name in ("results", "samples_t"):
        (tmp_path / f"{name}.parquet").write_bytes(b"PAR1")
    for mapping in (None, ColumnMap(answer="said")):
        assert [task.warnings for task in open_logs([tmp_path], mapping=mapping)] == [()]
    (tmp_path / "samples_u.parquet").write_bytes(b"PAR1")
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "other.parquet").write_bytes(b"PAR1")
    told = f"2 files are no logs, and are not read: {tmp_path / 'other.parquet'}, {tmp_path / 'samples_u.parquet'}"
    assert [task.warnings for task in open_logs([tmp_path])] == [(told,)]


def test_an_inspect_log_tells_its_model(tmp_path: Path) -> None:
    log = {"eval": {"task": "sums", "model": "mockllm/model"}, "status": "success", "samples": []}
    (tmp_path / "a.json").write_text(json.dumps(log))
    [task] = open_logs([tmp_path / "a.json"])
    assert (task.model["model_name"], task.results) == ("mockllm/model", {})


# --- streaming ------------------------------------------------------------------------------------------------------------


def peak_of(task: LogTask) -> int:
    tracemalloc.start()
    try:
        for _ in task.rows():
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["lines", "array", "table"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, kind: str) -> None:
    peaks = []
    for count in (200, 2000):
        rows = [generation(doc, "x" * 5000) for doc in range(count)]
        path = tmp_path / f"{kind}{count}.jsonl"
        path.write_text(json.dumps(rows, indent=2)) if kind == "array" else write(path, rows)
        mapping = ColumnMap(answer="target", id="doc_id") if kind == "table" else None
        if kind == "table":
            write(path, [{"doc_id": row["doc_id"], "target": "x" * 5000} for row in rows])
        [task] = open_logs([path], mapping=mapping)
        peaks.append(peak_of(task))
    assert peaks[1] < peaks[0] + 2000 * 200, peaks  # 9 MB more of text, less than 200 bytes more for each document


def test_importing_is_cheap() -> None:
    code = (
        "import sys, evalcore.shell.logs; print([m for m in ('jinja2', 'yaml', 'pyarrow', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True)
    assert done.stdout.strip() == "[]"
