"""A page opens from a file, in every view, without a request, a message or a fault that axe-core knows."""

from __future__ import annotations

import pytest

from tests.browser.chromium import NARROW, SCHEMES, WIDE


@pytest.mark.parametrize("made", ["one_run", "two_runs"])
def test_a_page_opens_from_a_file_and_asks_for_nothing(made, visit, request) -> None:
    path = request.getfixturevalue(made)
    seen = visit()
    page = seen.open(path)
    for view in seen.list_views():
        seen.turn_to(view)
        assert page.locator("main").inner_text().strip()
    assert page.title()
    assert [one for one in seen.requests if not one.startswith("blob:")] == [path.as_uri()]
    assert seen.find_outside(path.parent) == []


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("made", ["one_run", "two_runs"])
def test_every_view_is_accessible(made, width, scheme, visit, request) -> None:
    seen = visit(width=width, scheme=scheme)
    seen.open(request.getfixturevalue(made))
    found = {}
    for view in seen.list_views():
        seen.turn_to(view)
        found[view] = seen.find_violations()
    assert found == {view: [] for view in found}
    assert found


@pytest.mark.parametrize("made", ["one_run", "two_runs"])
def test_a_phone_scrolls_down_but_not_sideways(made, visit, request) -> None:
    """Only tables scroll sideways, inside their own frames."""
    seen = visit(width=NARROW)
    page = seen.open(request.getfixturevalue(made))
    for view in seen.list_views():
        seen.turn_to(view)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= NARROW, view


@pytest.mark.parametrize("made", ["one_run", "two_runs"])
def test_everything_is_reached_by_the_keyboard(made, visit, request) -> None:
    """Tab leads through every control that is shown; each is drawn with a focus ring."""
    seen = visit()
    page = seen.open(request.getfixturevalue(made))
    controls = page.locator("a[href]:visible, button:visible, input:visible, select:visible, summary:visible").count()
    reached = set()
    for _ in range(2 * controls + 20):
        page.keyboard.press("Tab")
        at = page.evaluate(
            """() => { const one = document.activeElement; if (one === document.body) return null;
            const style = getComputedStyle(one);
            return [[...document.querySelectorAll("*")].indexOf(one), style.outlineStyle, one.matches(
              "a[href], button, input, select, summary")]; }"""
        )
        if at is None or at[0] in {one for one, _ in reached}:
            break
        assert at[1] != "none"
        reached.add((at[0], at[2]))
    assert sum(is_control for _, is_control in reached) >= controls


def test_a_reader_without_javascript_is_told(chromium, one_run) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(one_run.as_uri())
    assert "results.json" in page.locator("main").inner_text()
    context.close()
