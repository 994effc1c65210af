"""Signals that ask to stop: each ends a command the same way, with locks released and with its own exit code."""

from __future__ import annotations

import signal
import sys
from threading import Timer, get_ident
from typing import TYPE_CHECKING

from evalcore.shell.safety.exit_codes import Signalled

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}
"""What asks to stop, where the system has it: a person, a batch system, a closed terminal or connection."""


MOMENT = 0.05
"""Seconds after which a signal that went unheard is sent again."""


def hear_signals() -> None:
    """Stop where any of these signals says so, unless whoever started us had it ignored (nohup, a shell's &)."""
    sys.unraisablehook = _hear_again
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


def _hear_again(lost: UnraisableHookArgs) -> None:
    """Send a signal again that came while a destructor or the like ran, where Python drops what is raised.

    A thread sends it, once we are out of there.
    """
    stopped = lost.exc_value
    if isinstance(stopped, Signalled) and hasattr(signal, "pthread_kill"):
        signal.signal(stopped.number, _stop)
        Timer(MOMENT, signal.pthread_kill, (get_ident(), stopped.number)).start()
    else:
        sys.__unraisablehook__(lost)
