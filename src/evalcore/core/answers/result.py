"""Result records of one document, for scorers that look at one document at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import nan

import numpy as np
from msgspec import Struct

from evalcore.core.answers.batch import Batch, count_bytes, list_gold_texts, ll_batch, read_part, rolling_batch
from evalcore.core.answers.choice import mc_batch, spread
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    OutputType,
)


class LLResult(Struct, frozen=True):
    """One log-likelihood."""

    value: float
    greedy: bool = False
    tokens: int = 0
    target: str = ""


class RollingResult(Struct, frozen=True):
    """The log-likelihood of a whole text."""

    value: float
    text: str


class MCResult(Struct, frozen=True):
    """The log-likelihood of every choice, and which choices are right."""

    lls: tuple[float, ...]
    greedy: tuple[bool, ...]
    gold: tuple[int, ...]
    choices: tuple[str, ...] = ()
    tokens: tuple[int, ...] = ()
    unconditional: tuple[float, ...] = ()

    @property
    def chars(self) -> tuple[int, ...]:
        """Lengths of the choices in characters."""
        return tuple(map(len, self.choices))

    @property
    def bytes(self) -> tuple[int, ...]:
        """Lengths of the choices in UTF-8 bytes."""
        return tuple(map(count_bytes, self.choices))


class GenResult(Struct, frozen=True):
    """All generations of a document under a filter, and all its golds."""

    generations: tuple[object, ...]
    golds: tuple[str, ...]
    filter: str = "none"
    fell_back: tuple[bool, ...] = ()

    @property
    def repeats(self) -> int:
        return len(self.generations)


Result = LLResult | RollingResult | MCResult | GenResult


def _list_mc_results(batch: Batch) -> tuple[MCResult | str, ...]:
    made = mc_batch(batch)
    greedy = spread(made, read_part(made.flat, 1), 0.0)
    tokens = spread(made, read_part(made.flat, 2), 0.0)
    prior = spread(made, read_part(made.flat, 0), nan, unconditional=True)
    out: list[MCResult | str] = []
    for i, n in enumerate(made.counts.tolist()):
        out.append(
            made.problems.get(i)
            or MCResult(
                tuple(made.lls[i, :n].tolist()),
                tuple(map(bool, greedy[i, :n].tolist())),
                tuple(np.flatnonzero(made.is_gold[i]).tolist()),
                tuple(batch.samples[i].choices),
                tuple(map(int, np.nan_to_num(tokens[i, :n]).tolist())),
                tuple(prior[i, :n].tolist()) if made.paired[i] else (),
            )
        )
    return tuple(out)


def _list_gen_results(batch: Batch) -> tuple[GenResult | str, ...]:
    out: list[GenResult | str] = []
    for i, sample in enumerate(batch.samples):
        a, b = int(batch.offsets[i]), int(batch.offsets[i + 1])
        fell = tuple(map(bool, batch.fell_back[a:b].tolist()))
        out.append(GenResult(tuple(batch.replies[a:b]), list_gold_texts(sample), batch.filter, fell))
    return tuple(out)


def _list_ll_results(batch: Batch) -> tuple[LLResult | MCResult | str, ...]:
    if bool(np.any(np.diff(batch.offsets) > 1)):
        return _list_mc_results(batch)
    made = ll_batch(batch)
    return tuple(
        made.problems.get(i)
        or LLResult(float(made.lls[i]), bool(made.greedy[i]), _count_tokens(batch.replies[i]), str(sample.gold or ""))
        for i, sample in enumerate(batch.samples)
    )


def _list_rolling_results(batch: Batch) -> tuple[RollingResult | str, ...]:
    made = rolling_batch(batch)
    return tuple(
        made.problems.get(i) or RollingResult(float(ll), text)
        for i, (ll, text) in enumerate(zip(made.lls.tolist(), made.texts, strict=True))
    )


RESULTS: Mapping[OutputType, Callable[[Batch], Sequence[Result | str]]] = {
    MULTIPLE_CHOICE: _list_mc_results,
    GENERATE_UNTIL: _list_gen_results,
    LOGLIKELIHOOD: _list_ll_results,
    LOGLIKELIHOOD_ROLLING: _list_rolling_results,
}

KINDS: Mapping[type[object], Callable[[Batch], Sequence[Result | str]]] = {
    MCResult: _list_mc_results,
    GenResult: _list_gen_results,
    LLResult: _list_ll_results,
    RollingResult: _list_rolling_results,
}


def results_of(wanted: OutputType | type[object], batch: Batch) -> Sequence[Result | str]:
    """Return a result per document, or the reason why there is none, by output type or kind of record."""
    make = KINDS.get(wanted) if isinstance(wanted, type) else RESULTS.get(wanted)
    if make is None:
        raise EvalError(f"no result record for {wanted!r}; known are {', '.join(kind.__name__ for kind in KINDS)}")
    return make(batch)


def _count_tokens(reply: object) -> int:
    return int(reply[2]) if isinstance(reply, tuple) and len(reply) > 2 and isinstance(reply[2], int) else 0
