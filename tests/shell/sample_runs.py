"""Recorded runs written by hand, in lm-eval's layout: sample logs, and results beside them if wanted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

STAMP = "2026-01-31T12-00-00.000000"

Scores = Sequence[float | None]


def rows_of(task: str, metric: str, scores: Scores, **more: object) -> list[dict[str, object]]:
    """A row for every document; one without a score has no such metric. ``more`` are fields of each document."""
    return [
        {
            "doc_id": at,
            "doc": {"question": f"{task} {at}?", "passage": at // 5, **more},
            "target": "yes",
            "arguments": [[f"{task} {at}?", {"until": []}]],
            "resps": [["yes"]],
            "filtered_resps": ["yes"],
            "filter": "none",
            "metrics": [metric] if score is not None else [],
            **({metric: score} if score is not None else {}),
        }
        for at, score in enumerate(scores)
    ]


def write_log(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_run(
    folder: Path,
    tasks: Mapping[str, Scores],
    metric: str = "acc",
    results: Mapping[str, object] | None = None,
    **more: object,
) -> Path:
    """A folder with a log for each task, and results if any parts of them are given (an empty mapping will do)."""
    for task, scores in tasks.items():
        write_log(folder / f"samples_{task}_{STAMP}.jsonl", rows_of(task, metric, scores, **more))
    if results is not None:
        rows = {task: {"alias": task} for task in tasks}
        plain = {"results": rows, "configs": {task: {"task": task, "output_type": "generate_until"} for task in tasks}}
        (folder / f"results_{STAMP}.json").write_text(json.dumps({**plain, **results}), encoding="utf-8")
    return folder
