"""Files of a folder that are not read are told of; logs just below a folder are found; shards are told from runs."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from evalcore.frames import samples_of, to_arrow
from evalcore.shell.cli import main
from evalcore.shell.compare.runs import read_recorded
from evalcore.shell.output.files.tracker import write_lm_eval

TIMES = ("2026-01-01T00-00-00.000001", "2026-01-02T00-00-00.000001")
CONFIG = {"task": "t", "output_type": "generate_until", "metric_list": [{"metric": "exact_match"}]}


def shard(folder: Path, time: str, ids: range, model: str | None = "m", task: str = "t") -> None:
    """A sample log, beside results if there is a model."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "doc_id": at,
            "doc": {"q": at, "odd": at % 2},
            "target": "a",
            "arguments": [[f"{at}?", {}]],
            "resps": [["a"]],
            "filtered_resps": ["a"],
            "filter": "none",
            "metrics": ["exact_match"],
            "exact_match": 1.0,
        }
        for at in ids
    ]
    (folder / f"samples_{task}_{time}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    if model is not None:
        told = {
            "results": {task: {"exact_match,none": 1.0}},
            "configs": {task: CONFIG},
            "model_name": model,
            "date": time,
        }
        (folder / f"results_{time}.json").write_text(json.dumps(told))


def told_by(run: object) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()  # type: ignore[operator]
    return [str(one.message) for one in caught]


def test_a_log_without_results_beside_one_with_them_is_told_of(tmp_path: Path) -> None:
    shard(tmp_path, TIMES[0], range(3))
    shard(tmp_path, TIMES[1], range(3, 5), model=None)
    [told] = read_recorded(tmp_path).warnings
    assert "left out (1)" in told
    assert f"samples_t_{TIMES[1]}.jsonl" in told
    assert told_by(lambda: list(samples_of(tmp_path))) == [told]


def test_verbs_tell_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shard(tmp_path, TIMES[0], range(3))
    shard(tmp_path, TIMES[1], range(3, 5), model=None)
    verbs = (["compare", "{}", "{}"], ["diff", "{}", "{}"], ["check", "{}", "--min", "exact_match=0.1"])
    for argv in verbs:
        assert main([one.format(tmp_path) for one in argv]) == 0
        assert "left out (1)" in capsys.readouterr().out, argv


def test_logs_just_below_a_folder_are_found_without_results(tmp_path: Path) -> None:
    shard(tmp_path / "a", TIMES[0], range(3), model=None)
    shard(tmp_path / ".hidden", TIMES[1], range(3, 9), model=None)
    read = read_recorded(tmp_path)
    assert len(read.side.documents["t"]) == 3
    assert not read.warnings
    shard(tmp_path / "b", TIMES[1], range(3, 5), model=None)
    read = read_recorded(tmp_path)
    assert len(read.side.documents["t"]) == 2
    assert "has several logs of some tasks" in read.warnings[0]


def test_shards_are_not_said_to_be_chosen_from(tmp_path: Path) -> None:
    shard(tmp_path / "a", TIMES[0], range(3))
    shard(tmp_path / "b", TIMES[1], range(3, 5))
    [told] = read_recorded(tmp_path).warnings
    assert told.startswith("t: 2 files were taken as one task of 5 documents")
    shard(tmp_path / "c", TIMES[0], range(4), task="u")
    _, left = read_recorded(tmp_path).warnings
    assert f"left out (1): c/samples_u_{TIMES[0]}.jsonl" in left


def test_other_runs_are_said_to_be_chosen_from(tmp_path: Path) -> None:
    shard(tmp_path / "a", TIMES[0], range(3))
    shard(tmp_path / "b", TIMES[1], range(3, 5), model="other")
    [told] = read_recorded(tmp_path).warnings
    assert "has 2 results files; read b/results" in told


def test_numbers_of_one_shard_are_said_to_be_that(tmp_path: Path) -> None:
    shard(tmp_path / "in" / "a", TIMES[0], range(3))
    shard(tmp_path / "in" / "b", TIMES[1], range(3, 5))
    for run in (lambda: to_arrow(tmp_path / "in"), lambda: write_lm_eval(tmp_path / "in", tmp_path, time=TIMES[0])):
        newest, alone = told_by(run)
        assert "the newest" in newest
        assert "one of 2 files of one run; `evalcore score" in alone
    assert told_by(lambda: to_arrow(tmp_path / "in" / "a")) == []


def test_parts_of_two_models_are_named_by_these(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        shard(tmp_path / name, TIMES[0], range(4), model=f"org/{name}")
    assert main(["score", str(tmp_path), "--group_by", "odd", "-q"]) == 0
    shown = capsys.readouterr().out
    assert all(f"t_{odd} (org/{name})" in shown for odd in (0, 1) for name in "ab")


def test_groups_of_unknown_tasks_tell_the_known_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        shard(tmp_path / name, TIMES[0], range(4), model=f"org/{name}")
    file = tmp_path / "g.yaml"
    file.write_text("group: G\ntask: [t]\naggregate_metric_list: [{metric: exact_match}]\n")
    assert main(["score", str(tmp_path / "a"), str(tmp_path / "b"), "--groups", str(file), "-q"]) == 2
    assert f"the tasks here are 't (a/samples_t_{TIMES[0]}.jsonl)'" in capsys.readouterr().err
