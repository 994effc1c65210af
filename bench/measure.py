"""Time, memory and instructions of calls and of processes, and how they grow.

Times are the processor's, so that others on the machine count less, and the least of some rounds.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from math import log
from pathlib import Path
from statistics import linear_regression
from time import process_time

from msgspec import Struct

ROOT = Path(__file__).parents[1]
QUIET = {
    "OPENBLAS_NUM_THREADS": "1",  # numpy's idle threads spin for a while, which is no one's work
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TQDM_DISABLE": "1",
    "LMEVAL_LOG_LEVEL": "ERROR",
}
"""What every measured process sees."""


def make_environment() -> dict[str, str]:
    """The environment of a process that finds this package and keeps its bytecode, as where a program ran before."""
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(ROOT))))
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **QUIET, "PYTHONPATH": path}


class Used(Struct, frozen=True):
    """What a process took: seconds of the processor, megabytes at its peak, and what it printed."""

    seconds: float
    memory: float
    output: str = ""


def best_seconds(work: Callable[[], object], rounds: int = 1) -> float:
    """Seconds of this process, the least of some rounds."""
    taken = []
    for _ in range(rounds):
        start = process_time()
        work()
        taken.append(process_time() - start)
    return min(taken)


SPAWN = """
import os, sys
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(pid, 0)
told = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
os.write(int(sys.argv[1]), " ".join(map(str, told)).encode())
"""
"""A small process that starts another: a peak of memory would otherwise begin at that of whoever starts it."""


def run_process(command: Sequence[str], codes: Sequence[int] = (0,)) -> Used:
    """Run a command to its end, which must have one of these exit codes."""
    told, tell = os.pipe()
    spawn = [sys.executable, "-I", "-S", "-c", SPAWN, str(tell), *command]
    done = subprocess.run(spawn, stdout=subprocess.PIPE, text=True, env=make_environment(), pass_fds=[tell], check=True)
    os.close(tell)
    with open(told) as report:
        code, seconds, memory = report.read().split()
    if int(code) not in codes:
        raise RuntimeError(f"{' '.join(command)[:200]} ended with exit code {code}")
    return Used(float(seconds), float(memory), done.stdout)


def best_of(command: Sequence[str], times: int, codes: Sequence[int] = (0,)) -> Used:
    """The least time and the largest peak of some runs of a command."""
    runs = [run_process(command, codes) for _ in range(times)]
    return Used(min(one.seconds for one in runs), max(one.memory for one in runs), runs[-1].output)


def run_python(code: str, *arguments: object) -> Used:
    return run_process([sys.executable, "-c", code, *map(str, arguments)])


def count_instructions(code: str, *arguments: object) -> int:
    """The instructions of a Python process, counted by callgrind: the same however busy the machine is."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, "-c", code]
    done = subprocess.run(
        [*command, *map(str, arguments)],
        env={**make_environment(), "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
    )
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        raise RuntimeError(f"callgrind: {done.stderr.strip().splitlines()[-1]}")
    return int(found[1])


def fit_exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The power of the size with which costs grow, by least squares on logarithms.

    Sizes below 10,000 count only if there are no others, for what is done once is most of their cost.

    >>> round(fit_exponent([10, 100, 1000], [3, 30, 300]), 6)
    1.0
    """
    pairs = list(zip(sizes, costs, strict=True))
    large = [pair for pair in pairs if pair[0] >= 10_000]
    logs = [(log(size), log(cost)) for size, cost in (large if len(large) > 1 else pairs)]
    return linear_regression(*zip(*logs, strict=True)).slope


def list_sizes(least: int, most: int) -> list[int]:
    """Powers of ten between two sizes.

    >>> list_sizes(1000, 100_000)
    [1000, 10000, 100000]
    """
    return [10**power for power in range(20) if least <= 10**power <= most]
