"""Texts to pairs of token sequences, a context and what continues it: pure, and as in lm-eval where it has a way."""

from __future__ import annotations

from collections.abc import Callable

from evalcore.core.prefixes import Tokens
from evalcore.core.records.errors import EvalError


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
        raise EvalError(f"expected a continuation of at most {longest} tokens, got {len(continuation)}")
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


def tell_worn(worn: int, asked: int, longest: int) -> str:
    """Tell how many requests were too long.

    >>> tell_worn(3, 1200, 2048)
    '3 of 1,200 requests lost their beginning: 2048 tokens fit'
    """
    return f"{worn:,} of {asked:,} requests lost their beginning: {longest} tokens fit"
