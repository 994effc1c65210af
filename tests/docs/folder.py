"""The folder that the pages speak of: recorded runs, logs, tables and task files under the names that readers see there."""

from __future__ import annotations

import gzip
import json
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from evalcore.shell.cli import main
from tests.shell.sample_runs import write_run
from tests.shell.test_answer_faults import inspect_zip

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples" / "quickstart"
CONFIG = """model: dummy
tasks: [quickstart_knowledge]
include_path: examples/quickstart/tasks
output_path: runs/config
"""
RUNS = {
    "quickstart": "run examples/quickstart/config.yaml",
    "b": "run examples/quickstart/config.yaml --model dummy --model_args ''",
    "edited": "run examples/quickstart/config.yaml --include_path edited",
    "again": "score runs/quickstart",
}
COPIES = {"quickstart": ("a", "first", "mine", "old", "new", "int4", "full", "smollm2"), "b": ("c",)}
"""Runs under further names."""
GSM8K = {
    "task": "gsm8k",
    "output_type": "generate_until",
    "doc_to_text": "{{question}}",
    "doc_to_target": "{{answer}}",
    "filter_list": [
        {
            "name": "strict-match",
            "filter": [{"function": "regex", "regex_pattern": "= ([0-9]+)"}, {"function": "take_first"}],
        }
    ],
    "metric_list": [{"metric": "exact_match"}],
}

SUBJECTS = ("art", "law")


def build_folder(home: Path, patch: pytest.MonkeyPatch) -> None:
    """Fill a folder with what pages speak of."""
    patch.chdir(home)
    shutil.copytree(ROOT / "examples", home / "examples")
    (home / "config.yaml").write_text(CONFIG)
    (home / "gsm8k.yaml").write_text(json.dumps(GSM8K))
    shutil.copytree(QUICKSTART / "tasks", home / "edited")
    template = home / "edited" / "_arithmetic_template_yaml"
    template.write_text(template.read_text().replace("group_select: -1", "group_select: 0"))
    for name, command in RUNS.items():
        words = shlex.split(command)
        assert main([*words, "--output_path" if words[0] == "run" else "-o", f"runs/{name}", "-q"]) == 0
    for name, others in COPIES.items():
        for other in others:
            shutil.copytree(home / "runs" / name, home / "runs" / other)
    write_tables(home)
    write_logs(home)


def write_large(home: Path) -> None:
    """Write a run that is large enough for a gate to be shown something: right choices are short, which the dummy likes."""
    choices = ["a", "b" * 12, "c" * 12, "d" * 12]
    likely = {"output_type": "multiple_choice", "doc_to_text": "{{q}}", "doc_to_choice": choices, "doc_to_target": 0}
    rolling = {"output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{q}}"}
    tasks = [
        {"task": "mmlu_all", "test_split": "test", **likely},
        {"task": "wikitext", "test_split": "test", **rolling},
    ]
    data = {"mmlu_all": list_rows(1_500), "wikitext": list_rows(30)}
    config = {"model": "dummy", "tasks": tasks, "data": data, "output_path": "runs/new"}
    (home / "large.yaml").write_text(json.dumps(config))
    shutil.rmtree(home / "runs" / "new")
    shutil.rmtree(home / "runs" / "old")
    assert main(["run", "large.yaml", "-q"]) == 0
    shutil.copytree(home / "runs" / "new", home / "runs" / "old")


def list_rows(count: int) -> list[dict[str, str]]:
    return [{"q": f"This is text number {at}, " + "and it is as long as the others, " * 4} for at in range(count)]


PREPARED: dict[str, Callable[[Path], None]] = {"docs/compare.md": write_large}
"""What a page needs beside the rest."""


def write_tables(home: Path) -> None:
    """Write the tables that pages begin with."""
    letters = [chr(65 + at % 4) for at in range(12)]
    quiz = [
        {"text": f"What is {at} + 1?", "key": letter, **{one: f"{at + place}" for place, one in enumerate("ABCD")}}
        for at, letter in enumerate(letters)
    ]
    asked = [{"question": f"What is {at} + 1?", "answer": str(at + 1)} for at in range(12)]
    answers = [
        {"qid": at, "reply": f"It is {said}.", "target": gold, "label": f"It is {gold}.", "subject": SUBJECTS[at % 2]}
        for at, (said, gold) in enumerate(zip(letters, [*letters[:8], *"AAAA"], strict=True))
    ]
    write_csv(home / "quiz.csv", quiz)
    write_csv(home / "questions.csv", asked)
    write_lines(home / "questions.jsonl", asked)
    write_lines(home / "sums.jsonl", asked)
    write_csv(home / "answers.csv", answers)
    write_csv(home / "losses.csv", [{"loss": 0.5 + at / 8} for at in range(8)])
    rows = [
        {"id": f"{mode}-{at}", "mode": mode, "generations": ["a"] * 8, "correct": [(at + k) % 3 == 0 for k in range(8)]}
        for mode in ("input", "output")
        for at in range(12)
    ]
    with gzip.open(home / "data.jsonl.gz", "wt") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)


def write_logs(home: Path) -> None:
    """Write logs as lm-eval does."""
    scores = [float(at % 5 > 0) for at in range(40)]
    write_run(home / "lm_eval_out", {"gsm8k": scores}, "exact_match", {})
    write_run(home / "logs", {"gsm8k": scores}, "exact_match", {})
    rows = [
        {
            "doc_id": at,
            "doc": {"question": f"{at} + {at}?"},
            "target": str(2 * at),
            "arguments": [[f"{at} + {at}?", {"until": []}]],
            "resps": [[f"{at} + {at} = {2 * at + (at % 5 == 0)}"]],
            "filtered_resps": [str(2 * at + (at % 5 == 0))],
            "filter": "strict-match",
            "exact_match": float(at % 5 > 0),
        }
        for at in range(40)
    ]
    write_lines(home / "samples_gsm8k.jsonl", rows)
    write_lines(home / "big.jsonl", rows)
    for name in ("logs/recorded.eval", "a.eval", "b.eval"):
        (home / name).write_bytes(inspect_zip())
    (home / "runs" / "packed").mkdir()
    with gzip.open(home / "runs" / "packed" / "samples_gsm8k.jsonl.gz", "wt") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)


def write_csv(path: Path, rows: list[dict[str, object]]) -> None:
    cells = [list(rows[0]), *([str(cell) for cell in row.values()] for row in rows)]
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in cells))


def write_lines(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def load_stand_in(path: str, name: object = None, **_: object) -> object:
    """A few documents in place of a dataset of the hub, which no test asks."""
    import datasets

    sums = [{"question": f"What is {at} + 1?", "answer": f"{at} + 1 = {at + 1}\n#### {at + 1}"} for at in range(8)]
    choices = {"text": ["one", "two", "three", "four"], "label": list("ABCD")}
    items = [
        {"id": str(at), "question": f"Which is {at}?", "choices": choices, "answerKey": "ABCD"[at % 4]}
        for at in range(8)
    ]
    rows = {"openai/gsm8k": sums, "allenai/ai2_arc": items}[path]
    table = datasets.Dataset.from_list(rows)
    return datasets.DatasetDict(train=table, validation=table, test=table)
