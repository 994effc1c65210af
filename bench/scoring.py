"""Everything after the model call: lm-eval and evalcore on the same answers, in one process, side by side.

lm-eval runs as its ``evaluate()`` runs by default; the clock starts when the model has returned its last reply.

    python bench/scoring.py [--docs 2000] [--json]
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import time
from collections.abc import Callable

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
logging.disable(logging.WARNING)

import datasets  # noqa: E402
import numpy as np  # noqa: E402
from lm_eval import evaluator  # noqa: E402
from lm_eval.api.model import LM  # noqa: E402
from lm_eval.api.task import ConfigurableTask  # noqa: E402
from words import WORDS  # noqa: E402

from evalcore import (  # noqa: E402
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
from evalcore.logs import request_table  # noqa: E402

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
        self.done = time.perf_counter()
        return replies

    loglikelihood = generate_until = loglikelihood_rolling = _all  # type: ignore[assignment]


def lm_eval_seconds(
    config: dict[str, object], reply: Callable[[object], object], *, log_samples: bool
) -> tuple[float, dict[str, object]]:
    task = ConfigurableTask(config={"dataset_path": "local", "test_split": "test", **config})
    model = Canned(reply)
    out = evaluator.evaluate(model, {"tasks": {config["task"]: task}, "groups": {}}, log_samples=log_samples)
    return time.perf_counter() - model.done, out["results"][config["task"]]


def sentence(rng: np.random.Generator, words: int) -> str:
    return " ".join(WORDS[i] for i in rng.integers(len(WORDS), size=words))


def generation(n: int, second: tuple[str, str, int]) -> dict[str, object]:
    """Word problems with worked answers; two regex pipelines, normalised exact_match."""
    rng = np.random.default_rng(0)
    golds = rng.integers(1, 5000, n).tolist()
    said = [gold if rng.random() < 0.6 else gold + 1 for gold in golds]
    docs = [{"question": sentence(rng, 45), "answer": f"{sentence(rng, 40)} = {g}\n#### {g:,}"} for g in golds]
    texts = [
        f"First {sentence(rng, 15)} 12 * 3 = 36, then {sentence(rng, 15)}. The answer is {s}.\n#### {s}" for s in said
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
        {"question": sentence(rng, 30), "choices": [sentence(rng, k) for k in (3, 6, 4, 5)], "gold": g} for g in golds
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
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        report = report_task(score_task(case["task"], case["samples"], case["asked"].answered(case["replies"])))
        best = min(best, time.perf_counter() - start)
    return best, {str(key): report.get(key).value for key in case["keys"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    n = given.docs
    rows = []
    for label, wanted, case in (
        ("generation, two regex pipelines", 100, generation(n, ("answer", ANSWER, 0))),
        ("generation, strict and last number", None, generation(n, ("flexible", FLEXIBLE, -1))),
        ("multiple choice, four choices", 50, choices(n)),
    ):
        logged, theirs = lm_eval_seconds(case["config"], case["reply"], log_samples=True)
        bare, _ = lm_eval_seconds(case["config"], case["reply"], log_samples=False)
        ours, values = evalcore_seconds(case)
        assert all(abs(values[key] - theirs[key]) < 1e-12 for key in values), (values, theirs)
        rows.append(
            {
                "work": label,
                "lm-eval us/doc": round(logged / n * 1e6, 1),
                "without its sample log": round(bare / n * 1e6, 1),
                "evalcore us/doc": round(ours / n * 1e6, 2),
                "ratio": round(logged / ours, 1),
                "ratio without log": round(bare / ours, 1),
                "wanted": wanted,
            }
        )
    if given.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(" | ".join(f"{key}: {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
