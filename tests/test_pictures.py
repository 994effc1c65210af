"""The pictures of docs/how-intervals-work.md show what evalcore says today, and its words say what they show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "how-intervals-work.md").read_text("utf-8")


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    pytest.importorskip("lm_eval")  # whose standard error is drawn
    from bench.pictures.pictures import draw_pictures

    return dict(draw_pictures())


def test_every_picture_is_drawn_by_the_code_that_is_here(drawn: dict[str, str]) -> None:
    kept = {path.name: path.read_text("utf-8") for path in (DOCS / "pictures").iterdir()}
    assert sorted(kept) == sorted(drawn)
    assert [name for name in drawn if kept[name] != drawn[name]] == []  # `python -m bench.pictures` draws them anew


def test_the_page_shows_every_picture(drawn: dict[str, str]) -> None:
    assert re.findall(r"\]\(pictures/(.*?)\)", PAGE) == list(drawn)


def test_the_words_have_the_numbers_of_the_pictures(drawn: dict[str, str]) -> None:
    [missed, _] = re.findall(r"(\d+ of 40) miss", drawn["clusters.svg"])
    assert f"{missed} miss" in PAGE


def test_a_paired_interval_is_shorter_by_a_quarter() -> None:
    pytest.importorskip("lm_eval")
    from bench.pictures.numbers import compare_published

    _, _, apart, paired = compare_published()
    share = (paired.high - paired.low) / (apart.high - apart.low)
    assert 0.74 < share < 0.78
    assert 1.65 < 1 / share**2 < 1.75
