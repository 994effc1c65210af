"""Everything after the model call: lm-eval and evalcore on the same answers, in one process, side by side.

lm-eval runs as its ``evaluate()`` runs by default; the clock starts when the model has returned its last reply.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from time import process_time

import datasets
import numpy as np
from lm_eval import evaluator
from lm_eval.api.model import LM
from lm_eval.api.task import ConfigurableTask

from bench.measure import best_seconds
from bench.rows import Row, at_least
from bench.texts import write_sentence
from evalcore import (
    GENERATE_UNTIL,
    MULTIPLE_CHOICE,
    MetricKey,
    MetricSpec,
    Pipeline,
    Sample,
    Step,
    Task,
    freeze_options,
    report_task,
    score_task,
)
from evalcore.logs import request_table

datasets.disable_progress_bars()
NORMALISED = {
    "ignore_case": True,
    "ignore_punctuation": False,
    "regexes_to_ignore": [",", "\\$", "(?s).*#### ", "\\.$"],
}
STRICT, ANSWER = r"#### (\-?[0-9\.\,]+)", r"The answer is (\-?[0-9\.\,]+)\."
FLEXIBLE = r"(-?[$0-9.,]{2,})|(-?[0-9]+)"


class Canned(LM):
    """A model whose replies are ready: what it costs after the last of them is all that is measured."""

    def __init__(self, reply: Callable[[object], object]) -> None:
        super().__init__()
        self.reply, self.done = reply, 0.0

    def _all(self, asked: list[object]) -> list[object]:
        replies = [self.reply(one) for one in asked]
        self.done = process_time()
        return replies

    loglikelihood = generate_until = loglikelihood_rolling = _all  # type: ignore[assignment]


def lm_eval_seconds(
    config: dict[str, object], reply: Callable[[object], object], *, log_samples: bool
) -> tuple[float, dict[str, object]]:
    task = ConfigurableTask(config={"dataset_path": "local", "test_split": "test", **config})
    model = Canned(reply)
    out = evaluator.evaluate(model, {"tasks": {config["task"]: task}, "groups": {}}, log_samples=log_samples)
    return process_time() - model.done, out["results"][config["task"]]


def generation(n: int, second: tuple[str, str, int]) -> dict[str, object]:
    """Word problems with worked answers; two regex pipelines, normalised exact_match."""
    rng = np.random.default_rng(0)
    golds = rng.integers(1, 5000, n).tolist()
    said = [gold if rng.random() < 0.6 else gold + 1 for gold in golds]
    docs = [
        {"question": write_sentence(rng, 45), "answer": f"{write_sentence(rng, 40)} = {g}\n#### {g:,}"} for g in golds
    ]
    texts = [
        f"First {write_sentence(rng, 15)} 12 * 3 = 36, then {write_sentence(rng, 15)}. The answer is {s}.\n#### {s}"
        for s in said
    ]
    name, pattern, select = second
    config = {
        "task": "generation",
        "custom_dataset": lambda **_: {"test": datasets.Dataset.from_list(docs)},
        "output_type": "generate_until",
        "doc_to_text": "Question: {{question}}\nAnswer:",
        "doc_to_target": "{{answer}}",
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True, **NORMALISED}],
        "filter_list": [
            {"name": "strict", "filter": [{"function": "regex", "regex_pattern": STRICT}, {"function": "take_first"}]},
            {
                "name": name,
                "filter": [
                    {"function": "regex", "regex_pattern": pattern, "group_select": select},
                    {"function": "take_first"},
                ],
            },
        ],
        "generation_kwargs": {"until": ["Q:"]},
    }
    task = Task(
        "generation",
        GENERATE_UNTIL,
        (MetricSpec("exact_match", options=freeze_options(NORMALISED)),),
        (
            Pipeline("strict", (Step.of("regex", regex_pattern=STRICT), Step.of("take_first"))),
            Pipeline(name, (Step.of("regex", regex_pattern=pattern, group_select=select), Step.of("take_first"))),
        ),
    )
    samples = [Sample(i, gold=doc["answer"], doc=json.dumps(doc).encode()) for i, doc in enumerate(docs)]
    asked = request_table("generation", range(n), [0] * n)
    keys = [MetricKey("exact_match", "strict"), MetricKey("exact_match", name)]
    return {
        "config": config,
        "reply": lambda one: texts[one.doc_id],
        "task": task,
        "samples": samples,
        "asked": asked,
        "replies": texts,
        "keys": keys,
    }


def choices(n: int) -> dict[str, object]:
    """Four-way multiple choice: acc, acc_norm, brier_score."""
    rng = np.random.default_rng(0)
    golds = rng.integers(4, size=n).tolist()
    lls = rng.normal(-12, 4, (n, 4)).tolist()
    docs = [
        {"question": write_sentence(rng, 30), "choices": [write_sentence(rng, k) for k in (3, 6, 4, 5)], "gold": g}
        for g in golds
    ]
    names = ("acc", "acc_norm", "brier_score")
    config = {
        "task": "choices",
        "custom_dataset": lambda **_: {"test": datasets.Dataset.from_list(docs)},
        "output_type": "multiple_choice",
        "doc_to_text": "{{question}}",
        "doc_to_target": "gold",
        "doc_to_choice": "choices",
        "metric_list": [{"metric": name} for name in names],
    }
    task = Task("choices", MULTIPLE_CHOICE, tuple(map(MetricSpec, names)))
    samples = [
        Sample(i, gold=doc["gold"], choices=tuple(doc["choices"]), doc=json.dumps(doc).encode())
        for i, doc in enumerate(docs)
    ]
    asked = request_table("choices", np.repeat(np.arange(n), 4), np.tile(np.arange(4), n))
    replies = [(ll, False) for row in lls for ll in row]
    return {
        "config": config,
        "reply": lambda one: (lls[one.doc_id][one.idx], False),
        "task": task,
        "samples": samples,
        "asked": asked,
        "replies": replies,
        "keys": list(map(MetricKey, names)),
    }


def evalcore_seconds(case: dict[str, object], rounds: int = 5) -> tuple[float, dict[str, float]]:
    reports = []

    def work() -> None:
        reports.append(report_task(score_task(case["task"], case["samples"], case["asked"].answered(case["replies"]))))

    return best_seconds(work, rounds), {str(key): reports[-1].get(key).value for key in case["keys"]}


def measure_rows(*, docs: int = 2000) -> Iterator[Row]:
    logging.disable(logging.WARNING)
    for what, wanted, case in (
        ("generation, two regex pipelines", 100, generation(docs, ("answer", ANSWER, 0))),
        ("generation, strict and last number", 0, generation(docs, ("flexible", FLEXIBLE, -1))),
        ("multiple choice, four choices", 50, choices(docs)),
    ):
        logged, theirs = lm_eval_seconds(case["config"], case["reply"], log_samples=True)
        bare, _ = lm_eval_seconds(case["config"], case["reply"], log_samples=False)
        ours, values = evalcore_seconds(case)
        assert all(abs(values[key] - theirs[key]) < 1e-12 for key in values), (values, theirs)
        each = 1e6 / docs
        targets = (at_least(wanted),) if wanted else ()
        yield Row(what=what, peer=logged * each, ours=ours * each, unit="µs a document", targets=targets)
        yield Row(what=f"{what}, no sample log", peer=bare * each, ours=ours * each, unit="µs a document")
