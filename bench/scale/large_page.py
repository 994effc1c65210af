"""A page of many samples in Chromium: how soon it shows the first, and how long a keystroke in its search takes.

All times are the clock's, as the browser has it, and end when what was asked for is drawn. Words are typed letter by
letter once all samples can be searched; before that, each keystroke finds what has come so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench.rows import Row, at_most
from evalcore.logs import report
from tests.browser.chromium import Visit, start_chromium
from tests.browser.large_log import WORDS, count_found, write_large_log

if TYPE_CHECKING:
    from playwright.sync_api import Page

FIRST = """new MutationObserver((_, self) => {
  if (!document.querySelector('[role="option"]')) return;
  globalThis.firstRow = performance.now();
  self.disconnect();
}).observe(document, { childList: true, subtree: true });"""
TYPE = """async ([words, full]) => {
  const box = document.querySelector('input[type="search"]');
  box.value = words;
  const begun = performance.now();
  box.dispatchEvent(full ? new KeyboardEvent("keydown", { key: "Enter" }) : new Event("input"));
  do await new Promise(requestAnimationFrame);
  while (document.querySelector("[aria-busy=true]"));
  return performance.now() - begun;
}"""
ROUNDS = 3


def measure_rows(*, samples: int = 100_000) -> Iterator[Row]:
    with TemporaryDirectory() as folder, start_chromium() as browser:
        log = write_large_log(Path(folder, "samples_sums.jsonl"), samples)
        made = report(log, output=Path(folder, "page.html"))
        size = sum(one.stat().st_size for one in (made.path, *made.files)) / 1e6
        seen = Visit(browser)
        seen.page.add_init_script(FIRST)
        page = seen.open(made.path, "#samples")
        page.wait_for_function("() => globalThis.firstRow")
        first = float(page.evaluate("firstRow"))
        note = f"{samples:,} samples, {size:.1f} MB"
        yield Row(what="from opening to the first row", ours=first, unit="ms", targets=(at_most(2000),), note=note)
        ready = _type(page, "question")
        yield Row(what="from then until every sample is searched", ours=ready, unit="ms")
        took = [_type(page, WORDS[:at]) for _ in range(ROUNDS) for at in range(1, len(WORDS) + 1)]
        told = page.locator('[role="status"]').inner_text()
        if not told.startswith(f"{count_found(samples):,} of "):
            raise ValueError(f"expected {count_found(samples):,} samples with {WORDS!r}, the page says {told!r}")
        for name, figure in (("middle", median(took)), ("longest", max(took))):
            yield Row(what=f"a keystroke, the {name} of {len(took)}", ours=figure, unit="ms", targets=(at_most(200),))
        yield Row(what="Enter: all of every text", ours=_type(page, "so the answer is 183", full=True), unit="ms")


def _type(page: Page, words: str, *, full: bool = False) -> float:
    return float(page.evaluate(TYPE, [words, full]))
