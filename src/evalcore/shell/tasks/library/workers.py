"""Many files read in parallel: most of an index is parsing, which processors can share."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from evalcore.shell.tasks.library.files import Document, Head, TaskProblem, read_document

Ready = tuple[Document | TaskProblem, Head, tuple[TaskProblem, ...]]

WORTH_IT = 2000  # files; for fewer, starting processes takes longer than it saves
MOST = 4
CHUNK = 60
HEAD, ROOM = 8, 1 << 20
"""Bytes for the length of a worker's message, and bytes of messages that may wait in a pipe."""


def read_many(paths: Sequence[str], roots: Sequence[str], *, shipped: bool) -> Mapping[str, Ready]:
    """Read files ahead by several processes, of which this is one; nothing if that would not pay or cannot be done.

    This process reads from the front and the workers from the back, until they meet: a slow, stuck or dead worker
    delays nothing. Workers are forked, so nothing is imported again; a program with threads is never forked.
    """
    workers = min(len(getattr(os, "sched_getaffinity", lambda _: ())(0)), MOST) - 1
    if len(paths) < WORTH_IT or workers < 1 or not hasattr(os, "fork") or threading.active_count() > 1:
        return {}
    from multiprocessing import current_process

    if current_process().daemon:  # a daemon may have no children
        return {}
    chunks = [paths[at : at + CHUNK] for at in range(0, len(paths), CHUNK)]
    read = partial(_read_chunk, roots=roots, shipped=shipped)
    ready: dict[str, Ready] = {}
    with _start_workers([chunks[::-1][at::workers] for at in range(workers)], read) as ends:
        for chunk in chunks:
            for end, waiting in ends.items():
                ready |= _collect_sent(end, waiting)
            if chunk[0] not in ready:
                ready |= read(chunk)
    return ready


def _read_chunk(paths: Sequence[str], roots: Sequence[str], shipped: bool) -> dict[str, Ready]:
    return {path: read_document(path, roots, scanned=True, shipped=shipped) for path in paths}


def _collect_sent(end: int, waiting: bytearray) -> dict[str, Ready]:
    """Collect what a worker has sent; the beginning of an unfinished message waits."""
    with suppress(OSError):  # nothing more for now, or forever
        while part := os.read(end, 1 << 20):
            waiting += part
    ready: dict[str, Ready] = {}
    while len(waiting) >= HEAD and len(waiting) >= (size := HEAD + int.from_bytes(waiting[:HEAD])):
        ready |= pickle.loads(waiting[HEAD:size])  # sent by our own fork
        del waiting[:size]
    return ready


Read = Callable[[Sequence[str]], dict[str, Ready]]


@contextmanager
def _start_workers(shares: Sequence[Sequence[Sequence[str]]], read: Read) -> Iterator[dict[int, bytearray]]:
    """Start a worker for each share of the chunks, as the end of a pipe; none outlives this, whatever happens."""
    import fcntl
    from multiprocessing import get_context

    context = get_context("fork")
    started = []
    ends: dict[int, bytearray] = {}
    try:
        with suppress(OSError), _block_signals():  # no room for more processes
            for share in shares:
                here, there = os.pipe()
                ends[here] = bytearray()
                os.set_blocking(here, False)
                with suppress(OSError, AttributeError):  # in a larger pipe a worker need not wait for room
                    fcntl.fcntl(here, fcntl.F_SETPIPE_SZ, ROOM)
                try:  # open in the worker alone, so that its death ends the pipe
                    worker = context.Process(target=_work, args=(there, tuple(ends), share, read), daemon=True)
                    worker.start()
                finally:
                    os.close(there)
                started.append(worker)
        yield ends
    finally:
        for worker in started:
            worker.kill()  # SIGKILL: no handler can object
            worker.join()
        for end in ends:
            os.close(end)


def _work(end: int, ends: Iterable[int], share: Sequence[Sequence[str]], read: Read) -> None:
    """Read and send. If anything fails, the other end sees that nothing more comes and reads the rest itself.

    The reading ends are open in the reader alone, so that its death ends the worker with the next message.
    """
    for one in ends:
        os.close(one)
    for one in signal.valid_signals():
        if callable(signal.getsignal(one)):  # a handler inherited from the program
            signal.signal(one, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with suppress(Exception), open(end, "wb") as file:
        for chunk in share:
            message = pickle.dumps(read(chunk))
            file.write(len(message).to_bytes(HEAD) + message)
            file.flush()


@contextmanager
def _block_signals() -> Iterator[None]:
    """Block all signals while a worker is forked: no inherited handler may run in it before it is reset."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())  # a handler may raise in the next call, after blocking
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
