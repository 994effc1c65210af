"""Units that several workers take one by one, and their results in the order of the units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from queue import SimpleQueue
from threading import Lock

from evalcore.core.records.errors import EvalError
from evalcore.shell.engines.interface import Work
from evalcore.shell.engines.worker import do_work, expect_done


class UnitQueue:
    """Units that are taken by any thread, each once, and results that are put back.

    >>> queue = UnitQueue([2, 3])
    >>> list(queue.results(lambda unit: bytes([unit])))
    [b'\\x02', b'\\x03']
    """

    def __init__(self, units: Sequence[object]) -> None:
        self._units, self._next, self._lock = units, iter(range(len(units))), Lock()
        self._done: SimpleQueue[tuple[int, bytes | EvalError]] = SimpleQueue()
        self._stopped = False

    def take(self) -> int | None:
        """Take the next unit, by its number; None if there are no more."""
        with self._lock:
            return None if self._stopped else next(self._next, None)

    def put(self, at: int, found: bytes | EvalError) -> None:
        """Put back the result of a unit, or what went wrong with it."""
        self._done.put((at, found))

    def stop(self) -> None:
        """Give out no more units."""
        with self._lock:
            self._stopped = True

    def results(self, here: Work | None = None) -> Iterator[bytes]:
        """The results in the order of their units; with work to do ``here``, it is done while no result waits."""
        waiting: dict[int, bytes] = {}
        for wanted in range(len(self._units)):
            while wanted not in waiting:
                at, found = self._receive(here)
                if isinstance(found, EvalError):
                    raise found
                waiting[at] = found
            yield waiting.pop(wanted)

    def _receive(self, here: Work | None) -> tuple[int, bytes | EvalError]:
        if here is not None and self._done.empty() and (at := self.take()) is not None:
            return at, expect_done(*do_work(here, self._units[at]), "this process")
        return self._done.get()
