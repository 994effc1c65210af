"""lm-eval's index of its own task library beside ours: cold, and from the cache; each in fresh processes.

Every round runs the three sides one after the other, and the fastest round of each side counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from tempfile import TemporaryDirectory

from bench.measure import run_python
from bench.rows import Row, at_least

THEIRS = """
import logging, time
logging.disable(logging.CRITICAL)
from lm_eval.tasks import TaskManager
start = time.process_time()
count = len(TaskManager().all_tasks)
print(time.process_time() - start, count)
"""
OURS = """
import sys, time
from evalcore.shell.tasks.library.index import find_library
from evalcore.shell.tasks.library.cache import build_index
start = time.process_time()
count = len(build_index([find_library()], cache=sys.argv[1] or None).entries)
print(time.process_time() - start, count)
"""


def measure(code: str, *args: str) -> tuple[float, float, int]:
    """Seconds of the call, seconds of the process, names found."""
    done = run_python(code, *args)
    call, count = done.output.split()[-2:]
    return float(call), done.seconds, int(count)


def measure_rows(*, rounds: int = 3) -> Iterator[Row]:
    with TemporaryDirectory() as cache:
        measure(OURS, cache)
        sides = {"lm-eval": (THEIRS,), "cold": (OURS, ""), "from the cache": (OURS, cache)}
        taken = {name: [measure(*side) for _ in range(rounds)] for name, side in sides.items()}
    names = {one[2] for some in taken.values() for one in some}
    assert len(names) == 1, f"expected the same names on both sides, got {names}"
    calls, wholes = ({name: min(one[at] for one in some) for name, some in taken.items()} for at in (0, 1))
    for name, limit in (("cold", 5), ("from the cache", 25)):
        what, note = f"index, {name}", f"{max(names):,} names"
        yield Row(what=what, peer=calls["lm-eval"], ours=calls[name], unit="s", targets=(at_least(limit),), note=note)
        yield Row(what=f"whole process, {name}", peer=wholes["lm-eval"], ours=wholes[name], unit="s")
