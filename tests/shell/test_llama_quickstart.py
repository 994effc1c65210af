"""The embedded example: recorded answers of SmolLM2, replayed."""

from __future__ import annotations

import json
from pathlib import Path

from evalcore.shell.cli import main

FOLDER = Path(__file__).parents[2] / "examples" / "quickstart"
DOCUMENTS = {
    "nature": 35,
    "world": 35,
    "everyday": 30,
    "one_step": 30,
    "two_step": 20,
    "simple_questions": 30,
    "prose": 30,
}


def test_every_question_finds_its_recorded_answer(tmp_path):
    assert main(["run", str(FOLDER / "config.yaml"), "--quiet", "--output_path", str(tmp_path / "out")]) == 0
    found = json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))
    assert {f"quickstart_{name}": count for name, count in DOCUMENTS.items()} == {
        name: row["effective"] for name, row in found["n-samples"].items()
    }
    assert 0.5 < found["groups"]["quickstart_knowledge"]["acc,none"] < 1
    simple = found["results"]["quickstart_simple_questions"]
    at = {name: simple[f"exact_match@{name},first-word"] for name in ("pass^2", "mean", "pass@2")}
    assert 0 < at["pass^2"] < at["mean"] < at["pass@2"] < 1, "four draws that differ"


def test_questions_have_one_right_answer_among_different_ones():
    for name in ("nature", "world", "everyday"):
        rows = [
            json.loads(line) for line in (FOLDER / "tasks" / "data" / f"{name}.jsonl").read_text("utf-8").splitlines()
        ]
        assert len({row.get("question") or row["context"] for row in rows}) == len(rows)
        golds = [row["gold"] for row in rows]
        for row in rows:
            choices = row.get("choices") or row["endings"]
            assert len(set(choices)) == 4
            assert 0 <= row["gold"] < 4
        assert max(golds.count(place) for place in range(4)) < len(rows) / 2, "the right answer stands everywhere"
