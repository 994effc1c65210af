"""Texts to tokens to the calls that evaluate them: pure, and as in lm-eval where it has a way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from evalcore.core.records.errors import EvalError

Tokens = tuple[int, ...]


class TokenBlock(NamedTuple):
    """Tokens evaluated in one call, and how many of its last positions give logits."""

    tokens: Tokens
    rows: int


def encode_pair(
    context: str, continuation: str, prefix: int, encode: Callable[[str, bool], Tokens]
) -> tuple[Tokens, Tokens]:
    """Encode a context and its continuation: the continuation's tokens are those of both together less the context's.

    White space at the end of the context goes to the continuation. An empty context is replaced by ``prefix``.
    ``encode`` takes the text and whether a BOS token may precede it.

    >>> letters = lambda text, begin: tuple(map(ord, text))
    >>> encode_pair("a ", "b", 0, letters), encode_pair("", "b", 0, letters)
    (((97,), (32, 98)), ((0,), (98,)))
    """
    if not context:
        tokens = encode(continuation, False)
        return (tokens[:1], tokens[1:]) if tokens[:1] == (prefix,) else ((prefix,), tokens)
    bare = context.rstrip()
    before = encode(bare, True)
    return before or (prefix,), encode(context + continuation, True)[len(before) :]


def fit_pair(context: Tokens, continuation: Tokens, longest: int) -> tuple[Tokens, Tokens]:
    """Drop the beginning of a context that a model of ``longest`` positions cannot take.

    >>> fit_pair((1, 2, 3), (4, 5), 3)
    ((2, 3), (4, 5))
    """
    if not continuation:
        raise EvalError("expected a continuation with tokens of its own, got none")
    if len(continuation) > longest:
        raise EvalError(f"expected a continuation of at most n_ctx = {longest} tokens, got {len(continuation)}")
    return context[-(longest + 1 - len(continuation)) :], continuation


def roll_windows(tokens: Tokens, prefix: int, longest: int) -> tuple[tuple[Tokens, Tokens], ...]:
    """Split a long text into windows of context and continuation in which every token is predicted once.

    The first window begins after ``prefix``; later ones see as much of the preceding text as fits.

    >>> roll_windows((1, 2, 3, 4, 5), 0, 3)
    (((0,), (1, 2, 3)), ((2, 3), (4, 5)))
    """
    starts = range(0, len(tokens), longest)
    ends = [min(start + longest, len(tokens)) for start in starts]
    return tuple(
        ((prefix,) if start == 0 else tokens[end - longest - 1 : start], tokens[start:end])
        for start, end in zip(starts, ends, strict=True)
    )


def plan_context(tokens: Tokens, size: int) -> tuple[TokenBlock, ...]:
    """Split a context into blocks that end at multiples of ``size``; the last gives the logits of the next token.

    The end of a block depends on nothing else, so a block evaluated once serves every context with the same beginning,
    to the last bit. Only the very first block may hold a single token: single tokens take another kernel.

    >>> [len(block.tokens) for block in plan_context(tuple(range(9)), 4)]
    [4, 5]
    """
    parts = _split_tokens(tokens, size)
    return tuple(TokenBlock(part, int(i == len(parts) - 1)) for i, part in enumerate(parts))


def plan_continuation(tokens: Tokens, size: int) -> tuple[TokenBlock, ...]:
    """Split a continuation into blocks; every position gives logits, the first those of the second token.

    The last token predicts nothing and is left out, unless that would leave a single token to evaluate.

    >>> plan_continuation((3, 4, 5), 64), plan_continuation((3, 4), 64), plan_continuation((3,), 64)
    ((TokenBlock(tokens=(3, 4), rows=2),), (TokenBlock(tokens=(3, 4), rows=2),), ())
    """
    needed = tokens if len(tokens) == 2 else tokens[:-1]
    return tuple(TokenBlock(part, len(part)) for part in _split_tokens(needed, size))


def _split_tokens(tokens: Tokens, size: int) -> list[Tokens]:
    cuts = [0, *range(size, len(tokens) - 1, size), len(tokens)]
    return [tokens[a:b] for a, b in pairwise(cuts) if b > a]


def count_shared(old: Sequence[TokenBlock], new: Sequence[TokenBlock]) -> int:
    """Count the blocks with which both begin.

    >>> count_shared([TokenBlock((1, 2), 0), TokenBlock((3,), 1)], [TokenBlock((1, 2), 0), TokenBlock((4,), 1)])
    1
    """
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
