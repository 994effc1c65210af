"""Scoring a sample log again: its time beside only decoding it, and the memory it takes.

Two logs of half the size each, in lm-eval's form and of our own words: generation with few-shot prompts and two
filters, and four choices. Each is decoded line by line with msgspec, then scored by ``evalcore score``, each in a
process of its own whose time and peak memory the system reports.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bench.measure import best_of
from bench.rows import Row, at_most
from bench.texts import write_sentence

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
        f"Q: {write_sentence(np.random.default_rng(i), 45)}?\nA: {write_sentence(np.random.default_rng(i), 60)}"
        for i in range(5)
    )
    options = {"until": ["Q:", "</s>"], "do_sample": False, "temperature": 0.0}
    for name in ("strict-match", "flexible-extract"):
        rng, written, doc_id = np.random.default_rng(0), 0, 0
        while written < size // 2:
            answer = int(rng.integers(2, 5000))
            question = write_sentence(rng, 45)
            said = f"{write_sentence(rng, 60)} so it is {answer + int(rng.random() < 0.3)}.\n#### {answer}"
            doc = {"question": question, "answer": str(answer)}
            made = row(doc_id, doc, str(answer), [(f"{shots}\n\nQ: {question}?\nA:", options)], [said])
            yield {**made, "filter": name, "metrics": ["exact_match"], "exact_match": 1.0}
            written, doc_id = written + 800 + len(shots) + len(question) * 2 + len(said) * 2, doc_id + 1


def endings(size: int) -> Iterator[dict[str, object]]:
    """One context, four ends."""
    rng, written, doc_id = np.random.default_rng(1), 0, 0
    while written < size:
        context, ends = write_sentence(rng, 180), [write_sentence(rng, 12) for _ in range(4)]
        gold = int(rng.integers(4))
        said = [[str(one), "False"] for one in rng.normal(-30, 6, 4).tolist()]
        doc = {"context": context, "endings": ends, "gold": gold}
        made = row(doc_id, doc, str(gold), [(context, f" {end}") for end in ends], said)
        yield {**made, "metrics": ["acc", "acc_norm"], "acc": 1.0, "acc_norm": 1.0}
        written, doc_id = written + 5 * len(context) + 3 * sum(map(len, ends)) + 900, doc_id + 1


LOGS: dict[str, Callable[[int], Iterator[dict[str, object]]]] = {"sums": sums, "endings": endings}


def make_logs(folder: Path, size: int) -> None:
    """Both logs and the results beside them."""
    for name, rows in LOGS.items():
        with open(folder / f"samples_{name}.jsonl", "w", encoding="ascii") as file:
            for one in rows(size // 2):
                file.write(json.dumps(one) + "\n")
    results = {"results": {name: {"alias": name} for name in LOGS}, "configs": CONFIGS, "group_subtasks": {}}
    (folder / "results.json").write_text(json.dumps(results), encoding="ascii")


def measure_rows(*, gb: float = 1.0, times: int = 3, folder: str = "") -> Iterator[Row]:
    """Each log alone, then both; the least time counts, and the largest peak."""
    targets = (at_most(2, "floors"), at_most(100, "memory"))
    with TemporaryDirectory(dir=folder or None) as made:
        place = Path(made)
        make_logs(place, int(gb * 1e9))
        for name in (*LOGS, "both"):
            paths = [place / f"samples_{one}.jsonl" for one in (LOGS if name == "both" else [name])]
            scored = [place] if name == "both" else paths
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
            decoding = best_of([sys.executable, "-c", DECODE, *map(str, paths)], times)
            scoring = best_of(command, times, codes=(0, 1))
            size = sum(path.stat().st_size for path in paths) / 1e6
            yield Row(
                what=f"{name}, {size:,.0f} MB",
                ours=scoring.seconds,
                unit="s",
                floor=decoding.seconds,
                memory=scoring.memory,
                targets=targets,
            )
