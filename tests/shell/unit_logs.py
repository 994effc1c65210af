"""Logs of every form that is cut into units, small enough to be cut at every document."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import numpy as np

NUMBER = r"(-?[0-9]+)"
CONFIGS = {
    "sums": {
        "task": "sums",
        "output_type": "generate_until",
        "doc_to_target": "{{answer}}",
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
        "filter_list": [
            {
                "name": "strict",
                "filter": [{"function": "regex", "regex_pattern": "#### (-?[0-9]+)"}, {"function": "take_first"}],
            },
            {
                "name": "last",
                "filter": [
                    {"function": "regex", "regex_pattern": NUMBER, "group_select": -1},
                    {"function": "take_first"},
                ],
            },
        ],
    },
    "ends": {
        "task": "ends",
        "output_type": "multiple_choice",
        "doc_to_target": "gold",
        "doc_to_choice": "ends",
        "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}, {"metric": "brier_score"}, {"metric": "f1"}],
    },
}


def write_logs(folder: Path, documents: int = 40, seed: int = 0) -> Path:
    """A run of two tasks and a group over them: rows filter by filter, as lm-eval writes them."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    answers = rng.integers(2, 500, documents).tolist()
    said = [f"so {one + int(rng.random() < 0.3)} é.\n#### {one + int(rng.random() < 0.2)}" for one in answers]
    rows = [
        _row(
            at,
            {"question": f"What? {at}", "answer": str(one)},
            str(one),
            [(f"Q {at}", {"until": ["Q:"]})],
            [text],
            name,
        )
        for name in ("strict", "last")
        for at, (one, text) in enumerate(zip(answers, said, strict=True))
    ]
    _write(folder / "samples_sums.jsonl", rows)
    golds, scores = rng.integers(0, 4, documents).tolist(), rng.normal(-12, 3, (documents, 4)).tolist()
    ends = ["one", "three", "two hundred", "six"]
    rows = [
        _row(
            at,
            {"context": f"C {at}", "ends": ends, "gold": gold},
            str(gold),
            [(f"C {at}", f" {end}") for end in ends],
            [[str(one), "False"] for one in own],
            "none",
        )
        for at, (gold, own) in enumerate(zip(golds, scores, strict=True))
    ]
    _write(folder / "samples_ends.jsonl", rows)
    results = {name: {"alias": name} for name in CONFIGS} | {"both": {"alias": "both"}}
    whole = {"results": results, "configs": CONFIGS, "group_subtasks": {"both": list(CONFIGS), "sums": [], "ends": []}}
    (folder / "results.json").write_text(json.dumps(whole))
    return folder


def _row(at: int, doc: object, target: str, asked: list[tuple[str, object]], said: list[object], name: str) -> dict:
    return {
        "doc_id": at,
        "doc": doc,
        "target": target,
        "arguments": {f"gen_args_{i}": {"arg_0": a, "arg_1": b} for i, (a, b) in enumerate(asked)},
        "resps": [[one] for one in said],
        "filtered_resps": said,
        "filter": name,
        "metrics": [],
    }


def _write(path: Path, rows: list[dict]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def list_cells(documents: int = 40, seed: int = 1) -> list[dict[str, object]]:
    """The rows of a table with answers, golds, ids and clusters; some answers are missing."""
    rng = np.random.default_rng(seed)
    return [
        {
            "name": f"d{at}",
            "said": "" if rng.random() < 0.1 else f"it is {int(rng.integers(0, 3))}",
            "gold": str(int(rng.integers(0, 3))),
            "place": at // 4,
        }
        for at in range(documents)
    ]


TABLE_KEYS = {
    "answer": "said",
    "gold": "gold",
    "id": "name",
    "cluster": "place",
    "filter": ['regex={"regex_pattern": "([0-9])"}', "take_first"],
    "metric": ["exact_match", "f1"],
}


def write_table(path: Path, documents: int = 40, seed: int = 1) -> Path:
    """A table as JSON lines, or as Parquet in row groups of three."""
    rows = list_cells(documents, seed)
    if path.suffix == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=3)
    else:
        _write(path, rows)
    return path


def write_eval(path: Path, documents: int = 20) -> Path:
    """A log of Inspect with two epochs of each sample, whose scores were recorded."""
    rng = np.random.default_rng(3)
    with ZipFile(path, "w") as zipped:
        for at in range(documents):
            for epoch in (1, 2):
                verdict = "C" if rng.random() < 0.6 else "I"
                sample = {
                    "id": f"s{at}",
                    "epoch": epoch,
                    "input": f"Q {at}",
                    "target": "4",
                    "output": {"completion": "4"},
                    "scores": {"match": {"value": verdict}},
                }
                zipped.writestr(f"samples/s{at}_epoch_{epoch}.json", json.dumps(sample))
        facts = {"task": "quiz", "model": "org/m", "dataset": {}, "config": {"epochs": 2}}
        zipped.writestr("header.json", json.dumps({"eval": facts, "status": "success"}))
    return path
