"""The shapes in which trainers call rewards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from evalcore.adapters.reward.pooled_reward import PooledReward
from evalcore.adapters.reward.reward import Reward
from evalcore.core.records.errors import require_known, unknown
from evalcore.core.records.frozen_dict import FrozenRecord


class TrlReward(Struct, frozen=True, eq=False):
    """A reward as TRL's ``GRPOTrainer(reward_funcs=...)`` calls it; ``gold`` names the column of the dataset.

    >>> from evalcore.adapters.reward import make_reward
    >>> judge = TrlReward(make_reward("exact_match"), gold="answer")
    >>> judge(prompts=["2 + 2 = "], completions=[[{"role": "assistant", "content": "4"}]], answer=["4"])
    [1.0]
    """

    reward: Reward | PooledReward
    gold: str = "answer"

    @property
    def __name__(self) -> str:  # the name in TRL's logs
        return self.reward.name

    def __call__(
        self, prompts: Sequence[object], completions: Sequence[object], **columns: object
    ) -> Sequence[float | None]:
        golds = columns.get(self.gold)
        if not isinstance(golds, Sequence | np.ndarray):
            raise unknown("column of the dataset", self.gold, columns)
        return self.reward.rewards(completions, list(golds))


class VerlReward(FrozenRecord, frozen=True, eq=False):
    """A reward as verl's reward managers call it: one for all data sources, or one for each by name.

    >>> from evalcore.adapters.reward import make_reward
    >>> compute_score = VerlReward({"openai/gsm8k": make_reward("exact_match")})
    >>> compute_score(data_source="openai/gsm8k", solution_str="4", ground_truth="4", extra_info=None)
    1.0
    """

    reward: Reward | PooledReward | Mapping[str, Reward | PooledReward]

    def __call__(
        self, data_source: str, solution_str: object, ground_truth: object, extra_info: object = None, **more: object
    ) -> float | None:
        return self._of(data_source)(solution_str, ground_truth)

    def batch(
        self,
        data_sources: Sequence[str],
        solution_strs: Sequence[object],
        ground_truths: Sequence[object],
        extra_infos: object = None,
        **more: object,
    ) -> list[float | None]:
        """Reward many at once, for verl's batch manager."""
        rows = list(zip(data_sources, solution_strs, ground_truths, strict=True))
        found: dict[int, float | None] = {}
        for source in dict.fromkeys(data_sources):
            at = [i for i, row in enumerate(rows) if row[0] == source]
            rewards = self._of(source).rewards([rows[i][1] for i in at], [rows[i][2] for i in at])
            found.update(zip(at, rewards, strict=True))
        return [found[i] for i in range(len(rows))]

    def _of(self, source: str) -> Reward | PooledReward:
        if not isinstance(self.reward, Mapping):
            return self.reward
        require_known("data source", [source], self.reward)
        return self.reward[source]
