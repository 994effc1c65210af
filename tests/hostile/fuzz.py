"""Every reader, template, reply body and command on changed inputs: a result or an error for people, in time.

    python -m tests.hostile fuzz --inputs 1000000      # or --seconds 480, --target samples, --seed 7

An input that gives a traceback, takes longer than its deadline, or leaves a file outside its folder is written to
``--keep`` and named; it becomes a regression by being put into ``tests/hostile/corpus/TARGET/``.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from multiprocessing import TimeoutError, get_context
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.hostile.fuzz_targets import TARGETS, Target
from tests.hostile.mutations import mutate

CORPUS = Path(__file__).parent / "corpus"
DEADLINE = 20
PATIENCE = 120
MEMORY = 6 << 30


class TooLong(BaseException):
    """An input took longer than its deadline."""


class Finding(NamedTuple):
    """An input that was neither read nor refused."""

    target: str
    data: bytes
    what: str


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise after so many seconds of the processor, which a busy machine does not shorten."""

    def ring(number: int, frame: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def try_input(name: str, target: Target, data: bytes, folder: Path) -> Finding | None:
    """Read an input; None if it was read, or refused by an error for people."""
    try:
        with deadline(DEADLINE):
            target.read(data, folder)
    except target.refusals:
        return None
    except TooLong:
        return Finding(name, data, f"took longer than {DEADLINE} s")
    except (Exception, SystemExit, KeyboardInterrupt) as wrong:
        return Finding(name, data, "".join(traceback.format_exception(wrong)[-3:]))
    return None


def make_inputs(name: str, seeds: list[bytes], seed: int) -> Iterator[bytes]:
    """Changed copies of the seeds, without end; the same for the same seed."""
    dice = Random(f"{name} {seed}")
    while True:
        yield mutate(dice.choice(seeds), seeds, dice)


def read_corpus(name: str) -> list[bytes]:
    """Inputs that once were neither read nor refused."""
    return [path.read_bytes() for path in sorted((CORPUS / name.replace(" ", "_")).glob("*"))]


def fuzz_target(name: str, inputs: int, seconds: float, seed: int) -> tuple[str, int, float, list[Finding]]:
    """Try inputs of one target until either limit; how many, in how many seconds, and what was found."""
    target, begun = TARGETS[name], time.monotonic()
    found: dict[str, Finding] = {}
    tried = 0
    home = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(prefix="fuzz", dir=home) as scratch:
        folder = Path(scratch) / "in"
        (seeding := Path(scratch) / "seeds").mkdir()
        folder.mkdir()
        os.chdir(folder)
        seeds = [*target.seeds(seeding), *read_corpus(name)]
        for one in seeds[: len(seeds) - len(read_corpus(name))]:
            target.read(one, folder)  # a seed that is refused would test little
        before = _list_outside(Path(scratch))
        for data in make_inputs(name, seeds, seed):
            if tried >= inputs or time.monotonic() - begun > seconds:
                break
            tried += 1
            finding = try_input(name, target, data, folder)
            if finding is not None:
                found.setdefault(finding.what[-300:], finding)
            if tried % 500 == 0 and _list_outside(Path(scratch)) != before:
                found.setdefault("outside", Finding(name, data, "a file was written outside the folder"))
        os.chdir("/")
    return name, tried, time.monotonic() - begun, list(found.values())


def _list_outside(scratch: Path) -> set[str]:
    return {one.name for one in scratch.iterdir()} | {one.name for one in scratch.parent.glob("evil*")}


def _bound_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.hostile fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=10**12, help="in all")
    parser.add_argument("--seconds", type=float, default=60, help="of the whole, at most")
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="only this one; repeatable")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10**6)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"))
    given = parser.parse_args(arguments)
    names = given.target or list(TARGETS)
    share = sum(TARGETS[name].weight for name in names)
    total, problems = 0, 0
    with get_context("spawn").Pool(given.workers, _bound_memory, maxtasksperchild=1) as pool:
        seconds = given.seconds * given.workers / len(names)
        jobs = [
            pool.apply_async(
                fuzz_target, (name, round(given.inputs * TARGETS[name].weight / share) + 1, seconds, given.seed)
            )
            for name in names
        ]
        for job in jobs:
            try:
                name, tried, took, found = job.get(seconds * len(jobs) + PATIENCE)
            except TimeoutError:  # which a pool waits for without end
                print("a worker ended, killed by what it read", flush=True)
                return 1
            total, problems = total + tried, problems + len(found)
            print(f"{name:16} {tried:>9,} inputs {took:7.1f} s  {len(found)} found", flush=True)
            for finding in found:
                place = given.keep / name.replace(" ", "_") / sha256(finding.data).hexdigest()[:12]
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(finding.data)
                print(f"  {place}\n    " + finding.what.strip().replace("\n", "\n    "))
    print(f"{total:,} inputs, seed {given.seed}: {problems} neither read nor refused")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
