"""Bigger than memory: documents scored and tallied as they stream by, ten thousand to a hundred million of them."""

from __future__ import annotations

from collections.abc import Iterator

from bench.measure import list_sizes
from bench.rows import Row, Section, write_table
from bench.scale.growth import CASES, measure_growth
from evalcore.stats import list_support

PROMISED = {10_000_000: 500.0, 100_000_000: 2000.0}
"""Megabytes at the peak."""

OTHERWISE = "Clusters, paired comparisons and bootstraps are refused; the noise of repeats and replies are left out."


def measure_rows(*, least: int = 10_000, most: int = 100_000_000) -> Iterator[Row | Section]:
    for case in CASES:
        yield from measure_growth(case, "tally", list_sizes(least, most), PROMISED)
    table = write_table(("", "name", "in a tally"), list_support())
    yield Section("", "", f"{table}\n\n{OTHERWISE}")
