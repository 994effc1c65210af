"""Ray: units go to the workers of a cluster, lost ones are done again, results are merged there in a tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evalcore.core.records.errors import require
from evalcore.shell.engines.interface import Engine, Means, Merge, Work

FAN = 16
"""How many results one task of the cluster merges."""


def spread_over_cluster(work: Work, units: Sequence[object], merge: Merge, means: Means) -> Iterator[bytes]:
    """Spread units over a Ray cluster."""
    require("ray", "ray")
    raise NotImplementedError


RAY = Engine(title="a Ray cluster", spread=spread_over_cluster)
