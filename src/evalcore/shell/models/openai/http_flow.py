"""Many coroutines, a bounded number at a time and fewer after a complaint, as a plain iterator of their results."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from typing import TypeVar

from msgspec import Struct, field

T = TypeVar("T")


def adjust_limit(limit: int, most: int, throttled: bool) -> int:
    """Compute how many may run from now on: half after a complaint, one more after each success.

    >>> adjust_limit(8, 8, True), adjust_limit(4, 8, False), adjust_limit(1, 8, True), adjust_limit(8, 8, False)
    (4, 5, 1, 8)
    """
    return max(1, limit // 2) if throttled else min(most, limit + 1)


class Turnstile(Struct):
    """How many requests may be in flight, retries included: ``limit`` of at most ``most``. ``turn`` counts the cuts."""

    most: int
    limit: int
    busy: int = 0
    turn: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


async def enter_turnstile(turnstile: Turnstile) -> int:
    """Wait until a request may be sent; return the turn in which it is."""
    while turnstile.busy >= turnstile.limit:
        place = asyncio.get_running_loop().create_future()
        turnstile.waiting.append(place)
        await place
    turnstile.busy += 1
    return turnstile.turn


def leave_turnstile(turnstile: Turnstile, turn: int, *, fine: bool, throttled: bool) -> None:
    """Let the next in. Requests that were sent together are one complaint, however many the server turns away."""
    turnstile.busy -= 1
    if fine or (throttled and turn == turnstile.turn):
        turnstile.limit = adjust_limit(turnstile.limit, turnstile.most, throttled)
        turnstile.turn += throttled
    room = turnstile.limit - turnstile.busy
    while room > 0 and turnstile.waiting:
        place = turnstile.waiting.popleft()
        if not place.done():  # cancelled
            place.set_result(None)
            room -= 1


def run_jobs(
    runner: asyncio.Runner,
    start: Callable[[int], Coroutine[None, None, T]],
    queue: deque[int],
    most: int,
    wake: asyncio.Event,
) -> Iterator[tuple[T, bool] | None]:
    """Yield results as they come, and whether more are at hand. Nothing new starts before all of those are taken.

    A job is started for each number in the queue, which may grow meanwhile. None is yielded when ``wake`` was set.
    Closing the iterator, or an error in a job, cancels what is running and waits for its end.
    """
    tasks: dict[asyncio.Task[T], int] = {}
    started = 0
    alarm = runner.get_loop().create_task(wake.wait())
    try:
        while True:
            while len(tasks) < most and queue:
                tasks[runner.get_loop().create_task(start(queue.popleft()))] = started
                started += 1
            if not tasks:
                return
            done = runner.run(_wait_some(tuple(tasks), alarm))
            failed = [task for task in done if task.exception() is not None]
            fine = sorted(done - set(failed), key=tasks.__getitem__)
            for left, task in zip(range(len(fine) - 1, -1, -1), fine, strict=True):
                del tasks[task]
                yield task.result(), left > 0
            if alarm.done():
                wake.clear()
                alarm = runner.get_loop().create_task(wake.wait())
                yield None
            if failed:
                min(failed, key=tasks.__getitem__).result()
    finally:
        _take_turn(runner.get_loop())
        alarm.cancel()
        runner.run(_cancel_jobs(tuple(tasks)))


def _take_turn(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop once: an interrupt between the end of a run and its stop leaves that stop to the next run."""
    loop.call_soon(loop.stop)
    loop.run_forever()


TURNS = 8
"""As many turns of the loop as a reply whose bytes have arrived takes to be read, and some more."""


async def _wait_some(tasks: tuple[asyncio.Task[T], ...], alarm: asyncio.Task[bool]) -> set[asyncio.Task[T]]:
    """Wait for the first result, and take those that came meanwhile, so that they become durable together.

    An alarm ends the wait.
    """
    await asyncio.wait((*tasks, alarm), return_when=asyncio.FIRST_COMPLETED)
    done = {task for task in tasks if task.done()}
    rest, idle = set(tasks) - done, 0
    while rest and idle < TURNS:
        await asyncio.sleep(0)
        more = {task for task in rest if task.done()}
        done, rest, idle = done | more, rest - more, 0 if more else idle + 1
    return done


async def _cancel_jobs(tasks: tuple[asyncio.Task[T], ...]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
