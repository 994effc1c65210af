"""From logits to log-likelihoods and to the next token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, inf

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from pyrsistent import pmap

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import CHOOSE, Likelihood

LENGTHS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
"""lm-eval's names for the largest number of tokens to generate; the first one given counts."""

ELSEWHERE = pmap(
    {
        CHOOSE: "multiple_choice_by: letter_logprobs is for servers, which give log-probabilities of letters; this "
        "model takes letter, or likelihood, which is the default"
    }
)
"""Generation options that other models have, and what to do without them."""

HARMLESS = pmap(
    {"num_beams": 1, "repetition_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0, "typical_p": 1, "n": 1}
)
"""Options that are not supported, and the value that makes each do nothing."""


class Decoding(Struct, frozen=True):
    """How to generate: the most likely token at temperature 0, else a draw.

    ``repetition_penalty`` divides the odds of tokens that were there before; None leaves it to the model.
    """

    until: tuple[str, ...] = ()
    max_gen_toks: int = 256
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float | None = None


def read_decoding(given: Mapping[str, object], max_gen_toks: int, *, penalizes: bool = False) -> Decoding:
    """Read lm-eval's generation options. ``do_sample: false`` is temperature 0; top_k 0 and top_p 1 leave all tokens.

    A model that ``penalizes`` takes a ``repetition_penalty``; another only 1, which does nothing.

    >>> read_decoding({"until": "\\n", "do_sample": False, "temperature": 0.7}, 256)
    Decoding(until=('\\n',), max_gen_toks=256, temperature=0.0, top_k=0, top_p=1.0, min_p=0.0, repetition_penalty=None)
    """
    rest = {key: value for key, value in given.items() if value is not None}
    until, sample = rest.pop("until", ()), rest.pop("do_sample", None)
    rest.pop("seed", None)  # part of the request, on all of which every draw depends
    lengths = [rest.pop(name) for name in LENGTHS if name in rest]
    temperature = _read_number("temperature", rest.pop("temperature", 1.0 if sample else 0.0), 0.0, inf)
    top_k = _read_number("top_k", rest.pop("top_k", 0), -1, inf)
    top_p, min_p = (_read_number(name, rest.pop(name, off), 0.0, 1.0) for name, off in (("top_p", 1.0), ("min_p", 0.0)))
    penalty = rest.pop("repetition_penalty", None) if penalizes else None
    for name, value in rest.items():
        if HARMLESS.get(name, inf) != value:
            raise EvalError(ELSEWHERE.get(name, f"this model has no generation option {name} (got {value!r})"))
    return Decoding(
        tuple(map(str, (until,) if isinstance(until, str) else _read_texts(until))),
        int(_read_number("max_gen_toks", lengths[0] if lengths else max_gen_toks, 1, inf)),
        0.0 if sample is False else temperature,
        max(0, int(top_k)),
        top_p,
        min_p,
        None if penalty is None else float(_read_number("repetition_penalty", penalty, 0.01, inf)),
    )


def _read_texts(value: object) -> Sequence[object]:
    if isinstance(value, list | tuple):
        return value
    raise EvalError(f"expected stop strings as until, got {value!r}")


def _read_number(name: str, value: object, least: float, most: float) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise EvalError(f"expected {name} between {least:g} and {most:g}, got {value!r}")


def log_softmax(rows: NDArray[np.floating]) -> NDArray[np.float64]:
    """Compute log-probabilities along the last axis, in float64.

    >>> log_softmax(np.array([0.0, 0.0])).round(6).tolist()
    [-0.693147, -0.693147]
    """
    shifted = rows.astype(np.float64) - rows.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def score_rows(rows: Sequence[NDArray[np.floating]], tokens: Sequence[int]) -> Likelihood:
    """Score tokens, each under its row of logits; greedy if each is the first of the most likely.

    >>> score_rows([np.array([0.0, 9.0]), np.array([0.0, 0.0])], [1, 0]).greedy
    True
    """
    picks = [float(log_softmax(row)[token]) for row, token in zip(rows, tokens, strict=True)]
    greedy = all(int(row.argmax()) == token for row, token in zip(rows, tokens, strict=True))
    return Likelihood(fsum(picks), greedy, len(tokens))


def add_likelihoods(parts: Sequence[Likelihood]) -> Likelihood:
    """Add the likelihoods of consecutive parts.

    >>> add_likelihoods([Likelihood(-1.0, True, 2), Likelihood(-0.5, False, 1)])
    Likelihood(value=-1.5, greedy=False, tokens=3)
    """
    return Likelihood(
        fsum(one.value for one in parts), all(one.greedy for one in parts), sum(one.tokens for one in parts)
    )


def warp_logits(row: NDArray[np.floating], how: Decoding) -> NDArray[np.float64]:
    """Compute probabilities after temperature, top_k, top_p and min_p, each applied to what the one before left.

    >>> warp_logits(np.log([0.5, 0.3, 0.2]), Decoding(temperature=1.0, top_p=0.7)).round(3).tolist()
    [0.625, 0.375, 0.0]
    """
    probabilities = np.exp(log_softmax(row.astype(np.float64) / how.temperature))
    if how.top_k or how.top_p < 1.0:
        order = np.argsort(-probabilities, kind="stable")
        kept = np.ones(len(order), bool)
        kept[how.top_k or len(order) :] = False
        ranked = np.where(kept, probabilities[order], 0.0)
        before = np.cumsum(ranked) - ranked
        kept &= before < how.top_p * ranked.sum() if how.top_p < 1.0 else True
        kept[0] = True
        probabilities[order[~kept]] = 0.0
    if how.min_p:
        probabilities[probabilities < how.min_p * probabilities.max()] = 0.0
    return np.asarray(probabilities / probabilities.sum())


def choose_token(row: NDArray[np.floating], how: Decoding, draw: np.random.Generator) -> int:
    """Choose the next token; at temperature 0 the first of the most likely.

    >>> choose_token(np.array([1.0, 3.0, 3.0]), Decoding(), np.random.default_rng(0))
    1
    """
    if how.temperature == 0.0:
        return int(row.argmax())
    sums = np.cumsum(warp_logits(row, how))
    return int(np.searchsorted(sums, draw.random() * sums[-1], side="right"))


def cut_text(text: str, until: Sequence[str]) -> str:
    """Cut a text before its stop strings, one after the other, as lm-eval does.

    >>> cut_text("a. b\\nc", ("\\n", ".", ""))
    'a'
    """
    for stop in filter(None, until):
        text = text.partition(stop)[0]
    return text
