"""Published answers as run folders: a task file, its questions, a log of what was answered, and a run that replays it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from evalcore.shell.cli import main

__all__ = ["replay_run"]

Rows = Sequence[Mapping[str, object]]
MATCH = {"metric": "exact_match"}
OPTIONS = {"until": ["\n\n"]}


def replay_run(
    folder: Path,
    tasks: Mapping[str, Rows],
    reply: str,
    filters: object,
    metric: Mapping[str, object] = MATCH,
    groups: Sequence[Mapping[str, object]] = (),
) -> Path:
    """Run tasks of ``question`` and ``target`` whose answers lie in the rows under ``reply``; the run's folder."""
    for name in ("logs", "tasks"):
        (folder / name).mkdir(parents=True)
    for name, rows in tasks.items():
        _write_lines(folder / f"{name}.jsonl", [{"question": row["question"], "target": row["target"]} for row in rows])
        _write_lines(folder / "logs" / f"samples_{name}.jsonl", [_logged(i, row, reply) for i, row in enumerate(rows)])
        task = _task(name, folder / f"{name}.jsonl", filters, metric)
        (folder / "tasks" / f"{name}.yaml").write_text(json.dumps(task), encoding="utf-8")
    config = {
        "model": "replay",
        "model_args": {"path": str(folder / "logs")},
        "include_path": str(folder / "tasks"),
        "tasks": list(groups or tasks),
        "output_path": str(folder / "run"),
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    assert main(["run", str(path), "--quiet"]) == 0
    return folder / "run"


def _task(name: str, data: Path, filters: object, metric: Mapping[str, object]) -> dict[str, object]:
    return {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": str(data)},
        "test_split": "train",
        "output_type": "generate_until",
        "generation_kwargs": OPTIONS,
        "doc_to_text": "{{question}}",
        "doc_to_target": "{{target}}",
        "metric_list": [metric],
        "filter_list": filters,
    }


def _logged(at: int, row: Mapping[str, object], reply: str) -> dict[str, object]:
    """A line of lm-eval's sample log, with what a replay needs."""
    return {
        "doc_id": at,
        "doc": {"question": row["question"], "target": row["target"]},
        "target": row["target"],
        "arguments": {"gen_args_0": {"arg_0": row["question"], "arg_1": OPTIONS}},
        "resps": [[row[reply]]],
        "filtered_resps": [row[reply]],
        "filter": "none",
        "metrics": [],
    }


def _write_lines(path: Path, rows: Iterable[object]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
