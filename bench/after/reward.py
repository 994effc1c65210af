"""What one reward costs, alone and in a batch: the best of many short runs."""

from __future__ import annotations

from collections.abc import Iterator

from bench.measure import best_seconds
from bench.rows import Row, at_most
from evalcore import Answer, Generate, Instance, Sample, Step, score_doc
from evalcore.adapters.reward import Reward, make_reward

TEXT = "There are 3 cars with 4 wheels each, which makes 3 * 4 = 12 wheels.\nThe answer is 12."
LAST_NUMBER = Step.of("regex", regex_pattern=r"(-?[0-9]+)", group_select=-1)
BATCH = 512
REWARDS = {
    "exact_match": make_reward("exact_match"),
    "exact_match after regex": make_reward("exact_match", [LAST_NUMBER]),
    "the same, two options": make_reward("exact_match", [LAST_NUMBER], ignore_case=True, ignore_punctuation=True),
    "f1": make_reward("f1"),
}


def alone(reward: Reward, times: int = 500) -> float:
    """Microseconds of one document at a time."""
    return best_seconds(lambda: [reward(TEXT, "12") for _ in range(times)], 30) / times * 1e6


def together(reward: Reward) -> float:
    """Microseconds a document in a batch."""
    texts, golds = [f"{TEXT} {i}" for i in range(BATCH)], ["12"] * BATCH
    return best_seconds(lambda: reward.rewards(texts, golds), 30) / BATCH * 1e6


def general(reward: Reward, times: int = 100) -> float:
    """Microseconds of the same document as a task of its own."""
    sample, answer = Sample(0, gold="12"), Answer(Instance(reward.task.name, 0, 0, Generate("?")), (TEXT,))
    return best_seconds(lambda: [score_doc(reward.task, sample, [answer]) for _ in range(times)], 10) / times * 1e6


def measure_rows() -> Iterator[Row]:
    unit = "µs a document"
    for name, reward in REWARDS.items():
        wanted = (at_most(50),) if name == "exact_match" else ()
        yield Row(what=f"{name}, alone", ours=alone(reward), unit=unit, targets=wanted)
        yield Row(what=f"{name}, in a batch of {BATCH}", ours=together(reward), unit=unit)
        yield Row(what=f"{name}, by score_doc", ours=general(reward), unit=unit)
