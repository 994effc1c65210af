"""What a call costs through the pool of verifiers: the clock's time, the best of several runs.

The direct call is the floor; a process pool of the standard library, which has no deadline and ends with the first
crash, is the peer.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter, process_time

from bench.rows import Row
from evalcore.adapters.reward import make_reward
from evalcore.adapters.verifiers import VerifierPool
from evalcore.core.records.outcome import Outcome

TEXT = "There are 3 cars with 4 wheels each, which makes 3 * 4 = 12 wheels.\nThe answer is 12."
LAST_NUMBER = {"function": "regex", "regex_pattern": "(-?[0-9]+)", "group_select": -1}
REWARD = make_reward("exact_match", [LAST_NUMBER])


def judge(text: str, gold: str) -> Outcome:
    """The reward by name, so that no pool sends it along with every call."""
    return REWARD.outcome(text, gold)


def measure(call: Callable[[], object], calls: int, times: int) -> tuple[float, float]:
    """Microseconds a call of CPU time here and of the clock, each the best of several runs."""
    runs = []
    for _ in range(times):
        own, clock = process_time(), perf_counter()
        call()
        runs.append((process_time() - own, perf_counter() - clock))
    own, clock = map(min, zip(*runs, strict=True))
    return own / calls * 1e6, clock / calls * 1e6


def measure_rows(*, calls: int = 1000, workers: int = 2, times: int = 7) -> Iterator[Row]:
    unit, rows = "µs a call", [(TEXT, "12")] * calls
    _, direct = measure(lambda: [REWARD.outcome(*row) for row in rows], calls, times)
    with VerifierPool(REWARD.outcome, workers=workers, deadline=60) as pool:
        before = perf_counter()
        pool(*rows[0])
        first = perf_counter() - before
        pool.outcomes(rows)
        own, clock = measure(lambda: [pool(*row) for row in rows], calls, times)
        yield Row(what="one after another", ours=clock, unit=unit, floor=direct, note=f"{own:.0f} are CPU time here")
        own, clock = measure(lambda: pool.outcomes(rows), calls, times)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as peer:
        texts, golds = zip(*rows, strict=True)
        list(peer.map(judge, texts, golds))
        _, theirs = measure(lambda: list(peer.map(judge, texts, golds)), calls, times)
    yield Row(
        what=f"{workers} workers",
        peer=theirs,
        of="ProcessPoolExecutor",
        ours=clock,
        unit=unit,
        floor=direct,
        note=f"{own:.0f} are CPU time here",
    )
    spent = (used.ru_utime + used.ru_stime) / ((2 * times + 1) * calls) * 1e6
    yield Row(what="CPU time of workers, with starts", ours=spent, unit=unit)
    yield Row(what="first call, with the start of a worker", ours=first * 1e6, unit=unit)
