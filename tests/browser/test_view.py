"""``evalcore view`` in a browser: from the list to a run and a sample, two runs compared, a run that goes on followed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest

from evalcore.shell.view.viewer import Viewer
from tests.browser.chromium import NARROW, SCHEMES, WIDE
from tests.shell.fault_server import serve
from tests.shell.open_viewer import look_at
from tests.shell.small_tasks import start_live_run, write_tasks

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def folder(runs, tmp_path_factory) -> Path:
    """Two runs, a third with a name that wants to be markup, and one that cannot be read."""
    home = tmp_path_factory.mktemp("viewed")
    for run, name in zip((*runs, runs[0]), ("smollm2", "dummy", HOSTILE), strict=True):
        copytree(run, home / name)
    (home / "broken").mkdir()
    (home / "broken/results.json").write_text('{"results": {')
    return home


@pytest.fixture(scope="module")
def viewer(folder) -> Iterator[Viewer]:
    with look_at(folder) as viewer:
        yield viewer


def test_from_the_list_to_a_run_and_a_sample_and_back(viewer, visit) -> None:
    page = visit(served=viewer.address).open(viewer.address)
    assert page.locator("tbody tr").count() == 4
    row = page.locator("tbody tr", has=page.get_by_role("link", name="smollm2", exact=True))
    assert "0.7286" in row.inner_text()
    assert "0.6106 to 0.8212" in row.inner_text()
    page.get_by_role("searchbox").fill("smollm finished")
    assert page.locator("tbody tr").count() == 1
    page.get_by_role("link", name="smollm2", exact=True).click()
    page.locator('nav a[href^="#samples"]').click()
    page.locator(".sample").first.click()
    page.wait_for_selector(".document h4")
    page.get_by_role("link", name="All runs").click()
    page.wait_for_selector("#" + str(row.locator("a").get_attribute("id")))


def test_a_browser_that_is_started_gets_to_the_list(viewer, visit, monkeypatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: not opened.append(address))
    monkeypatch.setenv("DISPLAY", ":0")
    assert viewer.open_browser()
    page = visit(served=viewer.address.rsplit("/", 2)[0]).open(opened[0])
    assert page.url == viewer.address
    assert page.locator("tbody tr").count() == 4


def test_a_page_with_its_data_beside_it_is_served_whole(folder, visit, monkeypatch) -> None:
    monkeypatch.setattr("evalcore.shell.output.report.page.ONE_FILE", 1000)
    with look_at(folder) as viewer:
        seen = visit(served=viewer.address)
        page = seen.open(viewer.address)
        page.get_by_role("link", name="smollm2", exact=True).click()
        page.locator('nav a[href^="#samples"]').click()
        page.locator(".sample").first.click()
        page.wait_for_selector(".document h4")
        assert any("/report_data/" in one for one in seen.requests)


def test_ticked_runs_are_compared(viewer, visit) -> None:
    page = visit(served=viewer.address).open(viewer.address)
    button = page.get_by_role("button", name="Compare ticked runs")
    for name in ("smollm2", "dummy"):
        assert button.is_disabled()
        page.get_by_role("checkbox", name=f"compare {name}", exact=True).check()
    button.click()
    page.get_by_role("link", name="Comparison", exact=True).click()
    page.wait_for_selector(".matrix")
    assert "dummy" in page.locator("main").inner_text()


def test_hostile_names_and_broken_runs_are_texts(viewer, visit) -> None:
    seen = visit(served=viewer.address)
    page = seen.open(viewer.address)
    page.get_by_role("link", name=HOSTILE, exact=True).click()
    page.wait_for_selector(".tree")
    assert page.locator("h1").inner_text() == HOSTILE
    page.get_by_role("link", name="All runs").click()
    page.get_by_role("link", name="broken", exact=True).click()
    assert "broken" in page.get_by_role("alert").inner_text()
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_list_and_served_pages_are_accessible(viewer, visit, width, scheme) -> None:
    seen = visit(width=width, scheme=scheme, served=viewer.address)
    page = seen.open(viewer.address)
    assert seen.find_violations() == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    for name in ("smollm2", "broken"):
        page.get_by_role("link", name=name, exact=True).click()
        page.get_by_role("link", name="All runs").wait_for()
        assert seen.find_violations() == []
        page.get_by_role("link", name="All runs").click()
        page.get_by_role("link", name=name, exact=True).wait_for()


def test_a_page_of_another_origin_cannot_look(viewer, chromium) -> None:
    """It knows even the address: neither a request, nor a frame, nor a script gets anything."""
    with serve() as other:
        page = chromium.new_context().new_page()
        page.goto(other.url.removesuffix("/v1") + "/nothing")
        got = page.evaluate(
            """async (address) => {
              const asked = await fetch(address).then(() => "read", () => "refused");
              const blind = await fetch(address, { mode: "no-cors" }).then(() => "read", () => "refused");
              const frame = document.createElement("iframe");
              frame.src = address;
              document.body.append(frame);
              await new Promise((done) => (frame.onload = done));
              let inside = "closed";
              try { inside = frame.contentDocument?.body.innerText ?? "closed"; } catch { /* of another origin */ }
              return [asked, blind, inside];
            }""",
            viewer.address,
        )
        assert got == ["refused", "refused", "closed"]
        page.context.close()


def test_a_run_that_goes_on_is_followed_without_a_reload(visit, tmp_path) -> None:
    """A run appears in an open list and counts up; its page shows provisional numbers, then the final ones."""
    write_tasks(tmp_path / "tasks", 24)
    (tmp_path / "runs").mkdir()
    with serve(latency=0.25) as server, look_at(tmp_path / "runs") as viewer:
        server.ready = lambda held: len(held.bodies) < 16
        listed, followed = (visit(served=viewer.address) for _ in range(2))
        page = listed.open(viewer.address)
        assert "No run was found here yet" in page.locator("main").inner_text()
        page.evaluate("() => (window.mine = true)")
        with start_live_run(tmp_path, server.url) as child:
            try:
                page.get_by_role("link", name="live", exact=True).wait_for()
                page.get_by_text("of 24 answered").wait_for()
                page.get_by_role("checkbox").focus()
                page.get_by_text("provisional, of the documents answered so far").wait_for()
                assert page.evaluate("() => document.activeElement.type") == "checkbox"
                assert listed.find_violations() == []
                link = page.get_by_role("link", name="live", exact=True).get_attribute("href")
                own = followed.open(f"{viewer.address}{link}")
                own.get_by_text("provisional, of the documents answered so far").wait_for()
                assert "going on" in own.locator("header").inner_text()
                assert followed.find_violations() == []
                server.ready = lambda held: True
                assert child.wait(120) == 0
                own.wait_for_selector(".tree")
                assert "going on" not in own.locator("header").inner_text()
                page.get_by_text("finished", exact=True).wait_for()
                assert page.evaluate("() => window.mine")
            finally:
                child.kill()


def test_a_page_says_that_its_run_has_changed_and_keeps_the_readers_place(viewer, folder, visit) -> None:
    page = visit(served=viewer.address).open(viewer.address)
    page.get_by_role("link", name="dummy", exact=True).click()
    page.locator('nav a[href^="#what"]').click()
    where = page.url
    results = folder / "dummy/results.json"
    results.write_text(results.read_text() + "\n")
    page.get_by_role("button", name="There are new numbers: reload").click()
    page.get_by_role("button", name="There are new numbers: reload").wait_for(state="detached")
    assert page.url == where
    assert page.locator('nav a[href^="#what"]').get_attribute("aria-current") == "page"


def test_a_page_says_that_the_viewer_has_ended(folder, chromium) -> None:
    with look_at(folder) as viewer:
        page = chromium.new_context().new_page()
        page.goto(viewer.address)
        page.wait_for_selector("tbody tr")
    page.get_by_text("evalcore view has ended").wait_for()
    assert page.locator("tbody tr").count() == 4
    page.context.close()
