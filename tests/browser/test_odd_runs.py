"""Runs that are unusual: nothing scored, one document, names without end, other scripts, many tasks, a huge reply."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalcore.shell.report.report import report
from tests.browser.chromium import NARROW, WIDE
from tests.browser.large_log import write_row

LONG = "a_very_long_task_name_without_any_place_to_break_" * 4
NAN, INF = float("nan"), float("inf")
PROMPT = "مرحبا بالعالم! كم يساوي 2+2؟ 👩‍👩‍👧 שלום"
REPLY = "الجواب 4 🎉 " * 30

LOGS = {
    "one document": ("one", [write_row(0, "2 + 2?", "4", 1.0)]),
    "not all finite": ("odd", [write_row(at, "p", "r", score) for at, score in enumerate((NAN, 1.0, INF, 0.5))]),
    "none scored": ("lost", [write_row(at, "p", "r", NAN) for at in range(4)]),
    "long names and other scripts": (LONG, [write_row(at, PROMPT, REPLY, float(at % 2)) for at in range(40)]),
    "far apart": ("far", [write_row(at, "p", "r", 10.0 ** (at % 9)) for at in range(40)]),
}


def write_log(path: Path, task: str, rows: list[str]) -> Path:
    path.mkdir()
    (path / f"samples_{task}.jsonl").write_text("".join(rows), "utf-8")
    return path


def write_results(path: Path, tasks: int) -> Path:
    """The results of a run without samples: a group of four groups of tasks, as MMLU is."""
    names = [f"subject_{at}" for at in range(tasks)]
    parts = {f"part_{at}": names[at::4] for at in range(4)}
    rows = {name: {"alias": f"  - {name}", **write_number(0.3 + at % 7 / 10)} for at, name in enumerate(names)}
    rows |= {name: {"alias": f" - {name}", **write_number(0.6)} for name in parts}
    results = {
        "results": {"all": {"alias": "all", **write_number(0.55)}, **rows},
        "group_subtasks": {"all": list(parts), **parts},
        "configs": {},
        "n-samples": {name: {"original": 100, "effective": 100} for name in names},
        "higher_is_better": {name: {"acc": True} for name in ("all", *parts, *names)},
        "config": {"model": "hf"},
    }
    path.mkdir()
    (path / "results.json").write_text(json.dumps(results), "utf-8")
    return path


def write_number(value: float) -> dict[str, float]:
    return {"acc,none": value, "acc_stderr,none": 0.04}


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("name", LOGS)
def test_every_view_of_it_is_in_order(name, width, visit, tmp_path) -> None:
    log = write_log(tmp_path / "run", *LOGS[name])
    seen = visit(width=width)
    page = seen.open(report(log, output=tmp_path / "page.html").path)
    views = seen.list_views()
    assert views[:2] == ["overview", "samples"]
    for view in views:
        seen.turn_to(view)
        if view == "samples":
            page.locator('[role="option"]').first.click()
            seen.settle()
        assert seen.find_violations() == [], view
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width, view
        assert "NaN" not in page.locator("main").inner_text(), view


def test_what_has_no_score_is_counted_at_once(visit, tmp_path) -> None:
    page = visit().open(report(write_log(tmp_path / "a", *LOGS["none scored"]), output=tmp_path / "p.html").path)
    assert page.locator(".lead").inner_text().startswith("1 task · 4 documents · 4 without a score")
    assert page.locator("td.value").inner_text() == "–"


def test_scores_far_apart_are_counted_by_logarithm(visit, tmp_path) -> None:
    page = visit().open(report(write_log(tmp_path / "a", *LOGS["far apart"]), output=tmp_path / "p.html").path)
    shapes = page.locator("figure.card")
    assert shapes.count() == 1
    assert shapes.locator("rect").count() > 1


@pytest.mark.parametrize(("tasks", "shown"), [(57, 5), (500, 5)])
def test_a_large_tree_opens_folded(tasks, shown, visit, tmp_path) -> None:
    seen = visit()
    page = seen.open(report(write_results(tmp_path / "run", tasks), output=tmp_path / "p.html").path)
    assert page.locator(".lead").inner_text().startswith(f"hf · {tasks} tasks")
    assert page.locator("table.tree tbody:visible").count() == shown
    page.get_by_role("button", name="tasks of part_0").click()
    assert page.locator("table.tree tbody:visible").count() == shown + -(-tasks // 4)
    page.get_by_role("button", name="tasks of part_0").click()
    assert page.locator("table.tree tbody:visible").count() == shown
    assert page.locator("svg.plot[role=img]").count() == tasks + 5  # the forest has them all
    assert seen.find_violations() == []


def test_a_reply_of_ten_megabytes_opens(visit, tmp_path) -> None:
    rows = [write_row(0, "p", "word " * 2_000_000 + "the end", 1.0), write_row(1, "q", "short", 0.0)]
    seen = visit()
    page = seen.open(report(write_log(tmp_path / "a", "big", rows), output=tmp_path / "p.html").path, "#samples?doc=0")
    seen.settle()
    shown = page.locator('[aria-label="Reply"]').inner_text()
    assert len(shown) < 101_000
    assert shown.endswith("the end")
    assert "9,900,007 characters are not shown" in shown
    assert page.evaluate("() => document.documentElement.scrollWidth") <= WIDE


def test_documents_are_told_apart_by_keys_beyond_a_browsers_numbers(visit, tmp_path) -> None:
    keys = [2**53, 2**53 + 1, 2**61 + 1]
    logs = [
        write_log(
            tmp_path / str(run), "t", [write_row(key, f"prompt {key}", "r", float(key % 2 == run)) for key in keys]
        )
        for run in (0, 1)
    ]
    seen = visit()
    page = seen.open(report(*logs, output=tmp_path / "page.html").path, "#comparison")
    page.locator(".flips").evaluate_all("all => all.forEach((one) => (one.parentNode.open = true))")
    page.locator(".flips li").first.wait_for()
    assert {one.inner_text() for one in page.locator(".flips li").all()} == {f"{key} {key} geese" for key in keys}
    for key in keys:
        page.locator(".flips li a", has_text=str(key)).click()
        seen.settle()
        assert page.locator('[aria-label="Prompt"]').inner_text() == f"prompt {key}"
        assert page.locator(".document h3").inner_text() == f"t #{key}"
        page.go_back()
        page.locator(".flips").evaluate_all("all => all.forEach((one) => (one.parentNode.open = true))")
        page.locator(".flips li").first.wait_for()
    seen.turn_to("what-if")
    page.get_by_label("these ids").fill(f"{2**53 + 1}, {2**53 - 1}")
    page.get_by_label("these ids").press("Tab")
    page.locator("[role=status]", has_text="2 ids of t").wait_for()
    assert page.locator("table.what-if td.value").inner_text() == "0.5000"
