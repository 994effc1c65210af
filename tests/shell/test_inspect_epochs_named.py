"""Epochs of an Inspect log are reduced as it says, whatever metric or filter is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalcore.core.records.task import MetricSpec
from evalcore.core.tables import EVALCORE
from evalcore.shell.config.plan import Plan
from evalcore.shell.logs.open import open_logs
from evalcore.shell.score.report import close_logs
from evalcore.shell.score.rules import Rules, read_rules
from evalcore.shell.score.scored_log import ScorePlan, score_each

SAID = {"1": "445", "2": "546", "3": "777"}  # each of three epochs, where 4 is right
METRIC = ["exact_match"]


def log(path: Path, said: dict[str, str] = SAID, **config: object) -> Path:
    samples = [
        {"id": at, "epoch": epoch, "input": "?", "target": "4", "output": {"completion": one}}
        for at, replies in said.items()
        for epoch, one in enumerate(replies, 1)
    ]
    head = {"task": "sums", "model": "m", "dataset": {}, "config": config}
    path.write_text(json.dumps({"version": 2, "status": "success", "eval": head, "samples": samples}))
    return path


def numbers(path: Path, rules: Rules) -> tuple[dict[str, float | None], tuple[str, ...]]:
    [opened] = open_logs([path])
    plan = Plan(tasks=(), model="-")
    [part] = score_each([opened], ScorePlan(plan=plan, rules=rules), {})
    [task] = close_logs([part], plan, EVALCORE)
    return {key.metric: one.value for key, one in task.estimates}, part.warnings


@pytest.mark.parametrize(
    "rules",
    [
        Rules(),
        read_rules(metrics=METRIC),
        read_rules(metrics=METRIC, steps=["lowercase"]),
        read_rules(steps=["lowercase"]),
    ],
)
def test_what_is_named_does_not_change_how_epochs_are_reduced(tmp_path: Path, rules: Rules) -> None:
    found = log(tmp_path / "a.json", epochs=3, epochs_reducer=["max"])
    assert numbers(found, rules)[0] == {"exact_match": pytest.approx(2 / 3)}
    assert numbers(log(tmp_path / "b.json"), rules)[0] == {"exact_match": pytest.approx(3 / 9)}  # no reducer: the mean


def test_a_reducer_that_is_named_wins(tmp_path: Path) -> None:
    found = log(tmp_path / "a.json", epochs=3, epochs_reducer=["max"])
    assert numbers(found, read_rules(metrics=METRIC, reducers=["mean"]))[0] == {"exact_match": pytest.approx(1 / 3)}
    own = Rules(metrics=(MetricSpec("exact_match", reducers=("mean",)), MetricSpec("f1")))
    made = numbers(found, own)[0]
    assert made["exact_match"] == pytest.approx(1 / 3)
    assert made["f1"] == pytest.approx(2 / 3)


def test_filters_that_leave_one_reply_are_left_to_do_so(tmp_path: Path) -> None:
    found = log(tmp_path / "a.json", epochs=3, epochs_reducer=["max"])
    made, told = numbers(found, read_rules(steps=["take_first"]))
    assert made == {"exact_match": pytest.approx(1 / 3)}
    assert "the first of 3 replies" in str(told)
    assert numbers(found, read_rules(steps=["majority_vote", "take_first"]))[0] == {"exact_match": pytest.approx(1 / 3)}


def test_the_reducer_of_the_log_is_told(tmp_path: Path) -> None:
    several = log(tmp_path / "a.json", epochs=3, epochs_reducer=["max"])
    assert "its epochs are reduced by max, as the log says" in str(numbers(several, read_rules(metrics=METRIC))[1])
    strange = log(tmp_path / "b.json", epochs=3, epochs_reducer=["majority"])
    assert "reduced epochs by majority" in str(numbers(strange, read_rules(metrics=METRIC))[1])


def test_one_epoch_needs_no_reducer(tmp_path: Path) -> None:
    once = log(tmp_path / "a.json", {at: one[0] for at, one in SAID.items()}, epochs=1, epochs_reducer=["mean"])
    made, told = numbers(once, read_rules(metrics=["bleu"]))  # which no mean is made of
    assert list(made) == ["bleu"]
    assert not told
