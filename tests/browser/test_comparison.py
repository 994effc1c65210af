"""Several runs side by side: what is evidence and what is not, in words, charts, and documents that flipped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import evalcore
from evalcore.shell.report.report import report
from tests.browser.chromium import NARROW, SCHEMES, WIDE
from tests.browser.conftest import CONFIG
from tests.browser.large_log import write_row
from tests.browser.test_charts import read_head


@pytest.fixture(scope="module")
def four_runs(runs, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("more")
    more = [folder / name for name in ("c", "d")]
    for seed, out in enumerate(more, 2):
        evalcore.run(CONFIG, output_path=str(out), model="dummy", model_args={"seed": seed})
    return report(*runs, *more, output=folder / "report.html").path


def find_pair(page, a: str, b: str) -> dict:
    return next(one for one in read_head(page)["comparison"]["pairs"] if (one["a"], one["b"]) == (a, b))


def test_several_runs_open_side_by_side(visit, two_runs) -> None:
    page = visit().open(two_runs)
    assert page.locator("header nav a").all_inner_texts() == ["Comparison", "Each run", "Samples", "What if"]
    assert page.locator("header nav a[aria-current]").inner_text() == "Comparison"


def test_a_cell_without_evidence_is_grey(visit, four_runs) -> None:
    page = visit().open(four_runs)
    lines = [find_pair(page, "A", label)["lines"] for label in "BCD"]
    cells = page.locator("table.matrix td.heat:not([data-run=A])")
    rows = [row["number"] for row in read_head(page)["comparison"]["rows"]]
    wanted = [line[number]["evidence"] for number in rows for line in lines]
    kinds = cells.evaluate_all("all => all.map((one) => one.classList.contains('none'))")
    assert kinds == [not one for one in wanted]
    assert {True, False} == set(wanted)
    colours = cells.evaluate_all("all => all.map((one) => getComputedStyle(one).backgroundColor)")
    grey = {colour for colour, none in zip(colours, kinds, strict=True) if none}
    assert len(grey) == 1
    assert not grey & {colour for colour, none in zip(colours, kinds, strict=True) if not none}


def test_runs_whose_only_tasks_have_other_names_show_their_values(visit, tmp_path) -> None:
    for name, scores in (("a", "1,0,0,0"), ("b", "1,1,1,0")):
        rows = "".join(f"{at},{score}\n" for at, score in enumerate(scores.split(",")))
        (tmp_path / f"{name}.csv").write_text(f"id,said\n{rows}", "utf-8")
    path = report(tmp_path / "a.csv", tmp_path / "b.csv", output=tmp_path / "p.html", id="id", score="said").path
    cells = visit().open(path).locator("table.matrix td.heat > span").all_inner_texts()
    assert cells == ["0.2500", "0.7500"]


def test_a_filter_that_is_compared_as_another_shows_its_own_value(visit, runs, tmp_path) -> None:
    keys = {"task": "*arithmetic", "match_filter": "strict-match=flexible-extract"}
    path = report(runs[1], runs[0], output=tmp_path / "p.html", **keys).path
    cells = visit().open(path).locator("table.matrix td.heat > span").all_inner_texts()
    assert cells == ["0.0000", "0.2200"]  # under its own strict-match, the second run has 0.2000


def test_each_difference_stands_beside_its_sentence(visit, two_runs) -> None:
    page = visit().open(two_runs)
    lines = [one for one in find_pair(page, "A", "B")["lines"] if one]
    told = page.locator(".sentence").all_inner_texts()
    assert sorted(told) == sorted(one["sentence"] for one in lines)
    assert any(one.startswith("A is better by 51.4 points, 95 % interval 35.2 to 64.8, 70 documents") for one in told)
    assert any(one.startswith("no evidence of a difference: ") for one in told)
    assert not any("no evidence" in one and "is better by" in one for one in told)


def test_an_interval_is_where_its_points_say(visit, two_runs) -> None:
    """The scale has 0 at the dashed line; another baseline mirrors it."""
    page = visit().open(two_runs)
    for base, sign in (("A", -1), ("B", 1)):
        page.goto(f"{two_runs.as_uri()}#comparison?base={base}")
        page.wait_for_selector(f"nav.tabs a[aria-current]:has-text('{base} ')")
        row = page.locator(".difference").first
        zero, point = row.locator(".against").bounding_box(), row.locator(".point").bounding_box()
        assert (point["x"] - zero["x"]) * sign > 0
        assert "A is better by 51.4 points" in row.inner_text()
        assert (
            row.locator("svg.plot")
            .get_attribute("aria-label")
            .startswith(f"quickstart_knowledge, acc: {'+' if sign > 0 else '−'}51.4 points")
        )


def test_the_recipe_of_a_difference_is_copied(visit, two_runs) -> None:
    seen = visit()
    page = seen.open(two_runs)
    page.evaluate(
        """() => Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => (globalThis.copied = text) } })"""
    )
    page.locator(".difference button").first.click()
    page.wait_for_function("() => globalThis.copied")
    copied = page.evaluate("copied")
    line = find_pair(page, "A", "B")["lines"][0]
    assert copied == line["recipe"]
    assert copied.startswith("difference:A-B|group:quickstart_knowledge|metric:acc|filter:none|value:0.514")
    assert "|method:" in copied
    assert f"|p_adjusted:{line['p_adjusted']}" in copied


def test_a_flip_leads_to_both_answers(visit, two_runs) -> None:
    seen = visit()
    page = seen.open(two_runs)
    fold = page.locator("details", has_text="one_step").first
    fold.locator("summary").click()
    seen.settle()
    link = fold.locator("a").first
    assert "run=A" in link.get_attribute("href")
    link.click()
    page.wait_for_selector(".document h3")
    seen.settle()
    assert page.locator(".side h4").count() == 2
    assert {one.split()[-1] for one in page.locator(".side h4").all_inner_texts()} == {"right", "wrong"}


def write_scores(path: Path, scores: list[float], first: int = 0) -> Path:
    path.parent.mkdir()
    rows = (write_row(first + at, f"Question {at}?", str(at), score) for at, score in enumerate(scores))
    path.write_text("".join(rows), "utf-8")
    return path


def test_how_many_documents_it_would_take(visit, tmp_path) -> None:
    logs = [
        write_scores(tmp_path / name / "samples_q.jsonl", [float(at % 2 == 0 or at % 7 == way) for at in range(200)])
        for way, name in enumerate(("one", "two"), 1)
    ]
    page = visit().open(report(*logs, output=tmp_path / "page.html").path)
    told = page.locator(".difference .sentence").inner_text()
    assert told.startswith("no evidence of a difference: ")
    line = find_pair(page, "A", "B")["lines"][0]
    if line["difference"]:
        assert f"it would take about {line['needed']:,} documents" in told


def test_runs_without_samples_stand_side_by_side_in_grey(visit, runs, tmp_path) -> None:
    bare = []
    for run in runs:
        (tmp_path / run.name).mkdir()
        bare.append(tmp_path / run.name / "results.json")
        bare[-1].write_text((run / "results.json").read_text("utf-8"), "utf-8")
    path = report(*(one.parent for one in bare), output=tmp_path / "page.html").path
    page = visit().open(path)
    assert "These runs are not compared" in page.locator(".warnings").inner_text()
    results = [json.loads(one.read_text("utf-8"))["evalcore"]["estimates"] for one in bare]
    wanted = {f"{row['value']:.4f}" for one in results for below in one.values() for row in below.values()}
    shown = set(page.locator("table.matrix td.heat > span").all_inner_texts())
    assert {one for one in wanted if float(one) < 1000} <= shown
    assert page.locator("table.matrix td.none").count() == page.locator("table.matrix td[data-run=B]").count() > 10


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_four_runs_are_accessible_and_fit(width, scheme, visit, four_runs) -> None:
    seen = visit(width=width, scheme=scheme)
    page = seen.open(four_runs)
    for fold in page.locator("details").all()[:3]:
        fold.locator("summary").click()
    seen.settle()
    assert seen.find_violations() == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
