"""Names too long for their columns: broken where a reader would break them, and indented as they were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size

BREAKS = " _-@./:,"


def fold_name(text: str, width: int) -> str:
    """The text in lines of a width, broken after a space or a mark if it can be, each as far in as the first.

    >>> print(fold_name(" - simple questions", 12))
     - simple
       questions
    >>> print(fold_name("exact_match@pass@2", 12))
    exact_match@
    pass@2
    """
    if cell_len(text) <= width:
        return text
    return "\n".join(line.rstrip(" ") for line in _break_lines(text, width))


def _break_lines(text: str, width: int) -> Iterator[str]:
    before, indent = "", len(text) - len(text.lstrip(" -"))
    while cell_len(before + text) > width:
        room = width - len(before)
        fits = max(len(set_cell_size(text, room).rstrip(" ")), 1)
        start = 0 if before else indent
        at = max((i + 1 for i in range(start, min(fits, len(text) - 3)) if text[i] in BREAKS), default=fits)
        yield before + text[:at]
        before, text = " " * min(indent, width // 2), text[at:].lstrip(" ")
    yield before + text


def share_width(widths: Sequence[int], room: int, least: int = 6) -> list[int]:
    """Widths that fit into a room: the widest give way first, and none below the least.

    >>> share_width([20, 10, 4], 24), share_width([20, 10], 5), share_width([3], 9)
    ([10, 10, 4], [6, 6], [3])
    """
    out = list(widths)
    while sum(out) > room and max(out) > least:
        at = max(range(len(out)), key=out.__getitem__)
        out[at] -= 1
    return out
