"""Many files read at once: most of an index is parsing, which processors can share."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain

from evalcore.shell.tasks.files import Document, Head, Problem, read_document

__all__ = ["Ready", "read_many"]

Ready = tuple[Document | Problem, Head, tuple[Problem, ...]]

WORTH_IT = 2000  # files; for fewer, starting processes takes longer than reading
MOST = 4


def read_many(paths: Sequence[str], root: str, *, shipped: bool) -> Mapping[str, Ready]:
    """Files read ahead by several processes; none where that would not pay or cannot be done, and all is read in turn.

    Processes are forked, so nothing is imported again; a program with threads is never forked.
    """
    workers = min(len(getattr(os, "sched_getaffinity", _none)(0)), MOST)
    if len(paths) < WORTH_IT or workers < 2 or not hasattr(os, "fork") or threading.active_count() > 1:
        return {}
    from multiprocessing import get_context

    size = -(-len(paths) // (4 * workers))
    parts = [paths[a : a + size] for a in range(0, len(paths), size)]
    try:
        with get_context("fork").Pool(workers) as pool:
            found = pool.map(partial(_read_part, root=root, shipped=shipped), parts, chunksize=1)
    except OSError:  # no room for processes
        return {}
    return dict(zip(paths, chain.from_iterable(found), strict=True))


def _none(_: int) -> tuple[int, ...]:
    return ()


def _read_part(paths: Sequence[str], root: str, shipped: bool) -> list[Ready]:
    return [read_document(path, root, scanned=True, shipped=shipped) for path in paths]
