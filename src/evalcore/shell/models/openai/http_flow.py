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
) -> Iterator[T]:
    """Yield results as they come. Nothing new starts before all results at hand have been taken.

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
            done = runner.run(_wait_first(tuple(tasks)))
            failed = [task for task in done if task.exception() is not None]
            for task in sorted(done - set(failed), key=tasks.__getitem__):
                del tasks[task]
                limit = adjust_limit(limit, most, throttled(task.result()))
                yield task.result()
            if failed:
                min(failed, key=tasks.__getitem__).result()
    finally:
        _take_turn(runner.get_loop())
        runner.run(_cancel_jobs(tuple(tasks)))


def _take_turn(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop once: an interrupt between the end of a run and its stop leaves that stop to the next run."""
    loop.call_soon(loop.stop)
    loop.run_forever()


async def _wait_first(tasks: tuple[asyncio.Task[T], ...]) -> set[asyncio.Task[T]]:
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    return done


async def _cancel_jobs(tasks: tuple[asyncio.Task[T], ...]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
