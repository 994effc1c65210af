"""lm-eval's files read by evalcore and written as lm-eval's again: nothing is lost, and its own tools read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from math import inf, nan
from pathlib import Path

import pytest
from both_sides import Case, lm_group, run_lm_eval, same_number
from lm_eval.utils import (
    get_file_datetime,
    get_file_task_name,
    get_latest_filename,
    get_results_filenames,
    get_sample_results_filenames,
    make_table,
)
from msgspec import structs
from test_lm_eval_files import CASES, CHOICES, LIKELIHOOD, OWN, REPEATS, SEVERAL, TEXTS, metrics, tracked

from evalcore import EvalError, build_report, report_task
from evalcore.core.lm_eval.sample_log import DocumentRows
from evalcore.core.records.frozen_dict import thaw_value
from evalcore.frames import samples_of, to_arrow
from evalcore.lm_eval import LM_EVAL_0_4_13
from evalcore.shell.cli import main
from evalcore.shell.compare.runs import read_recorded
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.output.files.results import VARYING, RunFacts, build_results
from evalcore.shell.output.files.run_files import write_results, write_samples
from evalcore.shell.output.files.tracker import write_lm_eval
from evalcore.shell.run.write import write_task
from evalcore.stats import Inference, Resampling

Row = dict[str, object]
DRAWS = 4
TIME = "2026-11-16T12-30-00.123456"
QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart" / "config.yaml"

SHORT = replace(CHOICES, name="short", rows=CHOICES.rows[:3], config={"num_fewshot": 0, "task_alias": "the short one"})
BRIER = replace(CHOICES, name="brier", metrics=metrics("acc", "brier_score"))


def odd_scores(doc: Row, results: object) -> Row:
    return {"length": [nan, inf, 0.5][int(str(doc["target"]))], "zero": float("-inf")}


ODD = replace(OWN, name="odd", process_results=odd_scores)
ALL = (*CASES, SHORT, BRIER, ODD)


def write_theirs(folder: Path, *cases: Case, **named: object) -> tuple[Row, dict[str, list[Row]], str]:
    """lm-eval's own output: its results, its sample rows, and the time in its file names."""
    results, lines = tracked(folder, run_lm_eval(*cases, draws=DRAWS, **named), [case.name for case in cases])
    (path,) = folder.rglob("results_*.json")
    rows = {name: [json.loads(line) for line in found] for name, found in lines.items()}
    return results, rows, path.stem.removeprefix("results_")


def groups() -> dict[str, object]:
    inner = lm_group("inner", ["choices", "short"], [{"metric": "acc"}, {"metric": "mcc", "weight_by_size": False}])
    equal = [{"metric": "acc", "weight_by_size": False}, {"metric": "exact_match", "filter_list": ["strict"]}]
    return {"inner": inner, "outer": lm_group("outer", [inner, "texts"], equal)}


def dumped(value: object) -> str:
    """As text, in which NaN equals itself and the order of keys counts."""
    return json.dumps(thaw_value(value))


def rows_in(folder: Path, task: str) -> list[Row]:
    (path,) = folder.rglob(f"samples_{task}_*.jsonl")
    return [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]


# --- whatever lm-eval wrote --------------------------------------------------------------------------------------------


def test_read_and_written_again_is_the_same_file_by_file(tmp_path: Path) -> None:
    results, rows, time = write_theirs(tmp_path / "theirs", *ALL, groups=groups())
    found = read_recorded(tmp_path / "theirs")
    written = write_lm_eval(found, tmp_path / "ours", time=time)
    theirs, ours = (
        sorted(path.relative_to(folder) for path in folder.rglob("*.json*"))
        for folder in (tmp_path / "theirs", tmp_path / "ours")
    )
    assert ours == theirs
    assert len(written) == len(ALL) + 1
    assert dumped(json.loads(written[0].read_text("utf-8"))) == dumped(results)
    for case in ALL:
        again = rows_in(tmp_path / "ours", case.name)
        assert len(again) == len(case.rows) * len(case.filters or [None])
        assert [dumped(row) for row in again] == [dumped(row) for row in rows[case.name]], case.name
    second = read_recorded(tmp_path / "ours")
    assert second.side.documents == found.side.documents
    assert second.side.scored == found.side.scored
    assert second.side.trees == found.side.trees
    assert dumped(second.results) == dumped(found.results)
    assert second.warnings == found.warnings


# --- numbers made again by evalcore -------------------------------------------------------------------------------------


def as_document(row: dict[str, object]) -> DocumentRows:
    return DocumentRows({"doc_id": row["doc_id"]}, [{key: value for key, value in row.items() if key != "doc_id"}])


def through_evalcore(found: Recorded, folder: Path) -> Path:
    """A run folder of evalcore: its report of the recorded scores, which are lm-eval's, closed by lm-eval's rules."""
    theirs = [structs.replace(one, tables=LM_EVAL_0_4_13.name) for one in found.side.scored]
    inference = Inference(resampling=Resampling(DRAWS))
    done = [report_task(one, inference=inference, tables=LM_EVAL_0_4_13) for one in theirs]
    report = build_report(done, found.side.trees, inference=inference, tables=LM_EVAL_0_4_13)
    names = [task.name for task in report.tasks]
    rows = {name: [{k: v for k, v in row.items() if k != "task"} for row in samples_of(found.path, [name])] for name in names}  # fmt: skip
    facts = RunFacts(
        model="canned",
        model_args={"model": "org/m"},
        system_instruction="Be brief.",
        chat_template="{{ chat }}",
        fewshot_as_multiturn=True,
    )
    hashes = {name: write_task(folder, name, [map(as_document, rows[name])]) for name in names}
    write_results(folder, build_results(report, facts, configs=found.results["configs"], hashes=hashes))
    return folder


MEASURED = (CHOICES, SHORT, TEXTS, SEVERAL, REPEATS, LIKELIHOOD, OWN)


def test_every_number_of_theirs_comes_out_of_our_report(tmp_path: Path) -> None:
    theirs, rows, _ = write_theirs(tmp_path / "theirs", *MEASURED, groups=groups())
    folder = through_evalcore(read_recorded(tmp_path / "theirs"), tmp_path / "run")
    path, *_ = write_lm_eval(folder, tmp_path / "ours", time=TIME)
    ours = json.loads(path.read_text("utf-8"))
    for key in ("versions", "n-shot", "higher_is_better", "group_subtasks", "configs", "task_hashes", "n-samples"):
        assert ours[key] == theirs[key], key
    for key in ("model_name", "model_source", "system_instruction_sha", "chat_template_sha", "fewshot_as_multiturn"):
        assert ours[key] == theirs[key], key
    count = 0
    for part in ("results", "groups"):
        assert set(ours[part]) == set(theirs[part])
        for name, row in theirs[part].items():
            assert set(ours[part][name]) == set(row), name
            for key, value in row.items():
                number = isinstance(value, float)
                assert same_number(value, ours[part][name][key], stderr=True) if number else ours[part][name][key] == value, (name, key)  # fmt: skip
                count += number
    assert count > 50
    for case in MEASURED:
        assert [dumped(row) for row in rows_in(tmp_path / "ours", case.name)] == [
            dumped(row) for row in rows[case.name]
        ]


def test_what_made_again_differs_as_the_docs_say(tmp_path: Path) -> None:
    inner = lm_group("inner", ["short"], [{"metric": "acc"}])
    outer = lm_group("outer", [inner, "repeats"], [{"metric": "exact_match"}])
    theirs, _, _ = write_theirs(tmp_path / "theirs", SHORT, REPEATS, groups={"outer": outer, "inner": inner}, limit=2)
    folder = through_evalcore(read_recorded(tmp_path / "theirs"), tmp_path / "run")
    ours = json.loads((folder / "results.json").read_bytes())
    assert theirs["n-samples"]["short"] == {"original": 3, "effective": 2}
    assert ours["n-samples"]["short"] == {"original": 2, "effective": 2}
    assert set(theirs["higher_is_better"]["outer"]) < set(ours["higher_is_better"]["outer"])
    same = {**ours["higher_is_better"], "outer": theirs["higher_is_better"]["outer"]}
    assert same == theirs["higher_is_better"]


def test_numbers_that_json_has_no_words_for_come_back(tmp_path: Path) -> None:
    """Through our own samples, which are strict JSON: null, and a note of what it was."""
    _, rows, time = write_theirs(tmp_path / "theirs", ODD)
    assert "NaN" in dumped(rows["odd"])
    assert "-Infinity" in dumped(rows["odd"])
    folder = tmp_path / "run"
    (results,) = (tmp_path / "theirs").rglob("results_*.json")
    write_results(folder, json.loads(results.read_text()))
    path = write_samples(folder, "odd", [map(DocumentRows, rows["odd"])])
    assert "NaN" not in path.read_text()
    write_lm_eval(folder, tmp_path / "ours", time=time)
    assert [dumped(row) for row in rows_in(tmp_path / "ours", "odd")] == [dumped(row) for row in rows["odd"]]


# --- lm-eval's tools ------------------------------------------------------------------------------------------------------


def test_their_table_of_ours_is_their_table(tmp_path: Path) -> None:
    """Character by character, with groups, aliases, arrows and errors."""
    theirs, _, time = write_theirs(tmp_path / "theirs", *MEASURED, groups=groups())
    found = read_recorded(tmp_path / "theirs")
    copied, *_ = write_lm_eval(found, tmp_path / "copied", time=time)
    made, *_ = write_lm_eval(through_evalcore(found, tmp_path / "run"), tmp_path / "made", time=TIME)
    for part in ("results", "groups"):
        wanted = make_table(theirs, part)
        assert len(wanted.splitlines()) > 3
        for path in (copied, made, tmp_path / "run" / "results.json"):
            assert make_table(json.loads(path.read_text("utf-8")), part) == wanted, (part, path)


def test_their_finders_of_files_find_ours(tmp_path: Path) -> None:
    write_theirs(tmp_path / "theirs", CHOICES, TEXTS)
    for time in ("2026-01-01T00-00-00", TIME):
        write_lm_eval(tmp_path / "theirs", tmp_path / "ours", time=time)
    names = [path.as_posix() for path in (tmp_path / "ours").rglob("*.json*")]
    assert get_latest_filename(get_results_filenames(names)).endswith(f"results_{TIME}.json")
    samples = [Path(name).name for name in get_sample_results_filenames(names)]
    assert {(get_file_task_name(name), get_file_datetime(name)) for name in samples} == {
        (task, time) for task in ("choices", "texts") for time in ("2026-01-01T00-00-00", TIME)
    }


def test_datasets_loads_our_samples_as_theirs(tmp_path: Path) -> None:
    """The way the hub shows them."""
    datasets = pytest.importorskip("datasets")
    write_theirs(tmp_path / "theirs", REPEATS)
    write_lm_eval(tmp_path / "theirs", tmp_path / "ours", time=TIME)

    def load(side: str) -> list[Mapping[str, object]]:
        files = [str(path) for path in (tmp_path / side).rglob("samples_*.jsonl")]
        return list(
            datasets.load_dataset("json", data_files=files, split="train", cache_dir=str(tmp_path / "cache" / side))
        )

    assert load("ours") == load("theirs")


# --- a run of evalcore in lm-eval's files -----------------------------------------------------------------------------


def test_a_run_folder_in_their_layout_is_the_same_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(QUICKSTART), "--output_path", str(tmp_path / "run"), "--quiet"]) == 0
    path, *logs = write_lm_eval(tmp_path / "run", tmp_path / "theirs", time=datetime(2026, 11, 16, 12, 30))
    assert path.name == "results_2026-11-16T12-30-00.json"
    assert len(logs) == 7
    ours, theirs = (json.loads(one.read_bytes()) for one in (tmp_path / "run" / "results.json", path))
    facts = json.loads((tmp_path / "run" / "run.json").read_bytes())
    assert path.parent.name == ours["model_name_sanitized"]
    assert {key: theirs[key] for key in VARYING} == {key: facts[key] for key in VARYING}
    assert theirs["date"] is not None
    assert {**theirs, **dict.fromkeys(VARYING)} == ours
    one, two = read_recorded(tmp_path / "run"), read_recorded(tmp_path / "theirs")
    assert (one.side.scored, one.side.documents, one.side.trees) == (
        two.side.scored,
        two.side.documents,
        two.side.trees,
    )
    assert to_arrow(one).equals(to_arrow(two))
    assert make_table(theirs) == make_table(ours)


@pytest.mark.parametrize("name", ["../../out", "..", "/etc/x", "a\\b", "", "nul\0", "x" * 300, None, 3])
def test_a_model_of_any_name_stays_inside(name: object, tmp_path: Path) -> None:
    write_results(tmp_path / "run", {"results": {"t": {"acc,none": 0.5}}, "model_name_sanitized": name})
    (path,) = write_lm_eval(tmp_path / "run", tmp_path / "in" / "out", time=TIME)
    assert path.resolve().parent.parent == (tmp_path / "in" / "out").resolve()
    assert to_arrow(tmp_path / "in" / "out").num_rows == 1


@pytest.mark.parametrize("time", ["", "yesterday", "../x", "2026-11-16", "2026-11-16T12:30:00/../.."])
def test_a_time_that_is_none(time: str, tmp_path: Path) -> None:
    write_results(tmp_path / "run", {"results": {}})
    with pytest.raises(EvalError, match="expected a time such as"):
        write_lm_eval(tmp_path / "run", tmp_path / "out", time=time)
    assert not (tmp_path / "out").exists()
