"""What became of a document under a metric: scored, not scorable, failed, or simply not emitted."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = [
    "FAILED",
    "NOT_EMITTED",
    "OK",
    "UNSCORABLE",
    "Failed",
    "NotEmitted",
    "Ok",
    "Outcome",
    "Rule",
    "Unscorable",
]

OK, UNSCORABLE, FAILED, NOT_EMITTED = 0, 1, 2, 3

Rule = Literal["exclude", "zero", "fail"]
"""How documents without a score are closed: leave them out, count them as 0, or refuse to give a number."""


class Ok(Struct, frozen=True):
    """The document has this score."""

    score: object


class Unscorable(Struct, frozen=True):
    """There is an answer, but this metric is not defined on it."""

    reason: str


class Failed(Struct, frozen=True):
    """There is no answer, or the user's code raised."""

    reason: str


class NotEmitted(Struct, frozen=True):
    """``process_results`` chose to say nothing about this metric for this document."""


Outcome = Ok | Unscorable | Failed | NotEmitted
