"""Score a fixed synthetic set of tasks and print its result file: ``score_bytes.py [shuffle seed] [shards]``."""

from __future__ import annotations

import sys

import msgspec
import numpy as np

from evalcore import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    Answer,
    Failure,
    Generate,
    Instance,
    LogLikelihood,
    MetricSpec,
    Pipeline,
    Rolling,
    Sample,
    Step,
    Task,
    build_report,
    freeze_options,
    merge_scored,
    report_task,
    score_task,
)
from evalcore.groups import Group, GroupMetric, Leaf
from evalcore.lm_eval import lm_eval_results, sample_rows
from evalcore.logs import tabulate_answers
from evalcore.stats import clusters_of

WORDS = ("the", "cat", "sat", "on", "a", "mat", "Zürich", "日本", "42", "3.5", "answer", "is", "", "…")
CHOICE_METRICS = ("acc", "acc_norm", "acc_bytes", "brier_score", "choice_prob", "likelihood", "mcc", "ece", "acc_all")
NUMBER = Step.of("regex", regex_pattern=r"(-?[0-9.]+)", group_select=-1)


def phrase(dice, most=8):
    return " ".join(WORDS[i] for i in dice.integers(0, len(WORDS), int(dice.integers(1, most))))


def some(dice, reply):
    return Failure("timeout") if dice.random() < 0.03 else reply


def likelihood(dice):
    value = -np.inf if dice.random() < 0.02 else -float(np.round(dice.exponential(5), 2))
    return value, bool(dice.random() < 0.3), int(dice.integers(1, 5))


def choice_task(name, dice, n):
    samples, answers = [], []
    for i in range(n):
        choices = tuple(phrase(dice, 4) for _ in range(int(dice.integers(2, 6))))
        gold = int(dice.integers(0, len(choices)))
        samples.append(Sample(i, (gold, 0) if dice.random() < 0.2 else gold, choices, cluster=f"p{i // 3}"))
        answers += [
            Answer(Instance(name, i, j, LogLikelihood("Q", text)), (some(dice, likelihood(dice)),))
            for j, text in enumerate(choices)
        ]
    metrics = (*map(MetricSpec, CHOICE_METRICS), MetricSpec("f1", options=freeze_options(average="macro")))
    return Task(name, MULTIPLE_CHOICE, metrics, config=freeze_options(b=1, a={"z": [1], "y": None})), samples, answers


def generation_task(name, dice, n):
    samples, answers = [], []
    for i in range(n):
        golds = tuple(phrase(dice) for _ in range(int(dice.integers(1, 3))))
        samples.append(Sample(i, golds if len(golds) > 1 else golds[0], cluster=f"p{i // 2}"))
        texts = [golds[0] if dice.random() < 0.4 else phrase(dice) for _ in range(3)]
        answers.append(Answer(Instance(name, i, 0, Generate("Q"), 3), tuple(some(dice, text) for text in texts)))
    first = tuple(map(MetricSpec, ("exact_match", "f1", "anls", "bleu", "chrf", "ter")))
    several = (MetricSpec("exact_match", reducers=("mean", "pass@2", "maj@3")), MetricSpec("f1", reducers=("max",)))
    filters = (
        Pipeline("none", (Step.of("take_first"),), first),
        Pipeline("number", (NUMBER, Step.of("majority_vote")), first[:1]),
        Pipeline("all", (Step.of("remove_whitespace"),), several),
    )
    return Task(name, GENERATE_UNTIL, filters=filters, ragged=True), samples, answers


def likelihood_task(name, dice, n):
    samples = [Sample(i, "target", cluster=f"p{i // 2}") for i in range(n)]
    asked = [Instance(name, i, 0, LogLikelihood("Q", "target")) for i in range(n)]
    return Task(name, LOGLIKELIHOOD), samples, [Answer(one, (some(dice, likelihood(dice)),)) for one in asked]


def rolling_task(name, dice, n):
    texts = [phrase(dice, 30) for _ in range(n)]
    samples = [Sample(i, text, cluster=f"p{i // 2}") for i, text in enumerate(texts)]
    asked = [Instance(name, i, 0, Rolling(text)) for i, text in enumerate(texts)]
    return (
        Task(name, LOGLIKELIHOOD_ROLLING),
        samples,
        [Answer(one, (some(dice, likelihood(dice)[0]),)) for one in asked],
    )


def own_task(name, dice, n):
    """A task with process_results of its own, which emits one metric without declaring it."""
    samples = [Sample(i, doc=msgspec.json.encode({"gold": int(dice.integers(0, 9))})) for i in range(n)]
    asked = [Instance(name, i, 0, Generate("Q")) for i in range(n)]
    answers = [Answer(one, (str(int(dice.integers(0, 9))),)) for one in asked]

    def process(doc, results):
        distance = abs(doc["gold"] - int(results[0]))
        return {"near": distance < 3, "far": distance / 9, "one": 1.0}

    return (
        Task(name, GENERATE_UNTIL, (MetricSpec("near"), MetricSpec("far")), process_results=process),
        samples,
        answers,
    )


def make_set():
    dice = np.random.Generator(np.random.PCG64(20240607))
    return [
        choice_task("mc_a", dice, 61),
        choice_task("mc_b", dice, 34),
        choice_task("mc_c", dice, 15),
        generation_task("gen_a", dice, 40),
        generation_task("gen_b", dice, 23),
        likelihood_task("ll", dice, 50),
        rolling_task("roll_a", dice, 30),
        rolling_task("roll_b", dice, 20),
        own_task("own", dice, 25),
    ]


def make_trees():
    acc = (GroupMetric("acc"), GroupMetric("acc_norm", weight_by_size=False), GroupMetric("f1", aggregation="macro"))
    inner = Group("inner", (Leaf("mc_b", None), Leaf("mc_c", None)), acc, metadata=freeze_options(version=2))
    by_child = (GroupMetric("acc", average="children"), GroupMetric("mcc", aggregation="pool"))
    outer = Group("outer", (Leaf("mc_a", None), inner, Group("other", (Leaf("mc_b", None),))), by_child, "Outer")
    text = (GroupMetric("exact_match"), GroupMetric("bleu", aggregation="pool"))
    rolls = (GroupMetric("word_perplexity"), GroupMetric("bits_per_byte"))
    return [
        outer,
        Group("texts", (Leaf("gen_a", None), Leaf("gen_b", None)), text),
        Group("rolls", (Leaf("roll_a", None), Leaf("roll_b", None)), rolls),
    ]


def shuffled(items, dice):
    return [items[i] for i in dice.permutation(len(items)).tolist()] if dice is not None else list(items)


def score(task, samples, answers, dice, shards):
    samples, answers = shuffled(samples, dice), shuffled(answers, dice)
    parts = [
        score_task(
            task,
            [one for one in samples if one.doc_id % shards == shard],
            [one for one in answers if one.doc_id % shards == shard],
            keep_replies=True,
        )
        for shard in range(shards)
    ]
    return merge_scored(shuffled(parts, dice))


def main(seed, shards):
    dice = None if seed is None else np.random.Generator(np.random.PCG64(seed))
    reports, logs = [], {}
    for task, samples, answers in make_set():
        scored = score(task, samples, answers, dice, shards)
        clusters = None if samples[0].cluster is None else clusters_of(task.name, samples)
        reports += [report_task(scored, clusters=clusters)]
        logs[task.name] = sample_rows(scored, samples, tabulate_answers(answers))
    return msgspec.json.encode(lm_eval_results(build_report(reports, make_trees()), logs))


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:]]
    sys.stdout.buffer.write(main(given[0] if given and given[0] >= 0 else None, given[1] if len(given) > 1 else 1))
