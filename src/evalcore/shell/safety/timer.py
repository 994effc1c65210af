"""Work within a time: a timer ends what runs too long in the main thread, the only one that hears signals."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import current_thread, main_thread
from time import monotonic
from types import FrameType
from typing import Never, TypeVar

T = TypeVar("T")

BUDGET = 60.0
"""Seconds for a document, unless ``doc_timeout`` says otherwise: far beyond any that is not stuck."""

AGAIN = 1.0
"""Seconds after which code that swallowed the end of its time is stopped again."""

SHORTEST = 1e-3

_budget: ContextVar[float] = ContextVar("budget", default=BUDGET)


Handler = Callable[[int, FrameType | None], object] | int | None


class TimeUp(BaseException):
    """The time is up. No ``Exception``: code that catches all of these must not catch this."""


@contextmanager
def allow_seconds(seconds: float) -> Iterator[None]:
    """Give each document so many seconds, by whatever this encloses; 0 is no limit.

    >>> with allow_seconds(5.0):
    ...     get_budget()
    5.0
    """
    before = _budget.set(seconds)
    try:
        yield
    finally:
        _budget.reset(before)


def get_budget() -> float:
    """How many seconds a document may take; 0 is no limit."""
    return _budget.get()


def tell_budget(seconds: float) -> str:
    """Say what a budget stopped.

    >>> tell_budget(60.0)
    'took longer than 60 s (doc_timeout)'
    """
    return f"took longer than {seconds:g} s (doc_timeout)"


def reaches_timer() -> bool:
    """Whether a timer can end what runs here: only the main thread hears signals."""
    return hasattr(signal, "setitimer") and current_thread() is main_thread()


def run_document(work: Callable[..., T], *given: object) -> T:
    """Run what is done for one document within its budget, where a timer reaches."""
    seconds = get_budget()
    return run_within(seconds, work, *given) if seconds and reaches_timer() else work(*given)


def run_within(seconds: float, work: Callable[..., T], *given: object) -> T:
    """Run work by a timer, after whose time ``TimeUp`` is raised; an enclosing timer may end it earlier.

    Python looks for signals between its operations and, in regular expressions, every few thousand steps.

    >>> run_within(60.0, max, 1, 2)
    2
    """
    begun, (left, _) = monotonic(), signal.getitimer(signal.ITIMER_REAL)
    before = signal.signal(signal.SIGALRM, _end)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, min(seconds, left) if left else seconds, AGAIN)
            return work(*given)
        finally:
            _disarm(before, left, begun)
    except TimeUp:
        _disarm(before, left, begun)  # once more: it may have come while the timer was being disarmed
        raise


def _disarm(before: Handler, left: float, begun: float) -> None:
    """Give the timer back to whoever had it."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)
    if left:
        signal.setitimer(signal.ITIMER_REAL, max(left - (monotonic() - begun), SHORTEST), AGAIN)


def _end(number: int, frame: FrameType | None) -> Never:
    raise TimeUp
