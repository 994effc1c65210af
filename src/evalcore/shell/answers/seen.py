"""Which documents a log has shown, in a few bytes each."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

__all__ = ["Pages"]

BITS = 10
SIZE = 1 << BITS


class Pages:
    """Whole numbers by whole numbers, kept in pages of 64-bit integers: 8 bytes for each of a run of keys.

    >>> pages = Pages()
    >>> pages.put(7, -3), pages.get(7), pages.get(8), pages.get(-1)
    (None, -3, 0, 0)
    """

    __slots__ = ("_pages",)

    def __init__(self) -> None:
        self._pages: dict[int, array[int]] = {}

    def get(self, key: int) -> int:
        page = self._pages.get(key >> BITS)
        return 0 if page is None else page[key & SIZE - 1]

    def put(self, key: int, value: int) -> None:
        page = self._pages.get(key >> BITS)
        if page is None:
            page = self._pages[key >> BITS] = array("q", bytes(8 * SIZE))
        page[key & SIZE - 1] = value

    def items(self) -> Iterator[tuple[int, int]]:
        """The keys that have a value other than zero."""
        for high, page in self._pages.items():
            yield from ((high << BITS | low, one) for low, one in enumerate(page) if one)
