"""A reward scored in processes that can be killed: what hangs or crashes costs one completion its reward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType

from msgspec import Struct

from evalcore.adapters.reward.reward import Reward
from evalcore.adapters.texts import list_items, read_completion
from evalcore.adapters.verifiers import VerifierPool
from evalcore.core.records.errors import EvalError
from evalcore.core.records.outcome import Failed, Ok, Outcome


class PooledReward(Struct, frozen=True, eq=False):
    """A reward through a pool; ``pool_reward`` makes one. Pickled, it has workers of its own where it arrives.

    ``failed`` is the reward where nothing was judged: no answer, no verdict in time, an error, a process that ended.
    """

    pool: VerifierPool
    name: str
    failed: float | None
    unscorable: float | None
    scale: float = 1.0

    def __call__(self, completion: object, gold: object) -> float | None:
        return self.rewards((completion,), (gold,))[0]

    def rewards(self, completions: Sequence[object], golds: Sequence[object]) -> list[float | None]:
        """Reward many completions, in their order, by all workers at once."""
        return [self.value(one) for one in self.outcomes(completions, golds)]

    def value(self, outcome: Outcome) -> float | None:
        """Convert an outcome to a reward."""
        if isinstance(outcome, Ok) and isinstance(outcome.score, float):
            return outcome.score * self.scale
        return self.failed if isinstance(outcome, Failed) else self.unscorable

    def outcomes(self, completions: Sequence[object], golds: Sequence[object]) -> list[Outcome]:
        """Score each completion, or say why it has no score."""
        texts = [read_completion(one) for one in list_items(completions, "completions")]
        if len(texts) != len(golds):
            raise EvalError(f"expected a gold for every completion, got {len(golds)} for {len(texts)}")
        calls = [(text, gold) for text, gold in zip(texts, golds, strict=True) if not isinstance(text, Failed)]
        scored = iter(self.pool.outcomes(calls))
        return [text if isinstance(text, Failed) else next(scored) for text in texts]

    def __enter__(self) -> PooledReward:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, wrong: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pool.close()


def pool_reward(
    verify: Reward | str | Callable[[str, object], object],
    *,
    failed: float | None,
    deadline: float,
    workers: int = 2,
    startup: float = 60.0,
    memory: int | None = None,
    max_calls: int | None = None,
) -> PooledReward:
    """Score a reward, or a function of a text and a gold, through a ``VerifierPool`` with these limits.

    What the trainer gets where nothing was judged has no default: NaN or None, which TRL leaves out, or a number.

    >>> with pool_reward("operator:eq", failed=None, deadline=60) as reward:
    ...     reward.rewards(["4", "5", None], ["4", "4", "4"])
    [1.0, 0.0, None]
    """
    pool = VerifierPool(
        verify.outcome if isinstance(verify, Reward) else verify,
        deadline=deadline,
        workers=workers,
        startup=startup,
        memory=memory,
        max_calls=max_calls,
    )
    if isinstance(verify, Reward):
        return PooledReward(pool, verify.name, failed, verify.unscorable, verify.scale)
    return PooledReward(pool, pool.name, failed, failed)
