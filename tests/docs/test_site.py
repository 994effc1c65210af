"""The site builds without a warning, asks no other host, and can be read and searched from a folder, light and dark."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.browser.chromium import need_chromium, start_chromium
from tests.docs.nav import ROOT, read_nav
from tests.docs.reference import HOMES, list_names

INSTALL = "pip install -e '.[docs]'"

pytestmark = pytest.mark.docs

MODULES = {("evalcore.testing", "cases")}
"""Names that are also a module's, which is what the reader of the source finds."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = shutil.which("mkdocs", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip(f"MkDocs is not installed: {INSTALL}")
    folder = tmp_path_factory.mktemp("site")
    told = [program, "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        told, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    return folder


class Fetched(HTMLParser):
    """The addresses that a browser fetches by itself: not those of links that a reader may follow."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        names = {"a": (), "link": ("href",), "form": ("action",)}.get(tag, ("src", "srcset", "data", "poster", "href"))
        self.found += [value for name in names if (value := given.get(name))]


def fetch_list(page: Path) -> Iterator[str]:
    text = page.read_text("utf-8")
    parser = Fetched()
    parser.feed(text)
    yield from parser.found
    yield from re.findall(r"url\(['\"]?([^)'\"]+)", text)


def test_no_page_fetches_anything_from_another_host(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) >= len(read_nav())
    fetched = [(page.name, one) for page in pages for one in fetch_list(page)]
    assert len(fetched) > len(pages)
    assert [pair for pair in fetched if re.match(r"(https?:)?//", pair[1])] == []
    styles = [
        url
        for file in site.rglob("*.css")
        for url in re.findall(r"(?:@import|url\() *['\"]?(https?:[^)'\"]+)", file.read_text("utf-8"))
    ]
    assert styles == []
    assert [page.name for page in pages if 'class="mermaid"' in page.read_text("utf-8")] == []  # its script is fetched


def test_every_page_of_the_navigation_is_there(site: Path) -> None:
    paths = [place.path.replace("README.md", "index.md").removesuffix(".md") + ".html" for place in read_nav()]
    assert [path for path in paths if not (site / path).is_file()] == []
    addresses = re.findall(r"\]\(([^)]+)\)", (site / "llms.txt").read_text("utf-8"))
    assert addresses == paths


@pytest.mark.parametrize("home", HOMES)
def test_every_public_name_has_its_docstring_on_the_site(home: str, site: Path) -> None:
    there = set(re.findall(r'id="([\w.]+)"', (site / "reference" / f"{home}.html").read_text("utf-8")))
    assert [name for name in list_names(home) if (home, name) not in MODULES and f"{home}.{name}" not in there] == []


def test_the_search_knows_the_text_of_pages(site: Path) -> None:
    entries = json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    assert any("Wilson" in entry["text"] for entry in entries)
    assert len({entry["location"].partition("#")[0] for entry in entries}) >= len(read_nav())


@pytest.mark.parametrize("scheme", ["default", "slate"])
def test_a_reader_searches_from_a_folder_and_nothing_leaves_it(scheme: str, site: Path) -> None:
    need_chromium()
    with start_chromium() as browser:
        page = browser.new_context(color_scheme="dark" if scheme == "slate" else "light").new_page()
        requests: list[str] = []
        faults: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto((site / "index.html").as_uri())
        assert page.evaluate("document.body.dataset.mdColorScheme") == scheme
        page.wait_for_function("window.component$ !== undefined", timeout=60_000)  # the page's script has run
        page.click("input[name=query]")
        ready = "document.querySelector('.md-search-result__meta').textContent.includes('Type to start')"
        page.wait_for_function(ready, timeout=60_000)
        page.locator("input[name=query]").press_sequentially("bootstrap")
        page.wait_for_selector(".md-search-result__item", timeout=60_000)
        assert faults == []
        assert len(requests) > 3
        assert [one for one in requests if not one.startswith((site.as_uri(), "data:", "blob:"))] == []


def test_no_list_table_or_fence_is_left_as_text(site: Path) -> None:
    """Python-Markdown reads fewer lists than GitHub does; the hooks part and indent them."""
    marks = re.compile(r"(?m)^(?:- |\* |\d+\. |```|\|.*\|$).{0,60}")
    quoted = re.compile(r"(?s)<(pre|code|script|style|svg)\b.*?</\1>")
    left = {page.name: marks.findall(quoted.sub("", page.read_text("utf-8"))) for page in site.rglob("*.html")}
    assert {name: found for name, found in left.items() if found} == {}
