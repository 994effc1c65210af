"""lm-eval's index of its own task library beside ours: cold, and from the cache; each in fresh processes.

    python bench/index.py [rounds]

``index`` is the call alone, ``process`` the whole process with its imports. Every round runs the three sides one after
the other, and the fastest round of each side counts: what a busy machine adds is not the program's. Wanted of the
index: at least 5 times cold and 25 times from the cache.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time

THEIRS = """
import logging, time
logging.disable(logging.CRITICAL)
from lm_eval.tasks import TaskManager
start = time.perf_counter()
count = len(TaskManager().all_tasks)
print(time.perf_counter() - start, count)
"""
OURS = """
import sys, time
from evalcore.shell.tasks.library.index import find_library
from evalcore.shell.tasks.library.cache import build_index
start = time.perf_counter()
count = len(build_index([find_library()], cache=sys.argv[1] or None).entries)
print(time.perf_counter() - start, count)
"""


def measure(code: str, *args: str) -> tuple[float, float, int]:
    """Seconds of the call, seconds of the process, names found."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=True)
    whole = time.perf_counter() - start
    call, count = done.stdout.split()[-2:]
    return float(call), whole, int(count)


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as cache:
        measure(OURS, cache)
        sides = {"lm-eval": (THEIRS,), "evalcore, cold": (OURS, ""), "evalcore, warm": (OURS, cache)}
        taken: dict[str, list[tuple[float, float, int]]] = {name: [] for name in sides}
        for _ in range(rounds):
            for name, side in sides.items():
                taken[name].append(measure(*side))
    assert len({one[2] for some in taken.values() for one in some}) == 1
    base = [min(one[at] for one in taken["lm-eval"]) for at in (0, 1)]
    print(f"{'':16}{'names':>8}{'index':>10}{'':>8}{'process':>10}")
    for name, some in taken.items():
        call, whole = (min(one[at] for one in some) for at in (0, 1))
        ratios = f"{base[0] / call:7.1f}x", f"{base[1] / whole:7.1f}x"
        print(f"{name:16}{some[0][2]:8}{call:9.3f}s{ratios[0]}{whole:9.3f}s{ratios[1]}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
