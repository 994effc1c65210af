"""Commands that read a log beside ``evalcore score``, by the processor time of processes of their own.

The log has short generations under one filter, in lm-eval's form; the other side of ``diff`` has another verdict on
every hundredth document.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bench.measure import best_of
from bench.rows import Row, at_most
from bench.scale.rescoring import row

CONFIG = {
    "task": "short",
    "output_type": "generate_until",
    "doc_to_target": "{{answer}}",
    "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    "filter_list": [
        {
            "name": "number",
            "filter": [{"function": "regex", "regex_pattern": "([0-9]+)"}, {"function": "take_first"}],
        }
    ],
}
TARGETS = {"score -o": 2.0, "diff": 2.0, "explain, near the end": 1.2}


def make_run(folder: Path, documents: int, *, other: bool) -> Path:
    """A log and its results; with ``other``, every hundredth verdict is turned round."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    numbers, slips = rng.integers(1000, size=(documents, 2)).tolist(), (rng.random(documents) < 0.3).tolist()
    options = {"until": ["\n"], "do_sample": False}
    with open(folder / "samples_short.jsonl", "w", encoding="ascii") as file:
        for doc_id, ((a, b), slip) in enumerate(zip(numbers, slips, strict=True)):
            question, answer, said = f"What is {a} plus {b}? Give the number alone.", str(a + b), str(a + b + slip)
            right = (said == answer) != (other and doc_id % 100 == 0)
            doc = {"question": question, "answer": answer}
            made = row(doc_id, doc, answer, [(f"Q: {question}\nA:", options)], [f" The sum is {said}."])
            scores = {"filtered_resps": [said], "filter": "number", "metrics": ["exact_match"]}
            file.write(json.dumps({**made, **scores, "exact_match": float(right)}) + "\n")
    results = {"results": {"short": {"alias": "short"}}, "configs": {"short": CONFIG}, "group_subtasks": {}}
    (folder / "results.json").write_text(json.dumps(results), encoding="ascii")
    return folder


def list_commands(folder: Path, documents: int) -> dict[str, list[str]]:
    a, b = (str(make_run(folder / f"{name}{documents}", documents, other=name == "b")) for name in "ab")
    return {
        "score": ["score", a, "-q", "--json", "--engine", "serial"],
        "score -o": ["score", a, "-q", "--engine", "serial", "-o", str(folder / "out"), "--overwrite"],
        "diff": ["diff", a, b],
        "explain, near the end": ["explain", a, "--doc", str(documents * 9 // 10)],
    }


def measure_rows(*, documents: int = 300_000, times: int = 2, folder: str = "") -> Iterator[Row]:
    """Each command that reads the log beside ``score``, then ``tasks --json``."""
    with TemporaryDirectory(dir=folder or None) as made:
        for size in (10, documents):  # the first compiles
            commands = list_commands(Path(made), size)
            used = {
                name: best_of([sys.executable, "-m", "evalcore", *one], times, codes=(0, 1))
                for name, one in commands.items()
            }
    scoring = used["score"].seconds
    for name, one in used.items():
        targets = (at_most(TARGETS[name], "floors"),) if name in TARGETS else ()
        yield Row(what=name, ours=one.seconds, unit="s", floor=scoring, memory=one.memory, targets=targets)
    tasks = best_of([sys.executable, "-m", "evalcore", "tasks", "--json"], times)
    yield Row(what="tasks --json", ours=tasks.seconds, unit="s", memory=tasks.memory)
