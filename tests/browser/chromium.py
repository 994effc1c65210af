"""Debian's Chromium, driven by Playwright: pages looked at as a reader does, with all that they did written down."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request

INSTALL = "pip install playwright==1.65.2 axe-playwright-python==0.1.8"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
WIDE, NARROW = 1200, 360
SCHEMES = ("light", "dark")
LOCAL = ("file", "blob", "data")
WATCH = """addEventListener("securitypolicyviolation", (event) =>
  console.error(`refused by the policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));"""


def find_missing() -> str:
    """What has to be installed before a page can be looked at."""
    program = "" if any(map(which, PROGRAMS)) else f"none of the programs {', '.join(PROGRAMS)}"
    package = "" if find_spec("playwright") and find_spec("axe_playwright_python") else f"no Playwright: {INSTALL}"
    return "; ".join(filter(None, [program, package]))


def need_chromium() -> None:
    """Skip where there is no browser, saying so; ``EVALCORE_BROWSER=1``, which .ci/run sets, makes that a failure."""
    if missing := find_missing():
        (pytest.fail if os.environ.get("EVALCORE_BROWSER") else pytest.skip)(f"no browser: {missing}")


@contextmanager
def start_chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        program = next(filter(None, map(which, PROGRAMS)))
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page that is open, and all that it said, asked for and tried. A page that is ``served`` may ask its own address
    for what is below it; whatever else goes over a network is trouble.
    """

    def __init__(
        self, browser: Browser, *, width: int = WIDE, height: int = 900, scheme: str = "light", served: str = ""
    ) -> None:
        self.served = served
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
        )
        self.context.set_default_timeout(60_000)
        self.page: Page = self.context.new_page()
        self.trouble: list[str] = []
        self.requests: list[str] = []
        self.page.add_init_script(WATCH)
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.trouble.append(f"error: {error}"))
        self.page.on("dialog", self._refuse)
        self.page.on("popup", lambda popup: self.trouble.append(f"opened {popup.url}"))
        self.page.on("request", self._note)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.trouble.append(f"{message.type}: {message.text}")

    def _refuse(self, dialog: Dialog) -> None:
        self.trouble.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note(self, request: Request) -> None:
        self.requests.append(request.url)
        if urlsplit(request.url).scheme not in LOCAL and not (self.served and request.url.startswith(self.served)):
            self.trouble.append(f"asked {request.url}")

    def open(self, where: Path | str, fragment: str = "") -> Page:
        """Open a file or an address, and wait until something is drawn."""
        address = where.as_uri() if isinstance(where, Path) else where
        self.page.goto(address + fragment)
        self.page.wait_for_selector("main > *:not(noscript)")
        return self.page

    def turn_to(self, view: str) -> Page:
        """Follow a link of the navigation."""
        self.page.locator(f'nav a[href^="#{view}"]').first.click()
        self.page.wait_for_selector(f'nav a[href^="#{view}"][aria-current]')
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until nothing is being loaded or drawn: two frames after the page's own work."""
        self.page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def list_views(self) -> list[str]:
        """The names of the views that the page has."""
        links = self.page.eval_on_selector_all("nav a", "links => links.map((one) => one.getAttribute('href'))")
        return [str(link).removeprefix("#").partition("?")[0] for link in links]

    def find_outside(self, folder: Path) -> list[str]:
        """The requests that were not for a file of the folder nor made by the page itself."""
        own = folder.as_uri()
        return [one for one in self.requests if urlsplit(one).scheme not in LOCAL or _leaves(one, own)]

    def find_violations(self) -> list[str]:
        """What axe-core finds wrong with the page as it stands, a line for each kind of fault and its first place."""
        import axe_playwright_python

        code = (Path(str(axe_playwright_python.__file__)).parent / "axe.min.js").read_text("utf-8")
        if not self.page.evaluate("() => Boolean(globalThis.axe)"):
            self.page.evaluate(f"(() => {{ {code} }})()")
        found = self.page.evaluate("() => axe.run(document)")
        return [
            f"{one['id']} ({len(one['nodes'])}): {one['help']}: {one['nodes'][0]['html'][:200]} "
            f"{one['nodes'][0]['failureSummary'][:300]}"
            for one in found["violations"]
        ]

    def close(self) -> None:
        self.context.close()


def _leaves(address: str, folder: str) -> bool:
    return address.startswith("file:") and not address.startswith(f"{folder}/")
