"""The scores of ranks as files: all of them or an error that names what is missing or contradictory."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalcore import GENERATE_UNTIL, Answer, EvalError, Generate, Instance, MetricSpec, Sample, Scored, Task, score_task
from evalcore.core.records.frozen_dict import thaw_dict
from evalcore.scale import gather_partials, merge, write_partial
from evalcore.shell.cli import main


def score_some(places: range, said: str = "4", task: str = "sums") -> Scored:
    answers = [Answer(Instance(task, at, 0, Generate("2 + 2 =")), (said if at % 3 else "5",)) for at in places]
    return score_task(Task(task, GENERATE_UNTIL), [Sample(at, gold="4") for at in places], answers)


def test_a_rank_that_is_missing_is_named(tmp_path):
    for rank in (0, 1, 3):
        write_partial(tmp_path, score_some(range(rank, 20, 4)), rank=rank, world=4)
    with pytest.raises(EvalError, match="missing are ranks 2 to 3 of sums"):
        merge(tmp_path)
    write_partial(tmp_path / "late", score_some(range(2, 20, 4)), rank=2, world=4)
    assert merge([tmp_path, tmp_path / "late"]).report.tasks[0].n_docs == 20


def test_ranks_that_contradict_each_other_are_refused(tmp_path):
    first = write_partial(tmp_path, score_some(range(10)), rank=0, world=2)
    assert write_partial(tmp_path, score_some(range(10)), rank=0, world=2) == first  # named by what it holds
    write_partial(tmp_path, score_some(range(9, 20)), rank=1, world=2)
    assert merge(tmp_path).report.tasks[0].n_docs == 20  # document 9 twice, as padding makes it
    write_partial(tmp_path / "b", score_some(range(8, 20), "7"), rank=1, world=2)
    with pytest.raises(EvalError, match=r"expected one score per document, got two different ones: .* - at doc 8"):
        merge([first, tmp_path / "b"])
    with pytest.raises(EvalError, match="expected one partial of ranks 1 to 2 of sums, got two with different scores"):
        merge([tmp_path, tmp_path / "b"])
    with pytest.raises(EvalError, match=r"expected a rank from 0 to 1 .* got 2"):
        write_partial(tmp_path, score_some(range(3)), rank=2, world=2)


def test_several_tasks_and_the_command(tmp_path, capsys):
    """Ranks may score several tasks; the command merges their files as Python does, and as one process closes them."""
    for rank in range(2):
        for task in ("sums", "more sums"):
            write_partial(tmp_path / "parts", score_some(range(rank, 9, 2), task=task), rank=rank, world=2)
    write_partial(tmp_path / "one.partial", score_some(range(9)), rank=0, world=1)
    assert (tmp_path / "one.partial").is_file()
    want = gather_partials([score_some(range(9), task=task) for task in ("sums", "more sums")], confidence=0.9)
    got = merge(tmp_path / "parts", confidence=0.9, output_path=tmp_path / "out")
    assert thaw_dict(got.results) == thaw_dict(want.results)
    assert main(["merge", str(tmp_path / "parts"), "--confidence", "0.9"]) == 0
    assert "more sums" in capsys.readouterr().out
    assert (tmp_path / "out" / "results.json").is_file()


def test_functions_close_numbers_where_they_are(tmp_path):
    task = Task("sums", GENERATE_UNTIL, (MetricSpec("exact_match", max),))
    answers = [Answer(Instance("sums", 0, 0, Generate("2 + 2 =")), ("4",))]
    scored = score_task(task, [Sample(0, gold="4")], answers)
    assert gather_partials(scored).report.tasks[0].estimates[0][1].value == 1.0
    lost = merge(write_partial(tmp_path, scored, rank=0, world=1)).report.tasks[0].estimates[0][1]
    assert lost.value is None
    assert "max is a function of the task's own" in str(lost.reason)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    Path(tmp_path / "file").write_text("")
    with pytest.raises(EvalError, match="cannot write"):
        write_partial(tmp_path / "file" / "below", score_some(range(3)), rank=0, world=1)
