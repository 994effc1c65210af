"""Bytes changed at random, by the byte and by the word: reproducible from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

WORDS = (
    b'null true false NaN Infinity -Infinity -1 0 1e999 1e-999 -0.0 99999999999999999999999999 0.1 1.5 "" [] {} [[]] {{ }} {% %} '
    b'"\\ud800" "\\u0000" \xff\xfe \xef\xbb\xbf \x00 \xed\xa0\x80 \xe2\x80\xa8 , : " \' ` # & * ! | > - ? = @ % $ .. / \\ ../../etc/passwd file:///etc '
    b"(a+)+$ (?P<x> a{99999999999} !!python/object !function <<: \x1b[2J --json --limit doc_id doc target resps filter metrics filtered_resps"
).split(b" ")


def mutate(seed: bytes, others: Sequence[bytes], dice: Random) -> bytes:
    """Change a seed in one to six places.

    >>> mutate(b"abc", [b"abc"], Random(1)) == mutate(b"abc", [b"abc"], Random(1))
    True
    """
    data = seed
    for _ in range(dice.choice((1, 1, 1, 2, 3, 6))):
        data = dice.choice(EDITS)(data, others, dice)
    return data


def _cut(data: bytes, dice: Random) -> tuple[int, int]:
    start = dice.randrange(len(data) + 1)
    return start, min(len(data), start + dice.choice((1, 1, 2, 4, 16, 64, 1024)))


def _flip(data: bytes, others: Sequence[bytes], dice: Random) -> bytes:
    at, _ = _cut(data, dice)
    return data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :]


def _drop(data: bytes, others: Sequence[bytes], dice: Random) -> bytes:
    a, b = _cut(data, dice)
    return data[:a] + data[b:]


def _copy(data: bytes, others: Sequence[bytes], dice: Random) -> bytes:
    a, b = _cut(data, dice)
    return data[:b] + data[a:b] * dice.choice((1, 1, 2, 50)) + data[b:]


def _splice(data: bytes, others: Sequence[bytes], dice: Random) -> bytes:
    other = dice.choice(others)
    (a, b), (c, d) = _cut(data, dice), _cut(other, dice)
    return data[:a] + other[c:d] + data[b:]


def _put_word(data: bytes, others: Sequence[bytes], dice: Random) -> bytes:
    a, b = _cut(data, dice)
    return data[:a] + dice.choice(WORDS) + data[dice.choice((a, b)) :]


def _replace_value(data: bytes, others: Sequence[bytes], dice: Random) -> bytes:
    """Put a word where a value of JSON or YAML begins, up to its end."""
    starts = [at + 1 for at in range(len(data)) if data[at : at + 1] in b":[,"] or [0]
    a = dice.choice(starts)
    ends = [at for at in (data.find(mark, a + 1) for mark in (b",", b"}", b"]", b"\n")) if at > 0]
    return data[:a] + b" " + dice.choice(WORDS) + data[min(ends, default=len(data)) :]


def _end(data: bytes, others: Sequence[bytes], dice: Random) -> bytes:
    return data[: dice.randrange(len(data) + 1)]


EDITS = (_flip, _drop, _copy, _splice, _put_word, _put_word, _replace_value, _replace_value, _replace_value, _end)
