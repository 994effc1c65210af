"""Types for the few toolz functions evalcore uses."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

def concat(seqs: Iterable[Iterable[T]]) -> Iterator[T]: ...
def unique(seq: Iterable[T], key: Callable[[T], Hashable] | None = None) -> Iterator[T]: ...
def partition_all(n: int, seq: Iterable[T]) -> Iterator[tuple[T, ...]]: ...
