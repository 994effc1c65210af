"""Tokens to the calls that evaluate them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from evalcore.core.prefixes import Tokens


class TokenBlock(NamedTuple):
    """Tokens evaluated in one call, and how many of its last positions give logits."""

    tokens: Tokens
    rows: int


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
