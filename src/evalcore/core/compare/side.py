"""One run as a side of a comparison: its scores, its documents as the outside knows them, its groups."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from evalcore.core.groups import Tree
from evalcore.core.records.document import DocumentRow
from evalcore.core.records.score import Scored

__all__ = ["Side"]


class Side(Struct, frozen=True):
    """A run's scores by task, with the document table that its column keys point into, and the trees of its groups."""

    name: str
    scored: tuple[Scored, ...]
    documents: Mapping[str, tuple[DocumentRow, ...]] = field(default_factory=dict)
    trees: tuple[Tree[object], ...] = ()
