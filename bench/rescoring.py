"""Scoring a sample log again: its time beside only decoding it, and the memory it takes.

python bench/rescoring.py [--gb 0.2] [--folder FOLDER]

Two logs of half the size each, in lm-eval's form and of our own words: generation with few-shot prompts and two
filters, and four choices. Each is decoded line by line with msgspec, then scored by ``evalcore score``, each in a
process of its own whose time and peak memory the system reports. Wanted: at most twice, and under 100 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from words import WORDS

NUMBER = r"(-?[$0-9.,]{2,})|(-?[0-9]+)"
DECODE = """
import sys, msgspec
decode = msgspec.json.decode
for path in sys.argv[1:]:
    with open(path, "rb") as lines:
        for line in lines:
            decode(line)
"""
MATCH = {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True, "ignore_case": True}
CONFIGS: dict[str, dict[str, object]] = {
    "sums": {
        "task": "sums",
        "output_type": "generate_until",
        "doc_to_target": "{{answer}}",
        "metric_list": [{**MATCH, "regexes_to_ignore": [",", "\\$"]}],
        "filter_list": [
            {
                "name": "strict-match",
                "filter": [{"function": "regex", "regex_pattern": "#### (-?[0-9]+)"}, {"function": "take_first"}],
            },
            {
                "name": "flexible-extract",
                "filter": [
                    {"function": "regex", "regex_pattern": NUMBER, "group_select": -1},
                    {"function": "take_first"},
                ],
            },
        ],
    },
    "endings": {
        "task": "endings",
        "output_type": "multiple_choice",
        "doc_to_target": "gold",
        "doc_to_choice": "endings",
        "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
    },
}


def sentence(rng: np.random.Generator, words: int) -> str:
    return " ".join(WORDS[at] for at in rng.integers(len(WORDS), size=words).tolist())


def row(doc_id: int, doc: object, target: str, asked: Sequence[object], said: Sequence[object]) -> dict[str, object]:
    """What every row of a log has."""
    text = json.dumps(doc)
    return {
        "doc_id": doc_id,
        "doc": doc,
        "target": target,
        "arguments": {f"gen_args_{i}": {"arg_0": a, "arg_1": b} for i, (a, b) in enumerate(asked)},  # type: ignore[misc]
        "resps": [[one] for one in said],
        "filtered_resps": list(said),
        "filter": "none",
        "metrics": [],
        "doc_hash": sha256(text.encode()).hexdigest(),
        "prompt_hash": sha256(text.encode()).hexdigest(),
        "target_hash": sha256(target.encode()).hexdigest(),
    }


def sums(size: int) -> Iterator[dict[str, object]]:
    """Five examples, a question, a worked answer; all documents of one filter, then all of the other."""
    shots = "\n\n".join(
        f"Q: {sentence(np.random.default_rng(i), 45)}?\nA: {sentence(np.random.default_rng(i), 60)}" for i in range(5)
    )
    options = {"until": ["Q:", "</s>"], "do_sample": False, "temperature": 0.0}
    for name in ("strict-match", "flexible-extract"):
        rng, written, doc_id = np.random.default_rng(0), 0, 0
        while written < size // 2:
            answer = int(rng.integers(2, 5000))
            question = sentence(rng, 45)
            said = f"{sentence(rng, 60)} so it is {answer + int(rng.random() < 0.3)}.\n#### {answer}"
            doc = {"question": question, "answer": str(answer)}
            made = row(doc_id, doc, str(answer), [(f"{shots}\n\nQ: {question}?\nA:", options)], [said])
            yield {**made, "filter": name, "metrics": ["exact_match"], "exact_match": 1.0}
            written, doc_id = written + 800 + len(shots) + len(question) * 2 + len(said) * 2, doc_id + 1


def endings(size: int) -> Iterator[dict[str, object]]:
    """One context, four ends."""
    rng, written, doc_id = np.random.default_rng(1), 0, 0
    while written < size:
        context, ends = sentence(rng, 180), [sentence(rng, 12) for _ in range(4)]
        gold = int(rng.integers(4))
        said = [[str(one), "False"] for one in rng.normal(-30, 6, 4).tolist()]
        doc = {"context": context, "endings": ends, "gold": gold}
        made = row(doc_id, doc, str(gold), [(context, f" {end}") for end in ends], said)
        yield {**made, "metrics": ["acc", "acc_norm"], "acc": 1.0, "acc_norm": 1.0}
        written, doc_id = written + 5 * len(context) + 3 * sum(map(len, ends)) + 900, doc_id + 1


COMPILED = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
COMPILED["OPENBLAS_NUM_THREADS"] = "1"  # numpy's idle threads spin for a while, which is no one's work


LOGS: dict[str, Callable[[int], Iterator[dict[str, object]]]] = {"sums": sums, "endings": endings}


def make_logs(folder: Path, size: int) -> None:
    """Both logs and the results beside them."""
    for name, rows in LOGS.items():
        with open(folder / f"samples_{name}.jsonl", "w", encoding="ascii") as file:
            for one in rows(size // 2):
                file.write(json.dumps(one) + "\n")
    results = {"results": {name: {"alias": name} for name in LOGS}, "configs": CONFIGS, "group_subtasks": {}}
    (folder / "results.json").write_text(json.dumps(results), encoding="ascii")


def measure(command: Sequence[str]) -> tuple[float, float]:
    """Seconds of the processor, and megabytes at the peak, of a process of its own; its modules are compiled before."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=COMPILED)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{command}: exit code {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def best(command: Sequence[str], times: int) -> tuple[float, float]:
    """The least time and the largest peak of memory over some runs of a command."""
    runs = [measure(command) for _ in range(times)]
    return min(seconds for seconds, _ in runs), max(peak for _, peak in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=0.2)
    parser.add_argument("--folder", type=Path, help="where the logs are made (a temporary one)")
    parser.add_argument("--times", type=int, default=3, help="of each; the least time counts, and the largest peak")
    given = parser.parse_args()
    with TemporaryDirectory(dir=given.folder) as made:
        folder = Path(made)
        make_logs(folder, int(given.gb * 1e9))
        COMPILED["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        for name in (*LOGS, "both"):
            paths = [folder / f"samples_{one}.jsonl" for one in (LOGS if name == "both" else [name])]
            scored = [folder] if name == "both" else paths
            command = [
                sys.executable,
                "-m",
                "evalcore",
                "score",
                *map(str, scored),
                "-q",
                "--json",
                "--engine",
                "serial",
            ]
            decoding = best([sys.executable, "-c", DECODE, *map(str, paths)], given.times)
            scoring = best(command, given.times)
            size = sum(path.stat().st_size for path in paths)
            print(
                f"{name:8s} {size / 1e9:6.3f} GB | decoded in {decoding[0]:6.2f} s, {decoding[1]:4.0f} MB | "
                f"scored in {scoring[0]:6.2f} s, {scoring[1]:4.0f} MB | {scoring[0] / decoding[0]:.2f} times",
                flush=True,
            )


if __name__ == "__main__":
    main()
