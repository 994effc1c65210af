"""Signals that ask to stop: each ends a command the same way, with locks released and with its own exit code."""

from __future__ import annotations

import signal

from evalcore.shell.safety.exit_codes import Signalled

WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}
"""What asks to stop, where the system has it: a person, a batch system, a closed terminal or connection."""


def hear_signals() -> None:
    """Stop where any of these signals says so, unless whoever started us had it ignored (nohup, a shell's &)."""
    for name in WORDS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def _stop(number: int, frame: object) -> None:
    """Stop here. A handler of our own: asyncio replaces Python's by one that only cancels, which may go unheard.

    The kernel and the shell both announce a closed terminal: the second signal finds us ending already.
    """
    if number != signal.SIGINT:
        signal.signal(number, signal.SIG_IGN)
    raise Signalled(number, WORDS[signal.Signals(number).name])
