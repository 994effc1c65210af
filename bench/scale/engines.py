"""Scoring a log again by each engine: the wall time of whole commands, beside one process.

The logs are those of ``rescoring``. ``ray`` is a cluster of so many cores that runs before the command, as
most do; ``ray-cold`` is one that the command starts. All commands of a round run one after the other, so that a busy
machine slows all of them; the least time of each counts. Results must be the same to the byte.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from bench.measure import make_environment
from bench.rows import Row, Target, at_least
from bench.scale.rescoring import make_logs

ENGINES = {
    "serial": ("--engine", "serial"),
    "processes": ("--engine", "processes", "--workers", "{workers}"),
    "ray": ("--engine", "ray", "--address", "{address}"),
    "ray-cold": ("--engine", "ray", "--address", "local", "--workers", "{workers}"),
}
WANTED: dict[str, tuple[Target, ...]] = {"processes": (at_least(1.7),), "ray": (at_least(1.5),)}
"""On two idle cores."""


@contextmanager
def run_cluster(workers: int) -> Iterator[str]:
    """A cluster behind a token of its own; its address."""
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32), RAY_USAGE_STATS_ENABLED="0")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": workers, "include_dashboard": False})
    try:
        yield made.address
    finally:
        made.shutdown()


def measure(command: Sequence[str]) -> tuple[float, float, bytes]:
    """The wall time of a command, the time of the processor that it and its children took, and what it printed."""
    start, before = perf_counter(), os.times()
    done = subprocess.run(command, stdout=subprocess.PIPE, env=make_environment(), check=False)
    after = os.times()
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return perf_counter() - start, used, done.stdout


def compare(folder: Path, names: Sequence[str], times: int, workers: int, address: str) -> Iterator[Row]:
    base = [sys.executable, "-m", "evalcore", "score", str(folder), "-q", "--json"]
    each = {name: [part.format(workers=workers, address=address) for part in ENGINES[name]] for name in names}
    rounds = [{name: measure([*base, *flags]) for name, flags in each.items()} for _ in range(times)]
    assert len({found[2] for one in rounds for found in one.values()}) == 1, "other results"
    least = {name: min(one[name][0] for one in rounds) for name in names}
    for name in names:
        used = min(one[name][1] for one in rounds)
        note = f"{used:.2f} s of the processor"
        peer, targets = least[names[0]], WANTED.get(name, ())
        yield Row(what=name, peer=peer, of=names[0], ours=least[name], unit="s", targets=targets, note=note)


def measure_rows(
    *, gb: float = 2.0, workers: int = 2, engines: str = "serial,processes,ray", folder: str = "", times: int = 3
) -> Iterator[Row]:
    """Engines that are named, the first of which is compared with; without ray, that is left out."""
    names = [name for name in engines.split(",") if not name.startswith("ray") or find_spec("ray")]
    with TemporaryDirectory(dir=folder or None) as made:
        make_logs(Path(made), int(gb * 1e9))
        with run_cluster(workers) if "ray" in names else nullcontext("") as address:
            yield from compare(Path(made), names, times, workers, address)
