"""Many coroutines, a bounded number at a time, as a plain iterator of their results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def adjust_limit(limit: int, most: int, throttled: bool) -> int:
    """Compute how many may run from now on: half after a complaint, one more after each success.

    >>> adjust_limit(8, 8, True), adjust_limit(4, 8, False), adjust_limit(1, 8, True), adjust_limit(8, 8, False)
    (4, 5, 1, 8)
    """
    return max(1, limit // 2) if throttled else min(most, limit + 1)


def run_jobs(
    runner: asyncio.Runner,
    jobs: Iterable[Callable[[], Coroutine[None, None, T]]],
    most: int,
    throttled: Callable[[T], bool],
) -> Iterator[tuple[T, bool]]:
    """Yield results as they come, and whether more are at hand. Nothing new starts before all of those are taken.

    Closing the iterator, or an error in a job, cancels what is running and waits for its end.
    """
    waiting, limit = iter(jobs), most
    tasks: dict[asyncio.Task[T], int] = {}
    started = 0
    try:
        while True:
            while len(tasks) < limit and (job := next(waiting, None)) is not None:
                tasks[runner.get_loop().create_task(job())] = started
                started += 1
            if not tasks:
                return
            done = runner.run(_wait_some(tuple(tasks)))
            failed = [task for task in done if task.exception() is not None]
            fine = sorted(done - set(failed), key=tasks.__getitem__)
            for left, task in zip(range(len(fine) - 1, -1, -1), fine, strict=True):
                del tasks[task]
                limit = adjust_limit(limit, most, throttled(task.result()))
                yield task.result(), left > 0
            if failed:
                min(failed, key=tasks.__getitem__).result()
    finally:
        _take_turn(runner.get_loop())
        runner.run(_cancel_jobs(tuple(tasks)))


def _take_turn(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop once: an interrupt between the end of a run and its stop leaves that stop to the next run."""
    loop.call_soon(loop.stop)
    loop.run_forever()


TURNS = 8
"""As many turns of the loop as a reply whose bytes have arrived takes to be read, and some more."""


async def _wait_some(tasks: tuple[asyncio.Task[T], ...]) -> set[asyncio.Task[T]]:
    """Wait for the first result, and take those that came meanwhile, so that they become durable together."""
    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    idle = 0
    while rest and idle < TURNS:
        await asyncio.sleep(0)
        more = {task for task in rest if task.done()}
        done, rest, idle = done | more, rest - more, 0 if more else idle + 1
    return done


async def _cancel_jobs(tasks: tuple[asyncio.Task[T], ...]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
