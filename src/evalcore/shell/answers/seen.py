"""Which documents a log has shown, in a few bytes each."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

__all__ = ["Pages"]

BITS = 10
SIZE = 1 << BITS
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
        return self._loose.get(key, 0) if page is None else page[key & SIZE - 1]

    def put(self, key: int, value: int) -> None:
        high = key >> BITS
        page = self._pages.get(high)
        if page is None and key not in self._loose:
            self._counts[high] = self._counts.get(high, 0) + 1
            page = self._new_page(high) if self._counts[high] > FEW else None
        if page is None:
            self._loose[key] = value
        else:
            page[key & SIZE - 1] = value

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
