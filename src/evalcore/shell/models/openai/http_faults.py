"""What can go wrong with a request, and what to do about it: again, after how long, or not at all."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite

import msgspec

from evalcore.core.records.errors import EvalError
from evalcore.shell.data.wire import decode_line

__all__ = [
    "ALWAYS",
    "NEVER",
    "POINTLESS",
    "Patience",
    "Unreachable",
    "Wrong",
    "backoff",
    "excerpt",
    "message_of",
    "retried",
    "retry_after",
]

ALWAYS, NEVER = 1_000_000, 0
POINTLESS = frozenset({301, 302, 303, 307, 308, 401, 403, 404, 405})
"""A server that begins like this will not do better for the next question."""

SHOWN = 200


class Patience(msgspec.Struct, frozen=True):
    """How long to wait for what, in seconds, and how often to ask again."""

    retries: int = 12
    total: float = 300.0
    connect: float = 10.0
    silence: float = 300.0
    base: float = 0.5
    longest: float = 30.0
    longest_told: float = 60.0


class Wrong(Exception):
    """One attempt without an answer. ``again`` is how many further ones make sense."""

    def __init__(self, reason: str, *, again: int = ALWAYS, after: float | None = None, status: int = 0) -> None:
        super().__init__(reason)
        self.reason, self.again, self.after, self.status = reason, again, after, status


class Unreachable(Wrong):
    """There was no connection at all."""


def retried(status: int) -> bool:
    """Whether the same request may fare better later.

    >>> [code for code in (400, 408, 413, 422, 429, 500, 501, 503, 529) if retried(code)]
    [408, 429, 500, 503, 529]
    """
    return status in (408, 409, 425, 429) or (status >= 500 and status not in (501, 505))


def retry_after(header: str | None, now: datetime) -> float | None:
    """The seconds that a server asks for, as a number or as a date; None for what makes no sense.

    >>> now = datetime(2024, 1, 1, tzinfo=UTC)
    >>> retry_after("7", now), retry_after("Mon, 01 Jan 2024 00:00:30 GMT", now), retry_after("-5", now)
    (7.0, 30.0, None)
    """
    if header is None:
        return None
    try:
        wait = float(header)
    except ValueError:
        try:
            then = parsedate_to_datetime(header)
            wait = (then.replace(tzinfo=then.tzinfo or UTC) - now).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
    return wait if isfinite(wait) and wait >= 0 else None


def backoff(tried: int, told: float | None, jitter: float, patience: Patience) -> float:
    """Seconds to wait after that many tries: doubling, spread by ``jitter`` in [0, 1), never beyond the caps.

    >>> [backoff(n, None, 0.0, Patience()) for n in (1, 2, 3, 60)]
    [0.25, 0.5, 1.0, 15.0]
    >>> backoff(1, 1e9, 0.0, Patience())      # a server may ask for more time, not for any time
    60.0
    """
    own = min(patience.longest, patience.base * 2.0 ** min(tried - 1, 60)) * (1 + jitter) / 2
    if told is None:
        return own
    return min(max(own, told * (1 + jitter / 10)), patience.longest_told)


def excerpt(text: str) -> str:
    """The beginning of a text, on one line, without control characters.

    >>> excerpt("<html>\\n  \\x1b[31mBad gateway")
    '<html> ?[31mBad gateway'
    """
    line = "".join(char if char.isprintable() else "?" for char in " ".join(text[: 8 * SHOWN].split()))
    return line if len(line) <= SHOWN else line[:SHOWN] + "..."


def message_of(body: bytes) -> str:
    """What a server says about an error: the message in its JSON, else the beginning of the body.

    >>> message_of(b'{"error": {"message": "no such model"}}'), message_of(b"<h1>Oops"), message_of(b"")
    ('no such model', '<h1>Oops', 'an empty body')
    """
    if not body.strip():
        return "an empty body"
    try:
        found = decode_line(body[: 1 << 20], "body")
    except EvalError:
        return excerpt(body.decode("utf-8", "replace"))
    for name in ("error", "message", "detail"):
        if isinstance(found, dict) and found.get(name):
            found = found[name]
    return excerpt(found if isinstance(found, str) else body.decode("utf-8", "replace"))
