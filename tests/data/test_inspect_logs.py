"""Inspect's logs of eleven runs: epochs as repeats, the mean over them, then over samples."""

from __future__ import annotations

import pytest
from recorded import estimate, generated

from evalcore import GENERATE_UNTIL, MetricSpec, Pipeline, Sample, Step, Task, freeze_options, report_task, score_task

PLAIN = freeze_options(ignore_case=True, ignore_punctuation=True)


def epochs(rows):
    """Rows by sample, in epoch order; samples in their own order."""
    found: dict[object, list[dict]] = {}
    for row in sorted(rows, key=lambda row: (str(row["sample_id"]), row["epoch"])):
        found.setdefault(row["sample_id"], []).append(row)
    return list(found.values())


def accuracy(rows, reply, gold, spec, pipeline):
    by_sample = epochs(rows)
    task = Task("inspect", GENERATE_UNTIL, (spec,), (pipeline,))
    samples = [Sample(key, gold=gold(one[0]), id=one[0]["sample_id"]) for key, one in enumerate(by_sample)]
    answers = [generated("inspect", key, *map(reply, one)) for key, one in enumerate(by_sample)]
    return estimate(report_task(score_task(task, samples, answers)), "exact_match,none")


def runs(data):
    found: dict[str, list[dict]] = {}
    for row in data.rows:
        found.setdefault(row["run"], []).append(row)
    return found


def test_accuracy_and_error_of_every_run(recorded):
    data = recorded("inspect_logs")
    expected = data.meta["expected"]
    assert set(runs(data)) == set(expected)
    for name, rows in runs(data).items():
        one = expected[name]
        spec = MetricSpec("exact_match", reducers=("mean",))
        found = accuracy(rows, lambda row: row["score"], lambda row: "C", spec, Pipeline("none"))
        assert found.value == pytest.approx(one["accuracy"], rel=1e-15), name
        assert found.stderr == pytest.approx(one["stderr"], rel=1e-13), name
        assert found.value == pytest.approx(one["published"]["accuracy"], rel=1e-15), name
        assert found.stderr == pytest.approx(one["published"]["stderr"], rel=1e-13), name
        assert (found.n, len(rows)) == (one["n_samples"], one["n_rows"])


def test_scoring_the_answers_again_gives_the_logged_scores(recorded):
    data = recorded("inspect_logs")
    expected = data.meta["expected"]
    strip = Pipeline("none", (Step.of("remove_whitespace"),))
    spec = MetricSpec("exact_match", reducers=("mean",), options=PLAIN)
    matched = {name: rows for name, rows in runs(data).items() if expected[name]["scorer"] == "match"}
    assert sum(map(len, matched.values())) == data.meta["rescored_match_agreement"][1]
    for name, rows in matched.items():
        found = accuracy(rows, lambda row: row["answer"], lambda row: row["target"].strip(), spec, strip)
        assert found.value == pytest.approx(expected[name]["accuracy"], rel=1e-15), name
        assert found.stderr == pytest.approx(expected[name]["stderr"], rel=1e-13), name
