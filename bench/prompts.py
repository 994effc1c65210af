"""Building a task's requests: lm-eval and evalcore on the same documents, in one process, side by side.

lm-eval's clock runs over ``build_all_requests`` alone, with its documents loaded and its task made; evalcore's over
all of ``build_task``, which also decodes the configuration, compiles the templates and makes the samples. lm-eval
compiles a template whenever it renders one, so that it takes minutes for what it is given in full: it gets the first
``--theirs`` documents.

    python bench/prompts.py [--docs 2000] [--theirs 300] [--json]
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import time
from collections.abc import Callable

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
logging.disable(logging.WARNING)

import datasets  # noqa: E402
from lm_eval.api.task import ConfigurableTask  # noqa: E402

from evalcore import Generate, LogLikelihood  # noqa: E402
from evalcore.shell.prompts.build import build_task  # noqa: E402
from evalcore.shell.prompts.ready_task import Asking  # noqa: E402

datasets.disable_progress_bars()

Row = dict[str, object]
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "joule", "karst", "larch")


def documents(count: int, seed: int) -> list[Row]:
    """Questions of about 50 words with four choices, and what templates like to read."""
    rnd = random.Random(seed)
    return [
        {
            "id": f"doc-{i}",
            "question": " ".join(rnd.choices(WORDS, k=50)) + "? ",
            "choices": {"text": rnd.sample(WORDS, 4), "label": ["A", "B", "C", "D"]},
            "options": [" ".join(rnd.choices(WORDS, k=6)) for _ in range(4)],
            "answer": rnd.randrange(4),
            "solution": " ".join(rnd.choices(WORDS, k=30)) + f"\n#### {rnd.randrange(1000)}",
            "subject": rnd.choice(WORDS),
        }
        for i in range(count)
    ]


SPLITS: Row = {"training_split": "train", "test_split": "test", "fewshot_split": "train"}
TASKS: dict[str, Row] = {
    "multiple choice": {
        "output_type": "multiple_choice",
        "doc_to_text": "Question: {{question}}\nAnswer:",
        "doc_to_choice": "{{choices.text}}",
        "doc_to_target": "{{answer}}",
    },
    "columns only": {
        "output_type": "multiple_choice",
        "doc_to_text": "question",
        "doc_to_choice": "options",
        "doc_to_target": "answer",
    },
    "generation": {
        "output_type": "generate_until",
        "doc_to_text": "Question: {{question}}\nAnswer:",
        "doc_to_target": "{{solution}}",
        "generation_kwargs": {"until": ["Question:"], "do_sample": False, "temperature": 0.0},
    },
    "heavy templates": {
        "output_type": "multiple_choice",
        "description": "The following are questions about {{subject|replace('_', ' ')}}.\n\n",
        "doc_to_text": "{{question.strip()}}\n"
        "{% for one in options %}{{'ABCD'[loop.index0]}}. {{one|trim}}\n{% endfor %}"
        "{% if subject in ('amber', 'birch') %}Choose well.\n{% endif %}Answer:",
        "doc_to_choice": "{{choices.label}}",
        "doc_to_target": "{{choices.label[answer]}}",
    },
}


def make_theirs(config: Row, data: dict[str, list[Row]], shots: int) -> ConfigurableTask:
    loaded = {name: datasets.Dataset.from_list(rows) for name, rows in data.items()}
    task = ConfigurableTask(config={**config, "dataset_path": "none", "custom_dataset": lambda **_: loaded})
    task.set_config("num_fewshot", shots)
    task.set_fewshot_seed(1234)
    return task


def timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def compare(name: str, config: Row, data: dict[str, list[Row]], shots: int, count: int) -> Row:
    """Microseconds a document of both, and whether the prompts that both made are the same."""
    ours: Row = {"task": "bench", **config, **SPLITS}
    task, asking = make_theirs(ours, data, shots), Asking(num_fewshot=shots)
    theirs = timed(lambda: task.build_all_requests(limit=count)) / count
    mine = min(timed(lambda: build_task(ours, data, asking)) for _ in range(5)) / len(data["test"])
    first = build_task(ours, data, Asking(num_fewshot=shots, limit=count)).requests
    same = [one.args[0] for one in task.instances] == [prompt_of(one) for one in first]
    return {
        "task": name,
        "shots": shots,
        "lm-eval us/doc": round(theirs * 1e6, 1),
        "evalcore us/doc": round(mine * 1e6, 1),
        "ratio": round(theirs / mine, 1),
        "same prompts": same,
    }


def prompt_of(request: Generate | LogLikelihood) -> str:
    return request.prompt if isinstance(request, Generate) else request.context


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", type=int, default=2000)
    parser.add_argument("--theirs", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    data = {"train": documents(200, 1), "test": documents(given.docs, 2)}
    rows = [compare(name, config, data, shots, given.theirs) for name, config in TASKS.items() for shots in (0, 1, 5)]
    if given.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"microseconds a document: lm-eval on {given.theirs} documents, evalcore on {given.docs}, best of five runs")
    for row in rows:
        print(
            f"{row['task']:16} {row['shots']} shots  lm-eval {row['lm-eval us/doc']:>8}  "
            f"evalcore {row['evalcore us/doc']:>6}  {row['ratio']:>6}x  same prompts: {row['same prompts']}"
        )


if __name__ == "__main__":
    main()
