"""What a call costs through the pool of verifiers: ``python bench/verifiers.py``.

Microseconds a call, the best of several runs: of this process's CPU time, of its workers' and of the clock. The direct
call is the floor; a process pool of the standard library, which has no deadline and ends with the first crash, is the
peer.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter, process_time

from evalcore.adapters.reward import make_reward
from evalcore.adapters.verifiers import VerifierPool
from evalcore.core.records.outcome import Outcome

TEXT = "There are 3 cars with 4 wheels each, which makes 3 * 4 = 12 wheels.\nThe answer is 12."
LAST_NUMBER = {"function": "regex", "regex_pattern": "(-?[0-9]+)", "group_select": -1}
CALLS, WORKERS, TIMES = 1000, 2, 7
REWARD = make_reward("exact_match", [LAST_NUMBER])


def judge(text: str, gold: str) -> Outcome:
    """The reward by name, so that no pool sends it along with every call."""
    return REWARD.outcome(text, gold)


def measure(call: Callable[[], object]) -> tuple[float, float]:
    """Microseconds a call of CPU time here and of the clock, each the best of several runs."""
    runs = []
    for _ in range(TIMES):
        own, clock = process_time(), perf_counter()
        call()
        runs.append((process_time() - own, perf_counter() - clock))
    own, clock = map(min, zip(*runs, strict=True))
    return own / CALLS * 1e6, clock / CALLS * 1e6


def show(name: str, own: float, clock: float) -> None:
    print(f"{name:<40}{own:>10.1f}{clock:>10.1f}{1e6 / clock:>12,.0f}")


def main() -> None:
    rows = [(TEXT, "12")] * CALLS
    print(f"{'us a call':<40}{'CPU here':>10}{'clock':>10}{'calls a s':>12}")
    show("direct", *measure(lambda: [REWARD.outcome(*row) for row in rows]))
    with VerifierPool(REWARD.outcome, workers=WORKERS, deadline=60) as pool:
        before = perf_counter()
        pool(*rows[0])
        first = perf_counter() - before
        pool.outcomes(rows)
        show("pool, one after another", *measure(lambda: [pool(*row) for row in rows]))
        show(f"pool, {WORKERS} workers", *measure(lambda: pool.outcomes(rows)))
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    calls = (2 * TIMES + 1) * CALLS
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as peer:
        texts, golds = zip(*rows, strict=True)
        list(peer.map(judge, texts, golds))
        show(f"ProcessPoolExecutor, {WORKERS} workers", *measure(lambda: list(peer.map(judge, texts, golds))))
    print(
        f"CPU time of the workers, starts included: {(workers.ru_utime + workers.ru_stime) / calls * 1e6:.1f} us a call"
    )
    print(f"the first call, with the start of a worker: {first:.2f} s")


if __name__ == "__main__":
    main()
