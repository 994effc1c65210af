"""Building a task's requests: lm-eval and evalcore on the same documents, in one process, side by side.

lm-eval's clock runs over ``build_all_requests`` alone, with its documents loaded and its task made; evalcore's over
all of ``build_task``, which also decodes the configuration, compiles the templates and makes the samples. lm-eval
compiles a template whenever it renders one, so that it takes minutes for what it is given in full: it gets the first
documents only.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import datasets
from lm_eval.api.task import ConfigurableTask

from bench.measure import best_seconds
from bench.rows import Row, at_least
from evalcore import Generate, LogLikelihood
from evalcore.shell.prompts.build import build_task
from evalcore.shell.prompts.ready_task import Asking

datasets.disable_progress_bars()

Config = dict[str, object]
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "joule", "karst", "larch")


def documents(count: int, seed: int) -> list[Config]:
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


SPLITS: Config = {"training_split": "train", "test_split": "test", "fewshot_split": "train"}
TASKS: dict[str, Config] = {
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
WANTED = {name: (at_least(50),) for name in ("multiple choice", "generation", "heavy templates")}
"""Without templates there is little to gain."""


def make_theirs(config: Config, data: dict[str, list[Config]], shots: int) -> ConfigurableTask:
    loaded = {name: datasets.Dataset.from_list(rows) for name, rows in data.items()}
    task = ConfigurableTask(config={**config, "dataset_path": "none", "custom_dataset": lambda **_: loaded})
    task.set_config("num_fewshot", shots)
    task.set_fewshot_seed(1234)
    return task


def compare(name: str, config: Config, data: dict[str, list[Config]], shots: int, count: int) -> Row:
    """Microseconds a document of both, which must make the same prompts."""
    ours: Config = {"task": "bench", **config, **SPLITS}
    task, asking = make_theirs(ours, data, shots), Asking(num_fewshot=shots)
    theirs = best_seconds(lambda: task.build_all_requests(limit=count)) / count
    mine = best_seconds(lambda: build_task(ours, data, asking), 5) / len(data["test"])
    first = build_task(ours, data, Asking(num_fewshot=shots, limit=count)).requests
    assert [one.args[0] for one in task.instances] == [prompt_of(one) for one in first], f"{name}: other prompts"
    return Row(
        what=f"{name}, {shots}-shot",
        peer=theirs * 1e6,
        ours=mine * 1e6,
        unit="µs a document",
        targets=WANTED.get(name, ()),
    )


def prompt_of(request: Generate | LogLikelihood) -> str:
    return request.prompt if isinstance(request, Generate) else request.context


def measure_rows(*, docs: int = 2000, theirs: int = 300) -> Iterator[Row]:
    data = {"train": documents(200, 1), "test": documents(docs, 2)}
    return (compare(name, config, data, shots, theirs) for name, config in TASKS.items() for shots in (0, 1, 5))
