"""What one reward costs, alone and in a batch: ``python bench/reward.py``.

The best of many short runs, in microseconds of this process a document, so that others on the machine count less; the
goal is 50 for exact_match, one document at a time.
"""

from __future__ import annotations

from functools import partial
from time import process_time
from timeit import repeat as repeat_wall

from evalcore import Answer, Generate, Instance, Sample, Step, score_doc
from evalcore.adapters.reward import Reward, make_reward

TEXT = "There are 3 cars with 4 wheels each, which makes 3 * 4 = 12 wheels.\nThe answer is 12."
LAST_NUMBER = Step.of("regex", regex_pattern=r"(-?[0-9]+)", group_select=-1)
BATCH = 512
repeat = partial(repeat_wall, timer=process_time)
REWARDS = {
    "exact_match": make_reward("exact_match"),
    "exact_match after regex": make_reward("exact_match", [LAST_NUMBER]),
    "the same, two options": make_reward("exact_match", [LAST_NUMBER], ignore_case=True, ignore_punctuation=True),
    "f1": make_reward("f1"),
}


def alone(reward: Reward, times: int = 500) -> float:
    """Microseconds of one document at a time."""
    return min(repeat(lambda: reward(TEXT, "12"), number=times, repeat=30)) / times * 1e6


def together(reward: Reward) -> float:
    """Microseconds a document in a batch."""
    texts, golds = [f"{TEXT} {i}" for i in range(BATCH)], ["12"] * BATCH
    return min(repeat(lambda: reward.rewards(texts, golds), number=1, repeat=30)) / BATCH * 1e6


def general(reward: Reward, times: int = 100) -> float:
    """Microseconds of the same document as a task of its own."""
    sample, answer = Sample(0, gold="12"), Answer(Instance(reward.task.name, 0, 0, Generate("?")), (TEXT,))
    return min(repeat(lambda: score_doc(reward.task, sample, [answer]), number=times, repeat=10)) / times * 1e6


def main() -> None:
    print(f"{'us a document':<26}{'reward':>8}{f'of {BATCH}':>8}{'score_doc':>11}")
    for name, reward in REWARDS.items():
        print(f"{name:<26}{alone(reward):>8.1f}{together(reward):>8.1f}{general(reward):>11.1f}")


if __name__ == "__main__":
    main()
