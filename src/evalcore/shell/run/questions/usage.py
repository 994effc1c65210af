"""Requests, tokens, seconds and cost of a run, for ``run.json`` and the end of its table."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from msgspec import Struct, to_builtins

from evalcore.shell.answerlog.line import LoggedAnswer
from evalcore.shell.answerlog.spent import Spent
from evalcore.shell.config.prices import Prices


class Meter:
    """What replies took so far. It grows while a model is asked."""

    def __init__(self) -> None:
        self.requests = self.failed = self.retries = self.counted = 0
        self.prompt = self.completion = self.cached = 0
        self.seconds = array("d")

    @property
    def uncounted(self) -> int:
        """Replies whose tokens nobody counted."""
        return self.requests - self.failed - self.counted

    def add(self, spent: Spent | None, *, failed: bool) -> None:
        """Count one question that was asked."""
        self.requests += 1
        self.failed += failed
        if spent is None:
            return
        self.retries += spent.tries - 1
        if spent.prompt is not None and spent.completion is not None:
            self.counted += not failed
            self.prompt += spent.prompt
            self.completion += spent.completion
            self.cached += spent.cached
        if spent.seconds is not None and not failed:
            self.seconds.append(spent.seconds)

    def add_logged(self, answers: Iterable[LoggedAnswer]) -> None:
        """Count what answers of a log took."""
        for answer in answers:
            self.add(answer.spent, failed=answer.failure is not None)

    def merge(self, other: Meter) -> Meter:
        """A meter of both."""
        out = Meter()
        for name in ("requests", "failed", "retries", "counted", "prompt", "completion", "cached", "seconds"):
            setattr(out, name, getattr(self, name) + getattr(other, name))
        return out

    def charge(self, prices: Prices | None) -> float | None:
        """What the counted tokens cost."""
        return None if prices is None else prices.charge(self.prompt, self.completion, self.cached)


class Latency(Struct, frozen=True):
    """Seconds within which half, 90 % and 99 % of the replies came."""

    p50: float
    p90: float
    p99: float


class UsageNow(Struct, frozen=True):
    """What a command took itself, without what was in the log before it."""

    requests: int
    prompt_tokens: int | None
    completion_tokens: int | None
    wall_seconds: float
    tokens_per_second: float | None
    cost: float | None


class Usage(Struct, frozen=True):
    """What all answers of a run took, those of earlier commands that it resumed included.

    ``failed`` are requests without a reply, ``retries`` tries beyond the first. Tokens are None if no reply came with
    a count of them; ``uncounted_replies`` are those that did not, so with any of them the ``cost`` is the least it was.
    """

    requests: int
    failed: int
    retries: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_prompt_tokens: int | None
    uncounted_replies: int
    latency_seconds: Latency | None
    prices: Prices | None
    cost: float | None
    now: UsageNow

    def to_json(self) -> dict[str, object]:
        """As ``run.json`` has it under ``usage``."""
        return dict(to_builtins(self))


def sum_usage(before: Meter, now: Meter, wall: float, prices: Prices | None) -> Usage:
    """Sum what was in the log and what was asked now, in so many seconds.

    >>> meter = Meter()
    >>> meter.add(Spent(1000, 50, seconds=0.8, tries=2), failed=False)
    >>> usage = sum_usage(Meter(), meter, 2.0, Prices(input=0.15, output=0.6))
    >>> usage.requests, usage.retries, usage.prompt_tokens, usage.now.tokens_per_second, usage.latency_seconds.p50
    (1, 1, 1000, 25.0, 0.8)
    """
    both = before.merge(now)
    return Usage(
        both.requests,
        both.failed,
        both.retries,
        both.prompt if both.counted else None,
        both.completion if both.counted else None,
        both.cached if both.counted else None,
        both.uncounted,
        _find_quantiles(both.seconds),
        prices,
        both.charge(prices) if both.counted else None,
        UsageNow(
            now.requests,
            now.prompt if now.counted else None,
            now.completion if now.counted else None,
            round(wall, 3),
            round(now.completion / wall, 1) if now.counted and wall > 0 else None,
            now.charge(prices) if now.counted else None,
        ),
    )


def _find_quantiles(seconds: array[float]) -> Latency | None:
    if not seconds:
        return None
    import numpy as np

    return Latency(*(round(float(one), 4) for one in np.quantile(np.asarray(seconds), (0.5, 0.9, 0.99))))


def tell_usage(usage: Usage | None) -> str:
    """A line for people; empty where nothing was measured.

    >>> meter = Meter()
    >>> for _ in range(1234):
    ...     meter.add(Spent(37, 10, seconds=0.8), failed=False)
    >>> tell_usage(sum_usage(Meter(), meter, 60.0, Prices(input=5, output=15)))
    '1,234 requests, 45.7 k tokens in, 12.3 k out, median 0.8 s, $0.41'
    >>> meter.add(Spent(4340, 0, cached=4000), failed=False)
    >>> tell_usage(sum_usage(meter, Meter(), 0.0, None)).split(", ", 1)[1]
    '50.0 k tokens in (46.0 k computed, 4.0 k cached), 12.3 k out, median 0.8 s'
    >>> meter.add(Spent(seconds=0.9, tries=3), failed=False)
    >>> tell_usage(sum_usage(meter, Meter(), 0.0, Prices(input=5, output=15))).partition("out, ")[2]
    'median 0.8 s, 2 retries, at least $0.44 (1 reply came without a count of tokens)'
    """
    if usage is None or not (usage.latency_seconds or usage.prompt_tokens is not None):
        return ""
    least = "at least " if usage.uncounted_replies else ""
    parts = [f"{usage.requests:,} request{'s' * (usage.requests != 1)}" + _tell_now(usage)]
    if usage.prompt_tokens is not None and usage.completion_tokens is not None:
        parts += [f"{show_count(usage.prompt_tokens)} tokens in" + _tell_cached(usage)]
        parts += [f"{show_count(usage.completion_tokens)} out"]
    if usage.latency_seconds:
        parts.append(f"median {usage.latency_seconds.p50:.2g} s")
    parts += [f"{usage.failed:,} failed"] if usage.failed else []
    parts += [f"{usage.retries:,} retries"] if usage.retries > 1 else ["1 retry"] if usage.retries else []
    parts += [f"{least}{show_cost(usage.cost)}"] if usage.cost is not None else []
    count = usage.uncounted_replies
    lacking = f" ({count:,} {'reply' if count == 1 else 'replies'} came without a count of tokens)" if count else ""
    return ", ".join(parts) + lacking


def _tell_now(usage: Usage) -> str:
    return f" ({usage.now.requests:,} now)" if usage.now.requests != usage.requests else ""


def _tell_cached(usage: Usage) -> str:
    """How many tokens of prompts were computed, and how many were at hand, if any were."""
    prompt, cached = usage.prompt_tokens or 0, usage.cached_prompt_tokens or 0
    return f" ({show_count(prompt - cached)} computed, {show_count(cached)} cached)" if cached else ""


def show_count(count: int) -> str:
    """A number of tokens, in short.

    >>> show_count(950), show_count(45_660), show_count(12_300_000)
    ('950', '45.7 k', '12.3 M')
    """
    for unit, size in (("M", 1_000_000), ("k", 1000)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return str(count)


def show_cost(cost: float) -> str:
    """A cost in dollars; a small one with more digits.

    >>> show_cost(1234.5), show_cost(0.42), show_cost(0.00123)
    ('$1,234.50', '$0.42', '$0.0012')
    """
    return f"${cost:,.2f}" if cost >= 0.1 or not cost else f"${cost:.4f}"
