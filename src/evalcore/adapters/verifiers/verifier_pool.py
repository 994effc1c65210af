"""A pool of workers that call a verifier, each call within a deadline."""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from math import isfinite
from threading import Condition
from types import TracebackType

from msgspec.structs import asdict

from evalcore.adapters.verifiers.verifier_loop import describe
from evalcore.adapters.verifiers.verifier_worker import VerifierLimits, VerifierWorker
from evalcore.core.records.errors import EvalError
from evalcore.core.records.outcome import Failed, Outcome


class VerifierCrew:
    """The workers of one process; its forks have their own."""

    def __init__(self, source: str | bytes, limits: VerifierLimits) -> None:
        self.workers = tuple(VerifierWorker(source, limits) for _ in range(limits.workers))
        self.idle = list(self.workers)
        self.changed = Condition()


class VerifierPool:
    """A function that is called in other processes, ``workers`` of them, each call within ``deadline`` seconds.

    The function is ``module:name``, ``path/to/file.py:name`` or anything that pickles, and returns a number or an
    outcome. A call that has no verdict in time, raises or ends its process is ``Failed`` with the reason, never a
    score. The deadline counts from when a worker takes the call, not while it waits for a free worker or for one to
    start (``startup`` seconds at most). ``memory`` limits a worker's addresses, in bytes; after ``max_calls`` calls
    it is replaced. Environment variables that hold secrets (``OPENAI_API_KEY``) reach it only if ``keep`` names them.
    Any number of threads may call; what they call waits with them, so nothing piles up here. A fork or a pickled copy
    has workers of its own.

    >>> with VerifierPool("operator:eq", workers=1, deadline=60) as pool:
    ...     pool("4", "4"), pool.outcomes([("4", "5"), ("4",)])
    (Ok(score=1.0), [Ok(score=0.0), Failed(reason='TypeError: eq expected 2 arguments, got 1')])
    """

    def __init__(
        self,
        verify: str | Callable[..., object],
        *,
        deadline: float,
        workers: int = 2,
        startup: float = 60.0,
        memory: int | None = None,
        max_calls: int | None = None,
        keep: Sequence[str] = (),
    ) -> None:
        for name, value in {"deadline": deadline, "startup": startup, "workers": workers}.items():
            if not (isfinite(value) and value > 0):
                raise EvalError(f"expected {name} above 0, got {value!r}")
        for name, most in {"memory": memory, "max_calls": max_calls}.items():
            if most is not None and most < 1:
                raise EvalError(f"expected {name} of at least 1 or None, got {most!r}")
        self.verify, self.limits = verify, VerifierLimits(deadline, workers, startup, memory, max_calls, tuple(keep))
        self.closed = False
        self._source = _find_source(verify)
        self._worked = False
        self._crews: dict[int, VerifierCrew] = {}

    @property
    def name(self) -> str:
        """The name of the verifier."""
        own = getattr(self.verify, "__name__", type(self.verify).__name__)
        return self.verify.rpartition(":")[2] if isinstance(self.verify, str) else str(own)

    def __call__(self, *given: object) -> Outcome:
        """Call the verifier once."""
        try:
            message = pickle.dumps(given)
        except Exception as wrong:
            return Failed(f"the call cannot be sent to a worker: {describe(wrong)}")
        with self._lease() as worker:
            try:
                found = worker.call(message)
                self._worked = True
            except EvalError as wrong:
                self._require_open()
                if not self._worked:  # no call ever will
                    raise
                found = Failed(str(wrong))
        self._require_open()
        return found

    def outcomes(self, calls: Iterable[Sequence[object]]) -> list[Outcome]:
        """Call the verifier for each sequence of arguments, by all workers at once; outcomes are in their order."""
        todo = deque(enumerate(calls))
        found: dict[int, Outcome] = {}

        def work(_: object) -> None:
            while True:
                try:
                    i, given = todo.popleft()
                except IndexError:  # nothing left to do
                    return
                found[i] = self(*given)

        size = min(len(todo), self.limits.workers)
        if size <= 1:
            work(None)
        else:
            threads = ThreadPoolExecutor(size, "verifiers")
            try:
                list(threads.map(work, range(size)))
            finally:  # after Ctrl-C or an error, no thread goes on to another call
                todo.clear()
                threads.shutdown(wait=False)
        return [found[i] for i in range(len(found))]

    def close(self) -> None:
        """Kill all workers; calls that are under way in other threads raise ``EvalError``."""
        self.closed = True
        crew = self._find_crew()
        for worker in crew.workers:
            worker.close()
        with crew.changed:
            crew.changed.notify_all()
            for worker in crew.idle:
                worker.end()

    def __enter__(self) -> VerifierPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, wrong: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[[], VerifierPool], tuple[()]]:
        return partial(VerifierPool, self.verify, **asdict(self.limits)), ()

    @contextmanager
    def _lease(self) -> Iterator[VerifierWorker]:
        """Wait for a free worker, the one that was used last first, and give it back."""
        crew = self._find_crew()
        with crew.changed:
            crew.changed.wait_for(lambda: crew.idle or self.closed)
            self._require_open()
            worker = crew.idle.pop()
        try:
            yield worker
        finally:
            with crew.changed:
                if self.closed:
                    worker.end()
                crew.idle.append(worker)
                crew.changed.notify()

    def _find_crew(self) -> VerifierCrew:
        """Find the workers of this process; what a fork inherited belongs to the process that it was forked from."""
        here = os.getpid()
        if here not in self._crews:
            inherited = [crew for pid, crew in list(self._crews.items()) if pid != here]
            self._crews.setdefault(here, VerifierCrew(self._source, self.limits))
            for worker in (worker for crew in inherited for worker in crew.workers):
                worker.forget()
        return self._crews[here]

    def _require_open(self) -> None:
        if self.closed:
            raise EvalError("the pool of verifiers is closed; make another")


def _find_source(verify: str | Callable[..., object]) -> str | bytes:
    """Find what a worker loads the verifier from."""
    if isinstance(verify, str):
        home, _, name = verify.rpartition(":")
        if not home or not name:
            raise EvalError(f"expected a verifier as 'module:name' or 'file.py:name', got {verify!r}")
        return f"{os.path.abspath(home)}:{name}" if home.endswith(".py") else verify
    try:
        return pickle.dumps(verify)
    except Exception as wrong:
        raise EvalError(
            f"expected a verifier that pickles, got {verify!r} ({describe(wrong)}); name it as 'module:name'"
        ) from wrong
