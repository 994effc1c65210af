"""Which documents a log has shown, in a few bytes each."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

__all__ = ["Pages"]

BITS = 10
SIZE = 1 << BITS
MASK = SIZE - 1
FEW = 32
"""Up to so many keys of a page are kept one by one: keys that are far apart would each take a page."""


class Pages:
    """Whole numbers by whole numbers, kept in pages of 64-bit integers: 8 bytes for each of a run of keys.

    >>> pages = Pages()
    >>> pages.put(7, -3), pages.get(7), pages.get(8), pages.get(-1)
    (None, -3, 0, 0)
    """

    __slots__ = ("_counts", "_loose", "_pages")

    def __init__(self) -> None:
        self._pages: dict[int, array[int]] = {}
        self._loose: dict[int, int] = {}
        self._counts: dict[int, int] = {}

    def get(self, key: int) -> int:
        page = self._pages.get(key >> BITS)
        return self._loose.get(key, 0) if page is None else page[key & MASK]

    def put(self, key: int, value: int) -> None:
        page = self._pages.get(key >> BITS)
        if page is None:
            page = self._grown(key)
        if page is None:
            self._loose[key] = value
        else:
            page[key & MASK] = value

    def _grown(self, key: int) -> array[int] | None:
        """A page for a key that has none, once there are enough like it."""
        high = key >> BITS
        if key in self._loose:
            return None
        self._counts[high] = self._counts.get(high, 0) + 1
        return self._new_page(high) if self._counts[high] > FEW else None

    def _new_page(self, high: int) -> array[int]:
        """A page with what was kept of it one by one."""
        values = (self._loose.pop(high << BITS | low, 0) for low in range(SIZE))
        page = self._pages[high] = array("q", values)
        del self._counts[high]
        return page

    def items(self) -> Iterator[tuple[int, int]]:
        """The keys that have a value other than zero."""
        for high, page in self._pages.items():
            yield from ((high << BITS | low, one) for low, one in enumerate(page) if one)
        yield from ((key, one) for key, one in self._loose.items() if one)
