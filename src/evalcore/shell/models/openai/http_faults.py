"""What can go wrong with a request, and what to do about it: retry, after how long, or give up."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import isfinite

import msgspec

from evalcore.core.records.errors import EvalError
from evalcore.shell.data.wire import decode_line

ALWAYS, NEVER = 1_000_000, 0
POINTLESS = frozenset({301, 302, 303, 307, 308, 401, 403, 404, 405})
"""A server that starts with one of these will not do better on the next question."""

SHOWN = 200
REFUSAL = re.compile(r"(?i)\bonly no \w+ is supported|\b(not|un)[ -]?supported\b")


class Patience(msgspec.Struct, frozen=True):
    """How long to wait for what, in seconds, and how often to retry."""

    retries: int = 12
    total: float = 300.0
    connect: float = 10.0
    silence: float = 300.0
    base: float = 0.5
    longest: float = 30.0
    longest_told: float = 60.0
    outage: float = 300.0


class Wrong(Exception):
    """An attempt without an answer. ``again`` is how many further ones make sense."""

    def __init__(self, reason: str, *, again: int = ALWAYS, after: float | None = None, status: int = 0) -> None:
        super().__init__(reason)
        self.reason, self.again, self.after, self.status = reason, again, after, status


class Unreachable(Wrong):
    """There was no connection at all."""


def is_retried(status: int) -> bool:
    """Whether the same request may succeed later.

    >>> [code for code in (400, 408, 413, 422, 429, 500, 501, 503, 529) if is_retried(code)]
    [408, 429, 500, 503, 529]
    """
    return status in (408, 409, 425, 429) or (status >= 500 and status not in (501, 505))


def is_refusal(message: str) -> bool:
    """Whether a server says that it never does what is asked; llama-server does so with status 500.

    >>> is_refusal("Only no echo is supported"), is_refusal("best_of is not supported"), is_refusal("overloaded")
    (True, True, False)
    """
    return REFUSAL.search(message) is not None


def parse_wait(header: str | None, now: datetime) -> float | None:
    """Parse the seconds that a server asks to wait, a number or a date; None if it makes no sense.

    >>> now = datetime(2024, 1, 1, tzinfo=UTC)
    >>> parse_wait("7", now), parse_wait("Mon, 01 Jan 2024 00:00:30 GMT", now), parse_wait("-5", now)
    (7.0, 30.0, None)
    """
    if header is None:
        return None
    from email.utils import parsedate_to_datetime  # here, because it loads much that listing models does not need

    try:
        wait = float(header)
    except ValueError:
        try:
            then = parsedate_to_datetime(header)
            wait = (then.replace(tzinfo=then.tzinfo or UTC) - now).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
    return wait if isfinite(wait) and wait >= 0 else None


def compute_wait(tried: int, asked: float | None, jitter: float, patience: Patience) -> float:
    """Compute the seconds to wait after so many tries: doubling, spread by ``jitter`` in [0, 1), never beyond the caps.

    >>> [compute_wait(n, None, 0.0, Patience()) for n in (1, 2, 3, 60)]
    [0.25, 0.5, 1.0, 15.0]
    >>> compute_wait(1, 1e9, 0.0, Patience())      # a server may ask for more time, within limits
    60.0
    """
    own = min(patience.longest, patience.base * 2.0 ** min(tried - 1, 60)) * (1 + jitter) / 2
    if asked is None:
        return own
    return min(max(own, asked * (1 + jitter / 10)), patience.longest_told)


def excerpt_text(text: str) -> str:
    """Take the beginning of a text, on one line, without control characters.

    >>> excerpt_text("<html>\\n  \\x1b[31mBad gateway")
    '<html> ?[31mBad gateway'
    """
    line = "".join(char if char.isprintable() else "?" for char in " ".join(text[: 8 * SHOWN].split()))
    return line if len(line) <= SHOWN else line[:SHOWN] + "..."


def read_message(body: bytes) -> str:
    """Read what a server says about an error: the message in its JSON, else the beginning of the body.

    >>> read_message(b'{"error": {"message": "no such model"}}'), read_message(b"<h1>Oops"), read_message(b"")
    ('no such model', '<h1>Oops', 'an empty body')
    """
    if not body.strip():
        return "an empty body"
    try:
        message = decode_line(body[: 1 << 20], "body")
    except EvalError:
        return excerpt_text(body.decode("utf-8", "replace"))
    for name in ("error", "message", "detail"):
        if isinstance(message, dict) and message.get(name):
            message = message[name]
    return excerpt_text(message if isinstance(message, str) else body.decode("utf-8", "replace"))
