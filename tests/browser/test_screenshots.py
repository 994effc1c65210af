"""The pictures in README and docs are of the page as it is: made here, of the quickstart's runs.

``EVALCORE_WRITE=1 pytest -m browser tests/browser/test_screenshots.py`` writes them into docs/images. Otherwise they
are made beside, and compared by what does not depend on fonts: their size, and that there is as much on them.
"""

from __future__ import annotations

import os
import zlib
from itertools import pairwise
from pathlib import Path
from struct import unpack
from typing import NamedTuple

import pytest

IMAGES = Path(__file__).parents[2] / "docs" / "images"
MOST = 150_000
"""Bytes of a picture."""

CLOSE = 0.25
"""The share by which the lines of two pictures that have something on them may differ."""


class Shot(NamedTuple):
    """A picture: the page, where in it, how wide and high, light or dark."""

    made: str
    fragment: str
    scheme: str = "light"
    width: int = 1200
    height: int = 720
    scroll: str = ""


SHOTS = {
    "report": Shot("one_run", ""),
    "report-dark": Shot("one_run", "", scheme="dark"),
    "charts": Shot("one_run", "", height=400, scroll="svg.curve"),
    "comparison": Shot("two_runs", "#comparison", height=560, scroll=".differences"),
    "matrix": Shot("two_runs", "#comparison", height=600),
    "samples": Shot("two_runs", "#samples?task=quickstart_one_step&doc=3", width=1000, height=660),
    "phone": Shot("one_run", "", width=360, height=640),
}


def count_lines(png: bytes) -> tuple[int, int, int]:
    """The width and height of a picture, and how many of its lines differ from the one above."""
    width, height = unpack(">II", png[16:24])
    at, packed = 8, b""
    while at < len(png):
        (size,) = unpack(">I", png[at : at + 4])
        packed += png[at + 8 : at + 8 + size] if png[at + 4 : at + 8] == b"IDAT" else b""
        at += 12 + size
    rows = zlib.decompress(packed)
    step = len(rows) // height
    lines = [rows[one * step : (one + 1) * step] for one in range(height)]
    return width, height, sum(first != second for first, second in pairwise(lines))


@pytest.mark.parametrize("name", SHOTS)
def test_a_picture_is_of_the_page_as_it_is(name, visit, request) -> None:
    shot = SHOTS[name]
    seen = visit(width=shot.width, height=shot.height, scheme=shot.scheme)
    page = seen.open(request.getfixturevalue(shot.made), shot.fragment)
    seen.settle()
    if shot.scroll:
        page.locator(shot.scroll).first.evaluate(
            "(one) => (one.closest('section') ?? one).scrollIntoView({ block: 'start' })"
        )
        seen.settle()
    made, kept = page.screenshot(), IMAGES / f"{name}.png"
    if os.environ.get("EVALCORE_WRITE"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(made)
    again = "EVALCORE_WRITE=1 pytest -m browser tests/browser/test_screenshots.py makes it anew"
    assert kept.is_file(), f"there is no {kept}: {again}"
    assert len(made) < MOST
    width, height, lines = count_lines(made)
    assert (width, height) == (shot.width, shot.height)
    assert lines > height / 4, "the page is blank"
    old_width, old_height, old_lines = count_lines(kept.read_bytes())
    assert (old_width, old_height) == (width, height), f"{kept} has another size: {again}"
    assert old_lines == pytest.approx(lines, rel=CLOSE), f"{kept} no longer resembles the page: {again}"
