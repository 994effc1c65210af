"""Which files are one task: the same for every verb, told of, and each file once; lines and places of records."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest

from evalcore import EvalError
from evalcore.shell.cli import main
from evalcore.shell.compare.runs import read_recorded
from evalcore.shell.data import unpack as opening
from evalcore.shell.logs.log import Problem
from evalcore.shell.logs.open import open_logs
from evalcore.shell.logs.tables.column_map import ColumnMap

STAMPS = [f"2025-01-01T00-00-0{at}.000000" for at in range(3)]
CONFIG = {"task": "t", "output_type": "generate_until", "metric_list": [{"metric": "exact_match"}]}


def row(doc: int, score: float = 1.0, **more: object) -> dict[str, object]:
    reply = str(doc) if score else "no"
    return {
        "doc_id": doc,
        "doc": {"q": f"q{doc // 2}"},  # every document is there twice
        "target": str(doc // 2),
        "arguments": {"gen_args_0": {"arg_0": f"q{doc}", "arg_1": {"until": []}}},
        "resps": [[reply]],
        "filtered_resps": [reply],
        "filter": "none",
        "metrics": ["exact_match"],
        "exact_match": score,
        **more,
    }


def put(path: Path, rows: list[dict[str, object]], **results: object) -> Path:
    """A log, with results beside it if any are given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    if results:
        told = {"results": {"t": {}}, "configs": {"t": CONFIG}, **results}
        path.with_name(path.name.replace("samples_t", "results").replace(".jsonl", ".json")).write_text(
            json.dumps(told)
        )
    return path


def scores(count: int = 12) -> list[dict[str, object]]:
    return [row(doc, float(doc % 3 == 0)) for doc in range(count)]


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Three runs over a third of the documents each, as their results say, and all of them in one log."""
    for at, stamp in enumerate(STAMPS):
        mine = scores()[at::3]
        stated = {"t": {"exact_match,none": float(at == 0)}}
        put(tmp_path / "shards" / f"samples_t_{stamp}.jsonl", mine, model_name="m", results=stated)
    put(tmp_path / "whole" / "samples_t.jsonl", scores(), model_name="m")
    return tmp_path / "shards"


def asked(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> dict[str, object]:
    capsys.readouterr()
    assert main([*map(str, words), "--json"]) == code
    return json.loads(capsys.readouterr().out)


# --- which files ------------------------------------------------------------------------------------------------------


def test_a_log_that_is_named_with_its_results_is_read_once(tmp_path: Path) -> None:
    log = put(tmp_path / "r" / "samples_t.jsonl", scores(3), model_name="m")
    link = tmp_path / "link.jsonl"
    link.symlink_to(log)
    results = log.with_name("results.json")
    for given in ([results, log], [log, results], [log.parent, results, log], [link, results], [results, results]):
        [task] = open_logs(given)
        assert [path.resolve() for path in task.paths] == [log]
        assert (task.name, task.warnings) == ("t", ()) or given[0] == link
    other = put(tmp_path / "s" / "samples_u.jsonl", scores(3))
    assert [task.path for task in open_logs([other, results, log])] == [other, log]


@pytest.mark.parametrize(
    "names",
    [("a/samples_t.jsonl", "b/samples_t.jsonl"), tuple(f"samples_t_{stamp}.jsonl" for stamp in STAMPS[:2])],
    ids=["folders", "times"],
)
@pytest.mark.parametrize("known", [{}, {"model_name": "m"}], ids=["no results", "results of one"])
def test_what_nothing_says_is_one_run_is_not_pooled(tmp_path: Path, names: list[str], known: dict[str, object]) -> None:
    put(tmp_path / names[0], scores(3), **known)
    put(tmp_path / names[1], scores(6)[3:])
    tasks = open_logs([tmp_path])
    assert [len(list(task.rows())) for task in tasks] == [3, 3]
    assert [task.name for task in tasks] == [f"t ({name})" for name in names]
    assert [task.warnings for task in tasks] == [(), ()]


def test_one_folder_and_time_is_one_run(tmp_path: Path) -> None:
    put(tmp_path / "samples_t.jsonl", [one | {"filter": name} for name in ("a", "b") for one in scores(3)])
    last = "".join(json.dumps(row(7, filter=name)) + "\n" for name in ("a", "b"))
    (tmp_path / "samples_t.jsonl.gz").write_bytes(gzip.compress(last.encode()))
    [task] = open_logs([tmp_path])
    assert [one.doc_id for one in task.rows()] == [0, 1, 2, 7]
    [told] = task.warnings
    assert told.startswith("t: 2 files were taken as one task of 4 documents (no document is in two of them): ")
    assert "samples_t.jsonl.gz" in told


# --- every verb -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("doc", [6, 7, 8])
def test_explain_counts_all_that_score_counts(shards: Path, doc: int, capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, "explain", shards, "--doc", doc)
    whole = asked(capsys, "explain", shards.parent / "whole", "--doc", doc)
    assert found["file"] == str(shards / f"samples_t_{STAMPS[doc % 3]}.jsonl")
    assert found["contributions"] == whole["contributions"] != []
    told = [one for one in found["warnings"] if "3 files" in one]
    assert len(told) == 1
    assert "one task of 12 documents" in told[0]
    assert not [one for one in found["warnings"] if "by the logged scores" in one]  # each counts its own


def test_diff_and_compare_read_all_files(shards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, "diff", shards, shards.parent / "whole")
    assert [(one["documents"], one["only_a"], one["only_b"]) for one in found["tasks"]] == [(12, [], [])]
    one, two = read_recorded(shards), read_recorded(shards.parent / "whole")
    assert one.side.documents == two.side.documents
    assert [len(files) for files in (one.files["t"], two.files["t"])] == [3, 1]
    assert one.side.scored[0].column("exact_match,none") == two.side.scored[0].column("exact_match,none")


def test_a_run_done_again_is_read_as_the_newest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for stamp in STAMPS[:2]:
        put(tmp_path / f"samples_t_{stamp}.jsonl", scores(4 if stamp == STAMPS[1] else 6), model_name="m")
    assert asked(capsys, "diff", tmp_path, tmp_path)["tasks"][0]["documents"] == 4
    assert len(asked(capsys, "explain", tmp_path, "--task", "t", "--doc", 3)["contributions"]) == 1
    other = f"t (samples_t_{STAMPS[0]}.jsonl)"
    older = asked(capsys, "explain", tmp_path, "--task", other, "--doc", 3)
    assert older["contributions"] == []
    assert f"{other}: document 3 has no part in the numbers: they are of t" in older["warnings"]


# --- lines ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_that_is_too_long_is_not_held(tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "MOST_BYTES", 1 << 16)
    first = json.dumps(row(0)).encode() + b"\n"
    text = first + json.dumps(row(1, note="a" * (16 << 20))).encode() + b"\n" + first
    path = tmp_path / f"samples_t.jsonl{'.gz' * packed}"
    path.write_bytes(gzip.compress(text) if packed else text)
    del text
    tracemalloc.start()
    [task] = open_logs([path], keep_going=True)
    good, bad = task.rows()
    for read in (lambda: list(open_logs([path])[0].rows()), lambda: read_recorded(path)):
        with pytest.raises(EvalError, match=r"samples_t.jsonl(.gz)?:2: expected a line of at most 65,536 bytes"):
            read()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(bad, Problem)
    assert (good.doc_id, bad.line) == (0, 2)
    assert peak < 8 << 20


def test_rows_of_csv_are_told_by_the_line_they_begin_on(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('q,r,g\r\n"a\r\nb",4,4\r\n\r\n"c",5\r\n"d\r\n\r\n",x,5\r\n', newline="")
    [task] = open_logs([path], mapping=ColumnMap(answer="r", gold="g"), keep_going=True)
    assert [one.line for one in task.rows()] == [2, 5, 6]


def test_explain_takes_the_columns_of_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,asked,said,right\nx,1+1,2,2\ny,1+2,4,3\n")
    columns = ["--answer", "said", "--gold", "right", "--prompt", "asked", "--id", "name"]
    found = asked(capsys, "explain", path, *columns, "--doc", "y")
    assert (found["doc_id"], found["line"], found["gold"]) == (1, 3, "3")
    assert main(["explain", str(path), "--answer", "sad", "--doc", "0"]) == 2
    assert "unknown answer column 'sad'" in capsys.readouterr().err
