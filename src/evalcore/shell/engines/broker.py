"""The process between this one and a cluster: it joins while units are done here, then asks for as many as it can use.

To import Ray, to join and to leave take as long as scoring half a gigabyte, so this process works meanwhile.
"""

from __future__ import annotations

import pickle
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import IO, cast

from evalcore.core.records.errors import EvalError
from evalcore.shell.engines.cluster import Joined, import_ray, join_cluster
from evalcore.shell.engines.cluster_tasks import WORKER, Ref, Tasks
from evalcore.shell.engines.cluster_tree import MOST, spread_in_cluster
from evalcore.shell.engines.interface import Means, Merge, Work, WorkerLost
from evalcore.shell.engines.processes import start_process
from evalcore.shell.engines.unit_queue import UnitQueue
from evalcore.shell.engines.worker import DONE, do_work, expect_done, open_pipes, read_frame, write_frame

MORE, OVER = 10, 11
"""What a broker says besides results: how many units it asks for, and that it needs no more."""

NUMBER = struct.Struct("<Q")
PATIENCE = 10
"""How many seconds a broker has to leave its cluster before it is killed."""


def spread_over_cluster(work: Work, units: Sequence[object], merge: Merge, means: Means) -> Iterator[bytes]:
    """Spread units over a Ray cluster: the one this process has joined, the one that is named or runs, or a new one.

    Where this process may do units, it does so all the while, unless there are so many that it does not count.
    """
    packed = _pack(work, merge, units) if means.here and len(units) <= MOST and not _has_joined() else None
    if packed is None:
        yield from spread_in_cluster(work, units, merge, means)
        return
    queue, broker, told = UnitQueue(units), start_process(__name__), SimpleQueue[EvalError | None]()
    try:
        with suppress(OSError):  # of a broker that is gone, its thread will tell
            write_frame(cast("IO[bytes]", broker.stdin), DONE, pickle.dumps((packed[0], means)))
        Thread(target=_feed, args=(broker, queue, packed[1:], told), daemon=True).start()
        yield from queue.results(work)
        if (wrong := told.get()) is not None:
            raise wrong
    except BaseException:
        _stop(broker)
        raise
    finally:
        queue.stop()


def _pack(work: Work, merge: Merge, units: Sequence[object]) -> list[bytes] | None:
    """Pack the work with its merge, then each unit; None for what only Ray's own pickle carries: this very script."""
    try:
        packed = [pickle.dumps(one) for one in ((work, merge), *units)]
    except Exception:
        return None
    return None if any(b"__main__" in one for one in packed) else packed


def _has_joined() -> bool:
    ray = sys.modules.get("ray")
    return ray is not None and ray.is_initialized()


def _feed(
    broker: subprocess.Popen[bytes], queue: UnitQueue, units: Sequence[bytes], told: SimpleQueue[EvalError | None]
) -> None:
    """Give a broker the units it asks for, and put back its results, until it is over."""
    pipe_in, pipe_out = cast("IO[bytes]", broker.stdin), cast("IO[bytes]", broker.stdout)
    try:
        while (frame := read_frame(pipe_out))[0] != OVER:
            (at,), data = NUMBER.unpack_from(frame[1]), frame[1][NUMBER.size :]
            if frame[0] == MORE:
                for _ in range(at):
                    taken = queue.take()
                    write_frame(pipe_in, DONE, b"" if taken is None else NUMBER.pack(taken) + units[taken])
            else:
                queue.put(at, expect_done(frame[0], data, WORKER))
        told.put(None)
    except (EvalError, EOFError, OSError, ValueError) as found:
        lost = WorkerLost("the process that speaks with the Ray cluster was lost; partials that are kept stay")
        wrong = found if isinstance(found, EvalError) else lost
        queue.put(0, wrong)
        told.put(wrong)
    for pipe in (pipe_in, pipe_out):
        with suppress(OSError, ValueError):
            pipe.close()
    broker.wait()


def _stop(broker: subprocess.Popen[bytes]) -> None:
    """Stop a broker, which leaves its cluster first."""
    with suppress(OSError):
        broker.terminate()
    try:
        broker.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        broker.kill()


# --- the process itself -----------------------------------------------------------------------------------------------


def main() -> None:
    """Join a cluster and serve the one who asked; say what went wrong."""
    pipe_in, pipe_out = open_pipes()
    with suppress(EOFError, BrokenPipeError):  # nobody asks any more
        packed, means = pickle.loads(read_frame(pipe_in)[1])
        kind, text = do_work(lambda given: _join_and_serve(given, means, pipe_in, pipe_out), packed)
        if kind != DONE:
            write_frame(pipe_out, kind, NUMBER.pack(0) + text)


def _join_and_serve(packed: bytes, means: Means, pipe_in: IO[bytes], pipe_out: IO[bytes]) -> bytes:
    ray = import_ray()
    with join_cluster(ray, means) as joined:
        _serve(Tasks(ray, packed), joined, pipe_in, pipe_out)
        if not joined.own:  # to leave a cluster takes a moment, for which nobody needs to wait
            write_frame(pipe_out, OVER, b"")
    if joined.own:
        write_frame(pipe_out, OVER, b"")
    return b""


def _serve(tasks: Tasks, joined: Joined, pipe_in: IO[bytes], pipe_out: IO[bytes]) -> None:
    """Ask for as many units as the cluster has cores, less the one that works where it was asked."""
    running: dict[Ref, tuple[int, Ref]] = {}
    over = False
    try:
        while not over or running:
            free = max(1, (joined.limit or tasks.count_cores()) - 1) - len(running)
            if free > 0 and not over:
                write_frame(pipe_out, MORE, NUMBER.pack(free))
                for data in [read_frame(pipe_in)[1] for _ in range(free)]:
                    over = over or not data
                    if data:
                        told, result = tasks.score(data[NUMBER.size :])
                        running[told] = NUMBER.unpack_from(data)[0], result
            for told in tasks.wait([*running], 1) if running else ():
                at, result = running.pop(told)
                kind, text = tasks.get(told, str(at + 1))
                found = tasks.get(result, str(at + 1)) if kind == DONE else text
                write_frame(pipe_out, kind, NUMBER.pack(at) + found)
    finally:
        tasks.cancel(running)


if __name__ == "__main__":
    main()
