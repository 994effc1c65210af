"""A simulation of a cluster: documents in units of work, on cores of unequal speed, some of which are lost.

A unit goes to whichever core is free first. It is read and scored; its partial is merged in a tree, and is taken to be
of counts, so that it does not grow with documents: what columns would take at the root is a row of its own. The speed
of a core and that of each attempt vary by a log-normal law, with equal parts. A core is lost after an exponential time;
that is noticed late, its unit is scored again by another, and a new core starts. What a document costs is measured here
by ``evalcore score`` on logs of two sizes, unless it is given. The seed is fixed; equal figures give equal results.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace
from math import ceil, log, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from msgspec import Struct

from bench.measure import best_of, best_seconds
from bench.rows import Row
from bench.scale.growth import make_generation
from bench.scale.rescoring import make_logs
from evalcore import score_task
from evalcore.core.partials.partial import Partial, Span, decode_partial, encode_partial, unite_partials

UNIT_SIZES = tuple(step * 10**power for power in range(4, 8) for step in (1, 3))
FAN = 32
"""How many partials are merged at a time."""


class Costs(Struct, frozen=True):
    """Seconds and bytes: of a document, of a unit of work, of a core; ``read`` is bytes a second for each core."""

    each: float
    bytes_each: float
    start: float
    read: float
    dispatch: float = 0.001
    open: float = 0.05
    merge: float = 0.002
    notice: float = 30.0


class Cluster(Struct, frozen=True):
    """Cores, the standard deviation of the logarithm of their speed, and the mean seconds until one is lost."""

    cores: int
    spread: float
    lifetime: float


class Course(Struct, frozen=True):
    """How it went: seconds to the end; of the cores' time, the shares lost with cores and spent idle; cores lost."""

    seconds: float
    lost_share: float
    idle_share: float
    losses: int


def measure_costs(times: int = 3) -> tuple[float, float, float]:
    """Seconds and bytes a document, and seconds to start: from logs of two sizes."""
    found = []
    for size in (8_000_000, 80_000_000):
        with TemporaryDirectory() as name:
            make_logs(Path(name), size)
            paths = list(Path(name).glob("samples_*.jsonl"))
            rows = sum(path.read_bytes().count(b"\n") for path in paths)
            used = best_of(
                [sys.executable, "-m", "evalcore", "score", name, "-q", "--json", "--engine", "serial"],
                times,
                codes=(0, 1),
            )
            found.append((rows, sum(path.stat().st_size for path in paths), used.seconds))
    (few, small, brief), (many, large, taken) = found
    each = (taken - brief) / (many - few)
    return each, (large - small) / (many - few), max(brief - few * each, 0.0)


def measure_merge(docs: int = 2_000) -> tuple[float, float]:
    """Bytes a document of a partial that holds columns, and seconds a document to decode and merge such partials."""
    make = make_generation(docs)
    parts = [score_task(*make(start, docs)) for start in range(0, FAN * docs, docs)]
    spans = [Span("log", "rows", docs * at, docs * (at + 1)) for at in range(FAN)]
    files = [encode_partial(Partial(scored=(one,), spans=(span,))) for one, span in zip(parts, spans, strict=True)]
    taken = best_seconds(lambda: unite_partials(map(decode_partial, files)), 3)
    return sum(map(len, files)) / (FAN * docs), taken / (FAN * docs)


def simulate(documents: int, unit: int, costs: Costs, cluster: Cluster, seed: int = 0) -> Course:
    """Give units to free cores until all are scored, and merge."""
    rng = np.random.default_rng(seed)
    cores, units = cluster.cores, ceil(documents / unit)
    speeds = draw_speeds(rng, cores, cluster.spread)
    ends = (costs.start + rng.exponential(cluster.lifetime, cores)).tolist()
    free = [(costs.start, core) for core in range(cores)]
    heapify(free)
    delays = draw_delays(rng, cluster.spread)
    again: list[float] = []  # when units of lost cores can be given out again
    fresh, control, last, busy, lost, losses = units, 0.0, costs.start, 0.0, 0.0, 0
    while fresh or again:
        now, core = free[0]
        if again and (not fresh or again[0] <= now):
            now = max(now, heappop(again))
        else:
            fresh -= 1
        control = max(control, now) + costs.dispatch
        begin, slow = control, next(delays) / speeds[core]
        work = costs.open + unit * (costs.bytes_each / costs.read + costs.each * slow)
        end = begin + work
        if end <= ends[core]:
            busy, last = busy + work, max(last, end)
            heapreplace(free, (end, core))
            continue
        died = max(ends[core], begin)
        lost, losses = lost + died - begin, losses + 1
        heappush(again, died + costs.notice)
        ready = died + costs.notice + costs.start
        ends[core] = ready + rng.exponential(cluster.lifetime)
        heapreplace(free, (ready, core))
    last += costs.merge * FAN * ceil(log(max(units, 2)) / log(FAN))
    whole = last * cores
    return Course(last, lost / whole, 1 - (busy + lost) / whole, losses)


def draw_speeds(rng: np.random.Generator, count: int, spread: float) -> list[float]:
    """Speeds of mean 1; half of the variance of their logarithm is the core's, the other half that of an attempt."""
    speeds: list[float] = rng.lognormal(-(spread**2) / 4, spread / sqrt(2), count).tolist()
    return speeds


def draw_delays(rng: np.random.Generator, spread: float) -> Iterator[float]:
    """How many times as long as usual each attempt takes, drawn in blocks."""
    while True:
        yield from [1 / speed for speed in draw_speeds(rng, 4096, spread)]


def measure_rows(
    *,
    documents: int = 10**10,
    cores: int = 1000,
    unit: int = 0,
    micros: float = 0.0,
    bytes_each: float = 0.0,
    start: float = 0.0,
    mb_read: float = 100.0,
    spread: float = 0.5,
    lifetime_hours: float = 24.0,
) -> Iterator[Row]:
    """Figures that are 0 are measured; ``unit`` 0 tries sizes of units."""
    each, size, begin = (micros / 1e6, bytes_each, start) if micros and bytes_each and start else measure_costs()
    costs = Costs(micros / 1e6 or each, bytes_each or size, start or begin, mb_read * 1e6)
    cluster = Cluster(cores, spread, lifetime_hours * 3600)
    yield Row(
        what="read, decoded and scored",
        ours=costs.each * 1e6,
        unit="µs a row",
        note=f"{costs.bytes_each:,.0f} bytes a row",
    )
    yield Row(what="start of a process", ours=costs.start, unit="s")
    floor = costs.start + documents * (costs.each + costs.bytes_each / costs.read) / cores
    found = {}
    for one in [unit] if unit else [size for size in UNIT_SIZES if size * 2 <= documents]:
        course = simulate(documents, one, costs, cluster)
        found[one] = course.seconds
        yield Row(
            what=f"units of {one:,}",
            ours=course.seconds,
            unit="s",
            floor=floor,
            note=f"{course.lost_share:.2%} lost with {course.losses:,} cores, {course.idle_share:.1%} idle",
        )
    best = min(found, key=lambda size: found[size])
    yield Row(what=f"best: units of {best:,}", ours=found[best], unit="s", floor=floor)
    small, merging = measure_merge()
    note = f"{small:.1f} bytes a document and two columns, {small * documents / 1e9:,.0f} GB in all"
    yield Row(what="columns merged at the root, instead of counts", ours=merging * documents, unit="s", note=note)
