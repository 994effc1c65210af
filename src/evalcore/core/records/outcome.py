"""The outcome of a document under a metric: scored, unscorable, failed or not emitted; and counts of these."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

OK, UNSCORABLE, FAILED, NOT_EMITTED = 0, 1, 2, 3

Rule = Literal["exclude", "zero", "fail"]
"""How documents without a score count: not at all, as 0, or they rule out a number."""


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
    """``process_results`` returned nothing for this metric and document."""


Outcome = Ok | Unscorable | Failed | NotEmitted


class Counts(Struct, frozen=True):
    """How many documents have a score, and how many have none, by cause.

    ``lowest`` and ``highest`` bound the value, whatever the documents without a score would have scored.
    """

    scored: int = 0
    unscorable: int = 0
    failed: int = 0
    not_emitted: int = 0
    lowest: float | None = None
    highest: float | None = None
