"""What the page says of other documents and weights is what evalcore's core says of them, to 1e-9."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from evalcore.core.groups.tree import Group, Tree, fold_group
from evalcore.core.pipeline import build_report, report_task
from evalcore.core.records.array import frozen
from evalcore.core.records.column import Column
from evalcore.core.records.report import Report
from evalcore.core.records.row import take_rows
from evalcore.core.records.score import Scored
from evalcore.shell.logs.runs.run_record import find_closing
from evalcore.shell.report.gathered_run import gather_runs
from evalcore.shell.report.report import report
from tests.browser.chromium import NARROW, SCHEMES
from tests.browser.nested_run import make_run

CLOSE = 1e-9
Numbers = dict[tuple[str, str], float]


@pytest.fixture(scope="module")
def nested(chromium, tmp_path_factory) -> Path:
    return make_run(tmp_path_factory.mktemp("nested"))


@pytest.fixture(scope="module")
def nested_page(nested: Path, tmp_path_factory) -> Path:
    return report(nested, output=tmp_path_factory.mktemp("page") / "report.html").path


def drop_rows(column: Column, gone: set[int]) -> Column:
    kept = ~np.isin(column.keys.ints, sorted(gone))
    reasons = tuple(pair for pair in column.reasons if pair[0] not in gone)
    status = frozen(column.status.data[kept].astype(np.uint8))
    return Column(frozen(column.keys.ints[kept]), take_rows(column.rows, kept), status, reasons)


def compute(
    folder: Path,
    *,
    gone: Mapping[str, set[int]] | None = None,
    without: tuple[str, ...] = (),
    zero: tuple[str, ...] = (),
    weights: Mapping[str, Mapping[str, float]] | None = None,
) -> Numbers:
    """The numbers of a choice of documents and weights, by the core; ``zero`` are tasks whose lost documents are 0."""
    [run] = gather_runs([folder], ["a"], ["A"], None, {})
    inference = find_closing(run.recorded, 0.95)

    def cut(one: Scored) -> Scored:
        lost = (gone or {}).get(one.task.name, set())
        return replace(one, columns=tuple(replace(c, column=drop_rows(c.column, lost)) for c in one.columns))

    def weigh(node: Group[object], parts: tuple[Tree[object], ...]) -> Tree[object]:
        given = (weights or {}).get(node.name)
        own = [replace(one, average="children", weights=given) if given else one for one in node.metrics]
        return replace(node, children=parts, metrics=tuple(own))

    kept = [cut(one) for one in run.recorded.side.scored if one.task.name not in without]
    rules = {True: replace(inference, on_unscorable="zero"), False: inference}
    tasks = [report_task(one, inference=rules[one.task.name in zero]) for one in kept]
    trees = [fold_group(tree, lambda leaf: leaf, weigh) for tree in run.recorded.side.trees]
    return list_values(build_report(tasks, trees, inference=inference))


def list_values(made: Report) -> Numbers:
    reports = [*made.tasks, *made.groups]
    return {(one.name, str(key)): e.value for one in reports for key, e in one.estimates if e.value is not None}


def read_numbers(page) -> dict[tuple[str, str], tuple[str, str]]:
    cells = page.eval_on_selector_all(
        "td[data-key]",
        "cells => cells.map((one) => [one.dataset.name, one.dataset.key, one.dataset.value, one.parentNode.lastChild.textContent])",
    )
    return {(name, key): (value, how) for name, key, value, how in cells}


def check(page, wanted: Numbers, first_order: set[tuple[str, str]] = frozenset()) -> None:
    """Every number is there; exact ones to 1e-9, and those of first order say that they are."""
    page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")
    found = read_numbers(page)
    assert {where for where, (value, _) in found.items() if value} == wanted.keys()
    for where, (value, how) in found.items():
        if where in first_order:
            assert how.startswith("first order"), where
            assert abs(float(value) - wanted[where]) < 0.05, where
        elif value:
            assert how.startswith("exact"), where
            assert float(value) == pytest.approx(wanted[where], rel=CLOSE, abs=CLOSE), where


def leave_out(page, task: str, ids: str) -> None:
    page.get_by_label("leave out of").select_option(task)
    page.get_by_label("these ids").fill(ids)
    page.get_by_label("these ids").press("Tab")


@pytest.fixture
def open_what_if(visit, nested_page) -> Callable[..., object]:
    def start(path: Path = nested_page, **settings: object):
        seen = visit(**settings)
        page = seen.open(path, "#what-if")
        seen.settle()
        return page

    return start


def test_nothing_changed_are_the_numbers_of_the_run(open_what_if, nested) -> None:
    page = open_what_if()
    check(page, compute(nested))
    assert {cell.inner_text() for cell in page.locator("table.what-if tbody tr td:nth-child(5)").all()} == {"0"}


def test_documents_left_out_by_id(open_what_if, nested) -> None:
    page = open_what_if()
    leave_out(page, "one", "0, 3-5, 11")
    leave_out(page, "long", "2-9")
    leave_out(page, "free", "1, 2, 6-12")
    gone = {"one": {0, 3, 4, 5, 11}, "long": set(range(2, 10)), "free": {1, 2, *range(6, 13)}}
    check(page, compute(nested, gone=gone), {("one", "f1,none"), ("inner", "f1,none")})


def test_tasks_left_out(open_what_if, nested) -> None:
    page = open_what_if()
    page.get_by_label("two", exact=True).uncheck()
    check(page, compute(nested, without=("two",)))
    assert "partial" in read_numbers(page)["inner", "acc,none"][1]


def test_lost_documents_count_as_zero(open_what_if, nested) -> None:
    page = open_what_if()
    page.get_by_label("without a score").select_option("zero")
    wanted = compute(nested, zero=("free",))
    assert wanted["free", "exact_match,number"] == pytest.approx(2 / 25)  # of 25 documents, 7 of which have no number
    check(page, wanted)
    leave_out(page, "free", "0-9")
    check(page, compute(nested, zero=("free",), gone={"free": set(range(10))}))
    page.get_by_label("without a score").select_option("exclude")
    check(page, compute(nested, gone={"free": set(range(10))}))


def test_children_weighed_otherwise(open_what_if, nested) -> None:
    page = open_what_if()
    page.get_by_label("group").select_option("inner")
    fields = page.get_by_role("spinbutton")
    fields.nth(0).fill("3")
    fields.nth(1).fill("0.7")
    fields.nth(1).press("Tab")
    page.get_by_label("group").select_option("weighed")
    for at, weight in enumerate(("2", "0", "5")):
        fields.nth(at).fill(weight)
    fields.nth(2).press("Tab")
    weights = {"inner": {"one": 3, "two": 0.7}, "weighed": {"one": 2, "two": 0, "three": 5}}
    check(page, compute(nested, weights=weights))
    page.get_by_role("button", name="as in the run").click()
    check(page, compute(nested))


def test_all_at_once_on_the_quickstart(open_what_if, runs, one_run) -> None:
    page = open_what_if(one_run)
    leave_out(page, "quickstart_one_step", "0-17")
    leave_out(page, "quickstart_prose", "3, 4, 20-29")
    page.get_by_label("group").select_option("quickstart_knowledge")
    fields = page.get_by_role("spinbutton")
    fields.nth(0).fill("4")
    fields.nth(0).press("Tab")
    gone = {"quickstart_one_step": set(range(18)), "quickstart_prose": {3, 4, *range(20, 30)}}
    weights = {"quickstart_knowledge": {"quickstart_nature": 4, "quickstart_world": 1}}
    check(page, compute(runs[0], gone=gone, weights=weights))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_it_is_accessible_with_all_of_it_in_use(scheme, visit, nested_page) -> None:
    seen = visit(width=NARROW, scheme=scheme)
    page = seen.open(nested_page, "#what-if")
    page.get_by_label("group").select_option("inner")
    leave_out(page, "one", "0-5")
    seen.settle()
    assert seen.find_violations() == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= NARROW


def test_without_samples_only_tasks_and_weights_change(nested, visit, tmp_path) -> None:
    path = report(nested, output=tmp_path / "report.html", samples=False).path
    assert 'id="chunk-' not in path.read_text("utf-8")
    page = visit().open(path, "#what-if")
    page.get_by_label("two", exact=True).uncheck()
    assert page.get_by_label("these ids").count() == 0
    check(page, compute(nested, without=("two",)))
