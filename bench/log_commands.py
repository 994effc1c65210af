"""Commands that read a log, and how long each command takes to start, by the processor time of processes of their own.

python bench/log_commands.py [--documents 300000] [--folder FOLDER] [--times 2]

The log has short generations under one filter, in lm-eval's form; the other side of ``diff`` has another verdict on
every hundredth document. Wanted: ``diff`` at most twice the time of ``score`` and ``explain`` at most 1.2 times,
``score -o`` at most twice. Start-up is beside that of numpy, without what an empty Python takes.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rescoring import COMPILED, best, row

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
COMMANDS = ("run", "tasks", "score", "explain", "diff", "compare", "power", "check", "models")


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


def measure_logs(folder: Path, documents: int, times: int) -> None:
    """Print the time of each command that reads the log, its ratio to that of ``score``, and that without start-up."""
    runs = [
        {name: best([sys.executable, "-m", "evalcore", *command], times) for name, command in commands.items()}
        for commands in (list_commands(folder, size) for size in (10, 20, documents))  # the first compiles
    ]
    few, many = runs[1:]
    slope = {name: many[name][0] - few[name][0] for name in many}
    for name, (seconds, peak) in many.items():
        ratios = f"{seconds / many['score'][0]:6.2f} times score, {slope[name] / slope['score']:.2f} without start-up"
        print(f"{name:24s}{seconds:8.2f} s {peak:6.0f} MB {ratios}", flush=True)


def measure_starts(times: int) -> None:
    """Print the time that each command takes to start."""
    commands = {
        "import numpy": ["-c", "import numpy"],
        "tasks --json": ["-m", "evalcore", "tasks", "--json"],
        **{f"{name} --help": ["-m", "evalcore", name, "--help"] for name in COMMANDS},
    }
    empty = best([sys.executable, "-c", ""], times)[0]
    taken = {name: best([sys.executable, *command], times)[0] - empty for name, command in commands.items()}
    for name, seconds in taken.items():
        print(f"{name:24s}{seconds:8.3f} s {seconds / taken['import numpy']:16.2f} times numpy", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=300_000)
    parser.add_argument("--folder", type=Path, help="where the logs are made (a temporary one)")
    parser.add_argument("--times", type=int, default=2, help="of each; the least time counts, and the largest peak")
    given = parser.parse_args()
    with TemporaryDirectory(dir=given.folder) as made:
        COMPILED["PYTHONPYCACHEPREFIX"] = str(Path(made) / "compiled")
        measure_logs(Path(made), given.documents, given.times)
        measure_starts(max(given.times, 5))


if __name__ == "__main__":
    main()
