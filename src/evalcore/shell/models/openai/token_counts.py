"""The tokens that a server says it read and wrote."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from evalcore.shell.answerlog.spent import Spent

MOST = 1 << 40
"""No request has that many tokens: a larger count is a mistake."""


class _Body(Struct, gc=False):
    usage: object = None


_decode_body = msgspec.json.Decoder(_Body).decode


def read_usage(content: bytes, seconds: float) -> Spent:
    """Read what a reply took, as the server counts; a count that makes no sense is none.

    >>> read_usage(b'{"usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}}', 0.5)
    Spent(prompt=9, completion=2, cached=0, seconds=0.5, tries=1)
    >>> read_usage(b'{"usage": {"prompt_tokens": -9, "completion_tokens": "2"}}', 0.5).known
    False
    """
    try:
        usage = _decode_body(content).usage if b'"usage"' in content else None
    except (ValueError, RecursionError):
        usage = None
    if not isinstance(usage, dict):
        return Spent(seconds=seconds)
    details = usage.get("prompt_tokens_details")
    prompt, cached = _read_count(usage.get("prompt_tokens")), None
    if isinstance(details, dict):
        cached = _read_count(details.get("cached_tokens"))
    return Spent(prompt, _read_count(usage.get("completion_tokens")), min(cached or 0, prompt or 0), seconds)


def _read_count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < MOST else None
