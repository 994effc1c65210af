"""Intervals drawn in a line of text: a small SVG in the colour of the text, with what it shows as its label."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from evalcore.core.notebook.markup import NOTHING, Html, escape_text
from evalcore.core.plain_text import show_interval, show_number

WIDTH, HEIGHT, INSET = 120, 14, 4

Ends = tuple[float, float]


def find_axis(values: Iterable[float | None], bounds: Ends | None = None) -> Ends | None:
    """The ends of an axis that holds all values: the bounds of the score if both are known, else those of the values.

    >>> find_axis([0.2, None, 0.4]), find_axis([3.0], (0.0, 1.0)), find_axis([0.5], (0.0, 1.0)), find_axis([])
    ((0.2, 0.4), (0.0, 3.0), (0.0, 1.0), None)
    """
    known = [value for value in values if value is not None and isfinite(value)]
    known += [end for end in bounds or () if isfinite(end)] if known else []
    return (min(known), max(known)) if known else None


def draw_interval(value: float | None, ci: Ends | None, axis: Ends | None, mark: float | None = None) -> Html:
    """A value and its interval on an axis, on which ``mark`` is a place to compare with, such as no difference.

    An end beyond the axis is drawn at its end.

    >>> draw_interval(0.5, (0.25, 0.75), (0.0, 1.0))[-112:]
    'x1="32.0" x2="88.0" y1="7" y2="7" stroke="currentColor" stroke-width="2"/><circle cx="60.0" cy="7" r="3"/></svg>'
    >>> draw_interval(None, None, (0.0, 1.0))
    ''
    """
    if value is None or axis is None or not isfinite(value) or axis[0] == axis[1]:
        return NOTHING
    middle = HEIGHT // 2

    def place(at: float) -> str:
        share = min(max((at - axis[0]) / (axis[1] - axis[0]), 0.0), 1.0)
        return f"{INSET + share * (WIDTH - 2 * INSET):.1f}"

    ends = tuple(map(place, ci)) if ci is not None and not any(end != end for end in ci) else None
    told = f"{show_number(value)}, {show_interval(*ci)}" if ci is not None else show_number(value)
    rail = f'<line x1="{INSET}" x2="{WIDTH - INSET}" y1="{middle}" y2="{middle}" stroke="currentColor" opacity=".25"/>'
    mark_at = "" if mark is None else place(mark)
    tick = f'<line x1="{mark_at}" x2="{mark_at}" y1="1" y2="{HEIGHT - 1}" stroke="currentColor" opacity=".6"/>'
    span = (
        f'<line x1="{ends[0]}" x2="{ends[1]}" y1="{middle}" y2="{middle}" stroke="currentColor" stroke-width="2"/>'
        if ends
        else ""
    )
    return Html(
        f'<svg role="img" aria-label="{escape_text(told)}" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" fill="currentColor">{rail}{tick * bool(mark_at)}{span}'
        f'<circle cx="{place(value)}" cy="{middle}" r="3"/></svg>'
    )
