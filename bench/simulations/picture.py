"""Dots on strips as a picture (SVG): a strip a row, a colour a series, shares from 0 to 1 across."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from msgspec import Struct

COLOURS = ("#c8641e", "#1f5fa8", "#8fb4dc")
LEFT, WIDTH, ROW, TOP = 190, 560, 26, 62


class Series(Struct, frozen=True):
    """Dots of one colour."""

    name: str
    values: tuple[float, ...]


def draw_strips(title: str, strips: Sequence[tuple[str, Sequence[Series]]], promise: float, most: float = 1.0) -> str:
    """Draw a strip for each row, and a line at what is promised; the right end is ``most``."""
    height = TOP + ROW * len(strips) + 34
    body = [
        _text(10, 20, title, size=14, bold=True),
        *_draw_legend(strips[0][1]),
        *_draw_axis(height, promise, most),
        *(line for at, strip in enumerate(strips) for line in _draw_strip(at, *strip, most)),
    ]
    size = f'width="{LEFT + WIDTH + 30}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *body, "</svg>", ""])


def _draw_legend(series: Sequence[Series]) -> list[str]:
    lines, x = [], LEFT
    for colour, one in zip(COLOURS, series, strict=False):
        lines += [f'<circle cx="{x}" cy="40" r="4" fill="{colour}"/>', _text(x + 9, 44, one.name)]
        x += 30 + 7 * len(one.name)
    return lines


def _draw_axis(height: int, promise: float, most: float) -> list[str]:
    lines = []
    for share in (most * step / 5 for step in range(6)):
        x = _place(share, most)
        lines.append(f'<line x1="{x}" y1="{TOP - 8}" x2="{x}" y2="{height - 26}" stroke="#e0e0e0"/>')
        lines.append(_text(x, height - 10, f"{100 * share:.0f} %", anchor="middle"))
    x = _place(promise, most)
    return [*lines, f'<line x1="{x}" y1="{TOP - 8}" x2="{x}" y2="{height - 26}" stroke="#444" stroke-dasharray="4 3"/>']


def _draw_strip(at: int, name: str, series: Sequence[Series], most: float) -> list[str]:
    y = TOP + ROW * at + ROW / 2
    dots = [
        f'<circle cx="{_place(value, most)}" cy="{y + 5 * (place - 1):.1f}" r="3" fill="{colour}" fill-opacity="0.6"/>'
        for place, (colour, one) in enumerate(zip(COLOURS, series, strict=False))
        for value in one.values
    ]
    return [_text(LEFT - 12, y + 4, name, anchor="end"), *dots]


def _place(share: float, most: float) -> float:
    return round(LEFT + WIDTH * min(share / most, 1.0), 1)


def _text(x: float, y: float, text: str, *, size: int = 12, bold: bool = False, anchor: str = "start") -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"{weight} fill="#222">{escape(text)}</text>'
    )
