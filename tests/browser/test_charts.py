"""What the page draws of one run: its charts say what its data say, it prints whole, and recipes can be copied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalcore.shell.report.report import report
from tests.browser.chromium import NARROW, SCHEMES
from tests.browser.nested_run import make_run


@pytest.fixture(scope="module")
def nested(chromium, tmp_path_factory) -> Path:
    folder = make_run(tmp_path_factory.mktemp("nested"))
    noted = json.loads((folder / "run.json").read_text("utf-8"))
    noted["endings"]["free"] |= {"length": 4, "empty": 1}
    noted["usage"] = USAGE
    (folder / "run.json").write_text(json.dumps(noted), "utf-8")
    return folder


@pytest.fixture(scope="module")
def nested_page(nested: Path, tmp_path_factory) -> Path:
    return report(nested, output=tmp_path_factory.mktemp("page") / "report.html").path


NOW = {
    "requests": 25,
    "prompt_tokens": 900,
    "completion_tokens": 50,
    "wall_seconds": 2.0,
    "tokens_per_second": 25.0,
    "cost": 0.5,
}
USAGE = {
    "requests": 25,
    "failed": 1,
    "retries": 2,
    "prompt_tokens": 1234,
    "completion_tokens": 567,
    "cached_prompt_tokens": 8,
    "uncounted_replies": 0,
    "latency_seconds": {"p50": 0.5, "p90": 0.9, "p99": 1.5},
    "prices": {"input": 1.0, "output": 2.0},
    "cost": 0.125,
    "now": NOW,
}


def read_head(page) -> dict:
    return json.loads(page.locator("#head").text_content())


def list_labels(page, kind: str) -> list[str]:
    return page.eval_on_selector_all(f"svg.{kind}[role=img]", "all => all.map((one) => one.getAttribute('aria-label'))")


def test_every_chart_is_drawn_and_says_its_numbers(visit, one_run) -> None:
    page = visit().open(one_run)
    run = read_head(page)["runs"][0]
    bars = list_labels(page, "bars")
    assert len(bars) == len(run["shapes"]) + len(run["stability"])
    assert bars[0] == "documents by score: 0: 10, 1: 25"
    assert len(list_labels(page, "curve")) == len(run["calibration"]) == 3
    points = page.locator("svg.curve circle")
    assert points.count() == sum(len(one["bins"]) for one in run["calibration"])
    heights = page.eval_on_selector_all(
        "svg.bars >> nth=0 >> rect", "all => all.map((one) => +one.getAttribute('height'))"
    )
    assert heights[0] / heights[1] == pytest.approx(10 / 25)


def test_a_point_is_where_its_bin_says(visit, one_run) -> None:
    page = visit().open(one_run)
    curve = read_head(page)["runs"][0]["calibration"][0]
    box = page.locator("svg.curve").first.bounding_box()
    for point, bin in zip(page.locator("svg.curve").first.locator("circle").all(), curve["bins"], strict=True):
        at = point.bounding_box()
        x = (at["x"] + at["width"] / 2 - box["x"]) / box["width"]
        assert x == pytest.approx(bin["confidence"], abs=0.02)
        hollow = "out" in point.get_attribute("class")
        assert hollow == (not bin["low"] <= bin["accuracy"] <= bin["high"])


def test_what_is_doubtful_is_never_hidden(visit, nested_page) -> None:
    page = visit().open(nested_page)
    words = page.locator("section", has_text="Outcomes").first.inner_text()
    assert "4 of 25 replies were cut off by max_gen_toks" in words
    assert "1 of 25 replies are empty" in words
    fell = read_head(page)["runs"][0]["fell_back"]["free"]
    assert fell["any"] == 7
    assert "7 of 25 documents: filter any fell back" in words
    assert "18 scored, 7 unscorable, 0 failed" in words
    bars = list_labels(page, "plot")
    assert any(label.startswith("4 of 25 replies") for label in bars)


def test_what_answers_took(visit, nested_page) -> None:
    text = visit().open(nested_page).locator("main").inner_text()
    for wanted in ("1,234", "567", "0.5, 0.9, 1.5", "$0.1250"):
        assert wanted in text


def test_a_recipe_is_copied_by_one_click(visit, one_run) -> None:
    """From a file, too, where a page may have no clipboard of its own: then by selecting its text."""
    seen = visit()
    seen.context.grant_permissions([])
    page = seen.open(one_run)
    page.evaluate(
        """() => { globalThis.copied = [];
        addEventListener("copy", () => copied.push(document.getSelection().toString() || document.activeElement.value));
        Object.defineProperty(navigator, "clipboard", { value: { writeText: () => Promise.reject(new Error("no")) } }); }"""
    )
    page.get_by_role("button", name="copy recipe").first.click()
    page.wait_for_function("() => copied.length")
    [copied] = page.evaluate("() => copied")
    assert copied.startswith("group:quickstart_knowledge|metric:acc|")
    page.locator("button.plain").first.click()
    assert page.locator(".recipe:not([hidden]) code").first.inner_text() == copied
    page.get_by_role("button", name="copy config").click()
    page.wait_for_function("() => copied.length > 1")
    assert "model: replay" in page.evaluate("() => copied[1]")
    page.locator(".curve").first.locator("xpath=..").get_by_role("button", name="copy recipe").click()
    page.wait_for_function("() => copied.length > 2")
    assert "metric:ece" in page.evaluate("() => copied[2]")


def test_how_to_make_it_again(visit, one_run, runs) -> None:
    page = visit().open(one_run)
    section = page.locator("section", has=page.get_by_role("heading", name="Reproduce", exact=True))
    text = section.inner_text()
    assert "evalcore run config.yaml" in text
    assert (runs[0] / "config.yaml").read_text("utf-8").strip() in text
    assert json.loads((runs[0] / "run.json").read_text("utf-8"))["packages"]["numpy"] in text


def test_redacted_pages_name_no_path(runs, visit, tmp_path) -> None:
    path = report(runs[0], output=tmp_path / "report.html", redact=True).path
    assert "left out of this page" in visit().open(path).locator("main").inner_text()
    assert str(runs[0]) not in path.read_text("utf-8")


def test_on_paper_everything_is_expanded(visit, one_run, tmp_path) -> None:
    seen = visit(scheme="dark")
    page = seen.open(one_run)
    page.emulate_media(media="print")
    recipes = page.locator("tr.recipe")
    assert recipes.count() == page.locator("tr.recipe:visible").count() > 20
    assert page.locator("tbody:visible").count() == page.locator("tbody").count()
    assert page.locator("button.copy:visible").count() == 0
    colours = page.evaluate("() => ['color', 'backgroundColor'].map((name) => getComputedStyle(document.body)[name])")
    assert colours == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
    fills = page.eval_on_selector_all(".part, .bar, .point", "all => all.map((one) => getComputedStyle(one).fill)")
    grey = {tuple(part.strip() for part in fill.removeprefix("rgb(").rstrip(")").split(",")) for fill in fills}
    assert all(len(set(parts)) == 1 for parts in grey), grey
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") + pdf.count(b"/Type/Page") >= 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_charts_are_accessible_on_a_phone(scheme, visit, nested_page) -> None:
    seen = visit(width=NARROW, scheme=scheme)
    page = seen.open(nested_page)
    assert seen.find_violations() == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= NARROW
