"""Scoring a log again by each engine: the wall time of whole commands, beside one process.

python bench/engines.py [--gb 0.2] [--workers 2] [--engines serial processes ray] [--folder FOLDER] [--times 3]

The logs are those of ``bench/rescoring.py``. ``ray`` is a cluster of so many cores that runs before the command, as
most do; ``ray-cold`` is one that the command starts. All commands of a round run one after the other, so that a busy
machine slows all of them; the least time of each counts. Results must be the same to the byte. Wanted on two idle cores
with 2 GB: processes at least 1.7 times as fast as serial, ray at least 1.5 times.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from rescoring import COMPILED, make_logs

ENGINES = {
    "serial": ("--engine", "serial"),
    "processes": ("--engine", "processes", "--workers", "{workers}"),
    "ray": ("--engine", "ray", "--address", "{address}"),
    "ray-cold": ("--engine", "ray", "--address", "local", "--workers", "{workers}"),
}


@contextmanager
def run_cluster(workers: int) -> Iterator[str]:
    """A cluster behind a token of its own; its address."""
    COMPILED.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32), RAY_USAGE_STATS_ENABLED="0")
    os.environ.update(COMPILED)
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": workers, "include_dashboard": False})
    try:
        yield made.address
    finally:
        made.shutdown()


def measure(command: Sequence[str]) -> tuple[float, float, bytes]:
    """The wall time of a command, the time of the processor that it and its children took, and what it printed."""
    start, before = perf_counter(), os.times()
    done = subprocess.run(command, stdout=subprocess.PIPE, env=COMPILED, check=False)
    after = os.times()
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return perf_counter() - start, used, done.stdout


def compare(folder: Path, names: Sequence[str], times: int, workers: int, address: str) -> None:
    base = [sys.executable, "-m", "evalcore", "score", str(folder), "-q", "--json"]
    each = {name: [part.format(workers=workers, address=address) for part in ENGINES[name]] for name in names}
    rounds = [{name: measure([*base, *flags]) for name, flags in each.items()} for _ in range(times)]
    if len({found[2] for one in rounds for found in one.values()}) != 1:
        raise SystemExit("expected the same results of every engine")
    least = {name: min(one[name][0] for one in rounds) for name in names}
    for name in names:
        used = min(one[name][1] for one in rounds)
        ratio = least[names[0]] / least[name]
        print(f"{name:10s} {least[name]:7.2f} s | {used:7.2f} s of the processor | {ratio:.2f} times as fast")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=0.2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=["serial", "processes", "ray"])
    parser.add_argument("--folder", type=Path, help="where the logs are made (a temporary one)")
    parser.add_argument("--times", type=int, default=3, help="of each; the least time counts")
    given = parser.parse_args()
    with TemporaryDirectory(dir=given.folder) as made:
        make_logs(Path(made), int(given.gb * 1e9))
        print(f"{sum(path.stat().st_size for path in Path(made).iterdir()) / 1e9:.3f} GB", flush=True)
        if "ray" not in given.engines:
            return compare(Path(made), given.engines, given.times, given.workers, "")
        with run_cluster(given.workers) as address:
            compare(Path(made), given.engines, given.times, given.workers, address)
    return None


if __name__ == "__main__":
    main()
