"""What ``evalcore score -o`` makes of real sample logs can be scored again, and gives the same numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalcore.shell.cli import main

FOLDERS = ("asdiv_2024", "bigrefactor_2023", "eqbench_2025", "math_perturbed_2026", "negotiationtom_2026")
SAME = ("results", "groups", "configs", "versions", "n-shot", "n-samples", "higher_is_better", "group_subtasks")


def written(logs: Path, folder: Path) -> dict[str, dict[str, object]]:
    assert main(["score", str(logs), "--output_path", str(folder), "--quiet"]) in (0, 1)
    return json.loads((folder / "results.json").read_text())


@pytest.mark.parametrize("name", FOLDERS)
def test_what_is_written_gives_the_same_numbers_again(recorded, name, tmp_path):
    logs = recorded("lmeval_raw_logs").folder / name
    first, again = written(logs, tmp_path / "first"), written(tmp_path / "first", tmp_path / "again")
    for part in SAME:
        assert again.get(part) == first.get(part), part
    assert again["evalcore"]["estimates"] == first["evalcore"]["estimates"]
    for log in (tmp_path / "first").glob("samples_*.jsonl"):
        assert (tmp_path / "again" / log.name).read_bytes() == log.read_bytes(), log.name


def test_scores_by_code_stay_in_results_rows_and_config(recorded, tmp_path):
    logs = recorded("lmeval_raw_logs").folder / "negotiationtom_2026"
    (path,), (old,) = logs.glob("results_*.json"), logs.glob("samples_*_intention_*.jsonl")
    stated, found = json.loads(path.read_text()), written(logs, tmp_path / "out")
    task = "negotiationtom_intention"
    assert found["results"][task]["exact_match,none"] == stated["results"][task]["exact_match,none"] == 0.2
    assert found["versions"] == stated["versions"]
    for key in ("process_results", "metric_list"):
        assert found["configs"][task][key] == stated["configs"][task][key]
    # Scores that only code could make a number of are in the rows as they were.
    scores = ("exact_match", "micro_f1", "macro_f1")
    new = tmp_path / "out" / f"samples_{task}.jsonl"
    rows, before = ([json.loads(line) for line in one.read_text().splitlines()] for one in (new, old))
    assert len(rows) == 20
    assert [[row[name] for name in scores] for row in rows] == [[row[name] for name in scores] for row in before]
    assert all(set(scores) == set(row["metrics"]) for row in rows)
