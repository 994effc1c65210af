"""Rows of intervals, curves and bars as SVG: black on white, so that they can be read on dark pages, too."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from msgspec import Struct

from bench.pictures.numbers import Interval

OURS, THEIRS, PALE = "#1f5fa8", "#c8641e", "#8fb4dc"
LEFT, WIDTH, ROW, TOP = 210, 520, 26, 64


class Mark(Struct, frozen=True):
    """An interval or a bar of one colour; what is said of it stands at its right."""

    at: Interval
    colour: str
    says: str = ""
    bar: bool = False


class Row(Struct, frozen=True):
    """What stands in one line, under a name."""

    name: str
    marks: tuple[Mark, ...]
    height: int = ROW


class Axis(Struct, frozen=True):
    """From which share to which, at which steps; ``lines`` are what matters, ``ends`` between what values can lie."""

    low: float
    high: float
    ticks: tuple[float, ...]
    lines: tuple[float, ...] = ()
    ends: tuple[float, float] | None = None

    def place(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(LEFT + WIDTH * share, 1)


def draw_rows(title: str, legend: Sequence[tuple[str, str]], rows: Sequence[Row], axis: Axis) -> str:
    """Draw rows of intervals and bars over one axis."""
    body, y = [], float(TOP)
    for row in rows:
        if row.name:
            body.append(write(LEFT - 12, y + row.height / 2 + 4, row.name, anchor="end"))
        for place, mark in enumerate(row.marks):
            middle = y + row.height * (place + 1) / (len(row.marks) + 1)
            body += _draw_bar(mark, middle, axis) if mark.bar else _draw_interval(mark, middle, axis)
        y += row.height
    return _frame(title, legend, [*_draw_axis(axis, y), *body], y)


def draw_curves(
    title: str, curves: Sequence[tuple[str, str, Sequence[tuple[float, float]]]], x: Axis, y: Axis, name: str
) -> str:
    """Draw curves through points, over an axis each; ``name`` is that of the axis below."""
    bottom = TOP + 200.0
    body = [
        line
        for tick in y.ticks
        for line in (
            f'<line x1="{LEFT}" y1="{_rise(tick, y, bottom)}" x2="{LEFT + WIDTH}" y2="{_rise(tick, y, bottom)}" '
            f'stroke="{"#444" if tick in y.lines else "#e0e0e0"}"{_dash(tick in y.lines)}/>',
            write(LEFT - 12, _rise(tick, y, bottom) + 4, _tell(tick), anchor="end"),
        )
    ]
    for _, colour, points in curves:
        path = " ".join(f"{x.place(at)},{_rise(value, y, bottom)}" for at, value in points)
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    body.append(write(LEFT + WIDTH, bottom + 40, name, anchor="end"))
    return _frame(title, [(label, colour) for label, colour, _ in curves], [*_draw_axis(x, bottom), *body], bottom + 18)


def write(x: float, y: float, text: str, *, size: int = 12, bold: bool = False, anchor: str = "start") -> str:
    weight = ' font-weight="bold"' if bold else ""
    place = f'x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {place}{weight} fill="#222">{escape(text)}</text>'


def _frame(title: str, legend: Sequence[tuple[str, str]], body: Sequence[str], bottom: float) -> str:
    lines, x = [], LEFT
    for name, colour in legend:
        lines += [f'<rect x="{x}" y="36" width="14" height="8" fill="{colour}"/>', write(x + 20, 44, name)]
        x += 40 + 7 * len(name)
    size = f'width="{LEFT + WIDTH + 50}" height="{bottom + 30:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="sans-serif">'
    back = f'<title>{escape(title)}</title>\n<rect width="100%" height="100%" rx="6" fill="white"/>'
    return "\n".join([head, back, write(10, 20, title, size=14, bold=True), *lines, *body, "</svg>", ""])


def _draw_axis(axis: Axis, bottom: float) -> list[str]:
    lines = []
    if axis.ends is not None:  # beyond is nothing
        for low, high in ((axis.low, axis.ends[0]), (axis.ends[1], axis.high)):
            x, wide = axis.place(low), axis.place(high) - axis.place(low)
            size = f'width="{wide:.1f}" height="{bottom - TOP + 8:g}"'
            lines.append(f'<rect x="{x}" y="{TOP - 6}" {size} fill="#f0f0f0"/>')
    for tick in axis.ticks:
        x = axis.place(tick)
        lines.append(f'<line x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{bottom + 2:g}" stroke="#e0e0e0"/>')
        lines.append(write(x, bottom + 20, _tell(tick), anchor="middle"))
    for value in axis.lines:
        x = axis.place(value)
        lines.append(f'<line x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{bottom + 2:g}" stroke="#444"{_dash(True)}/>')
    return lines


def _draw_interval(mark: Mark, y: float, axis: Axis) -> list[str]:
    low, middle, high = (axis.place(value) for value in (mark.at.low, mark.at.value, mark.at.high))
    ends = [f'<line x1="{x}" y1="{y - 4:.1f}" x2="{x}" y2="{y + 4:.1f}" stroke="{mark.colour}"/>' for x in (low, high)]
    line = f'<line x1="{low}" y1="{y:.1f}" x2="{high}" y2="{y:.1f}" stroke="{mark.colour}" stroke-width="2"/>'
    dot = f'<circle cx="{middle}" cy="{y:.1f}" r="3.5" fill="{mark.colour}"/>'
    return [line, *ends, dot, *([write(high + 8, y + 4, mark.says)] if mark.says else [])]


def _draw_bar(mark: Mark, y: float, axis: Axis) -> list[str]:
    low, high = axis.place(mark.at.low), axis.place(mark.at.high)
    bar = f'<rect x="{low}" y="{y - 5:.1f}" width="{high - low:.1f}" height="10" fill="{mark.colour}"/>'
    return [bar, *([write(high + 8, y + 4, mark.says)] if mark.says else [])]


def _tell(share: float) -> str:
    return f"{100 * share:.0f} %"


def _rise(value: float, axis: Axis, bottom: float) -> float:
    share = (min(max(value, axis.low), axis.high) - axis.low) / (axis.high - axis.low)
    return round(bottom - (bottom - TOP) * share, 1)


def _dash(dashed: bool) -> str:
    return ' stroke-dasharray="4 3"' if dashed else ""
