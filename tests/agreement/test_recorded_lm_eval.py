"""Outputs that lm-eval itself wrote, read back to its own numbers; and the same documents in its log and in ours."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from both_sides import Case, lm_group, run_lm_eval
from test_lm_eval_files import (
    CASES,
    CHOICES,
    LIKELIHOOD,
    ODD,
    OWN,
    REPEATS,
    SEVERAL,
    TEXTS,
    metrics,
    our_documents,
    our_report,
    tracked,
)

from evalcore import EvalError, Report, build_report, report_task
from evalcore.core.records.task import MetricKey
from evalcore.shell.compare.runs import read_recorded
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.output.files.results import RunFacts, build_results
from evalcore.shell.output.files.run_files import write_results, write_samples

Row = dict[str, object]


def written(folder: Path, *cases: Case, **named: object) -> Row:
    """What lm-eval's tracker wrote into the folder, as data."""
    return tracked(folder, run_lm_eval(*cases, draws=4, **named), [case.name for case in cases])[0]


def report_of(found: Recorded) -> Report:
    return build_report([report_task(one) for one in found.side.scored], found.side.trees)


def values_of(row: Row) -> dict[str, float]:
    return {key: one for key, one in row.items() if MetricKey.parse(key) and isinstance(one, int | float)}


def check_numbers(theirs: Row, report: Report) -> int:
    """Every number of lm-eval's results; how many there were."""
    count = 0
    for one in [*report.tasks, *report.groups]:
        wanted = values_of(theirs["results"][one.name])
        assert {str(key) for key, _ in one.estimates} == set(wanted)
        for key, value in wanted.items():
            assert one[key].value == pytest.approx(value, rel=1e-12), (one.name, key)
            count += 1
    return count


def test_every_kind_of_task_is_read_back_to_their_numbers(tmp_path: Path) -> None:
    theirs = written(tmp_path, *CASES)
    found = read_recorded(tmp_path)
    assert found.warnings == ()
    assert [one.task.name for one in found.side.scored] == [case.name for case in CASES]
    assert check_numbers(theirs, report_of(found)) == 5 + 8 + 1 + 1 + 2 + 3 + 2
    assert found.results["results"] == theirs["results"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_sample_log_of_theirs_alone(case: Case, tmp_path: Path) -> None:
    theirs = written(tmp_path, case)
    (log,) = tmp_path.rglob("samples_*.jsonl")
    found = read_recorded(log)
    assert found.name == case.name
    report = report_task(found.side.scored[0])
    for key, value in values_of(theirs["results"][case.name]).items():
        assert report[key].value == pytest.approx(value, rel=1e-12), key


def test_groups_by_size_in_equal_parts_and_nested(tmp_path: Path) -> None:
    short = replace(CHOICES, name="short", rows=CHOICES.rows[:3])
    inner = lm_group("inner", ["choices", "short"], [{"metric": "acc"}, {"metric": "mcc", "weight_by_size": False}])
    equal = [{"metric": "acc", "weight_by_size": False}, {"metric": "acc_norm"}]
    outer = lm_group("outer", [inner, "texts"], [*equal, {"metric": "exact_match", "filter_list": ["strict"]}])
    theirs = written(tmp_path, CHOICES, short, TEXTS, groups={"outer": outer, "inner": inner})
    found = read_recorded(tmp_path)
    assert found.warnings == ()
    (tree,) = found.side.trees
    assert [(one.metric, one.weight_by_size) for one in tree.metrics][:2] == [("acc", False), ("acc_norm", True)]
    assert check_numbers(theirs, report_of(found)) == 2 * 5 + 8 + 5


def test_a_group_of_perplexities_is_left_out_and_named(tmp_path: Path) -> None:
    """lm-eval averages them as they are; evalcore on the log scale (erratum E08)."""
    other = replace(LIKELIHOOD, name="other", replies={(doc, 0): [(-3.0 - doc, False)] for doc in range(3)})
    group = lm_group("both", ["likelihood", "other"], [{"metric": "perplexity"}, {"metric": "acc"}])
    theirs = written(tmp_path, LIKELIHOOD, other, groups={"both": group})
    found = read_recorded(tmp_path)
    (told,) = found.warnings
    assert "both" in told
    assert str(theirs["results"]["both"]["perplexity,none"]) in told
    assert [one.metric for one in found.side.trees[0].metrics] == ["acc"]


def test_brier_scores_are_read_to_the_digits_that_were_logged(tmp_path: Path) -> None:
    case = replace(CHOICES, name="brier", metrics=metrics("acc", "brier_score"))
    theirs = written(tmp_path, case)["results"]["brier"]["brier_score,none"]
    found = read_recorded(tmp_path)
    value = report_of(found).task("brier")["brier_score,none"].value
    assert value == pytest.approx(theirs, abs=1e-7)
    told = [one for one in found.warnings if str(value) in one and str(theirs) in one]
    assert bool(told) == (value != pytest.approx(theirs, rel=1e-9))


def spread_of(items: list[float]) -> float:
    return max(items) - min(items)


def mean_of(items: list[float]) -> float:
    return sum(items) / len(items)


def test_aggregations_that_are_code_are_kept_only_if_they_are_means(tmp_path: Path) -> None:
    spread, mean = (
        {"metric": name, "aggregation": function, "higher_is_better": True}
        for name, function in (("length", spread_of), ("zero", mean_of))
    )
    theirs = written(tmp_path, replace(OWN, metrics=[spread, mean]))
    assert "def spread_of" in str(theirs["configs"]["own"])
    found = read_recorded(tmp_path)
    assert [str(one.key) for one in found.side.scored[0].columns] == ["zero,none"]
    (told,) = found.warnings
    assert "length,none" in told
    assert "code" in told


# --- which files ------------------------------------------------------------------------------------------------


def test_the_newest_of_several_outputs_and_each_by_its_file(tmp_path: Path) -> None:
    written(tmp_path, REPEATS)
    (old,) = tmp_path.rglob("results_*.json")
    for path in list(old.parent.iterdir()):
        stamp = old.stem.removeprefix("results_")
        path.rename(path.with_name(path.name.replace(stamp, "2020-01-02T03-04-05.678901")))
    written(tmp_path / "new", SEVERAL)
    for path in (tmp_path / "new").rglob("*_*.json*"):
        shutil.move(path, old.parent / path.name)
    shutil.rmtree(tmp_path / "new")
    for folder in (tmp_path, old.parent):
        found = read_recorded(folder)
        assert [one.task.name for one in found.side.scored] == ["several"]
        (told,) = found.warnings
        assert "2 results files" in told
    by_file = read_recorded(old.parent / "results_2020-01-02T03-04-05.678901.json")
    assert [one.task.name for one in by_file.side.scored] == ["repeats"]
    assert by_file.warnings == ()


def test_results_whose_samples_were_not_logged(tmp_path: Path) -> None:
    written(tmp_path, CHOICES, TEXTS)
    (log,) = tmp_path.rglob("samples_texts_*")
    os.remove(log)
    (told,) = read_recorded(tmp_path).warnings
    assert "1 of 2 tasks" in told
    assert "texts" in told
    os.remove(next(tmp_path.rglob("samples_choices_*")))
    with pytest.raises(EvalError, match="log_samples"):
        read_recorded(tmp_path)


# --- the same documents -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_documents_of_their_log_and_of_ours_are_the_same(case: Case, tmp_path: Path) -> None:
    written(tmp_path / "theirs", case)
    write_results(tmp_path / "ours", build_results(our_report([case]), RunFacts(model="canned")))
    write_samples(tmp_path / "ours", case.name, [our_documents(case)])
    theirs, ours = (read_recorded(tmp_path / side) for side in ("theirs", "ours"))
    assert theirs.side.documents == ours.side.documents
    assert len({row.content for row in ours.side.documents[case.name]}) == len(case.rows)
    assert theirs.texts == ours.texts
    for a, b in zip(theirs.side.scored[0].columns, ours.side.scored[0].columns, strict=True):
        assert a.key == b.key
        assert a.column.keys == b.column.keys
        assert a.column.rows == b.column.rows
    assert len(ours.texts[case.name]) == len(case.rows) <= len(ODD)
