"""The samples of a page: found by words and by what became of them, looked at one by one, however many there are."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode

import pytest

from evalcore.shell.output.report import page as pages
from evalcore.shell.output.report.bundle import WORKER, bundle_modules
from evalcore.shell.report.report import report
from tests.browser.chromium import Visit
from tests.browser.large_log import WORDS, count_found, write_large_log, write_row

ROWS = '[role="option"]'
ONE_STEP = "quickstart_one_step"
MANY = 100_000


def list_rows(page) -> list[str]:
    return page.locator(ROWS).all_inner_texts()


def count_samples(page) -> int:
    said = page.locator('[role="status"]').inner_text()
    return int(said.split(" of ")[0].replace(",", ""))


def search(seen, words: str, *, full: bool = False) -> int:
    seen.page.get_by_label("Search").fill(words)
    if full:
        seen.page.get_by_label("Search").press("Enter")
    seen.settle()
    return count_samples(seen.page)


def test_words_find_samples_whatever_their_case_and_accents(one_run, visit) -> None:
    seen = visit()
    page = seen.open(one_run, "#samples")
    seen.settle()
    assert count_samples(page) == 210
    assert search(seen, "BÉAVER") == 1
    assert "dams" in list_rows(page)[0]
    assert "q=B%C3%89AVER" in page.url
    assert search(seen, "no such words") == 0
    assert search(seen, "") == 210


@pytest.mark.parametrize("words", ["beaver", "question"])
def test_words_in_an_address_find_what_typing_finds(words, one_run, visit) -> None:
    """They are looked for before any text has arrived."""
    typed, opened = visit(), visit()
    typed.open(one_run, "#samples")
    typed.settle()
    opened.open(one_run, f"#samples?q={words}")
    opened.settle()
    assert count_samples(opened.page) == search(typed, words) > 0


SLOW_SEARCH = """async (code) => {
  const slow = "let now = 0; performance.now = () => (now += 30);";  // so that it pauses after every part
  const worker = new Worker(URL.createObjectURL(new Blob([slow, code])));
  const found = new Set();
  const heard = (wanted) => new Promise((done) => worker.addEventListener("message", ({ data }) => wanted(data) && done()));
  worker.addEventListener("message", ({ data }) => data.seq === 2 && data.rows.forEach((row) => found.add(row)));
  const first = heard(({ seq, done }) => seq === 1 && done);
  const last = heard(({ seq, done, looked }) => seq === 2 && done && looked === 4);
  for (const base of [0, 1, 2]) worker.postMessage({ base, ids: ["beaver"] });
  worker.postMessage({ seq: 1, q: "be", full: false });
  await first;
  worker.postMessage({ seq: 2, q: "beav", full: false });
  worker.postMessage({ base: 3, ids: ["late beaver"] });
  await last;
  return [...found].sort();
}"""


def test_a_part_that_comes_while_longer_words_are_looked_for_is_searched(visit) -> None:
    page = visit().page
    page.goto("about:blank")
    assert page.evaluate(SLOW_SEARCH, bundle_modules(WORKER)) == [0, 1, 2, 3]


def test_enter_searches_all_of_every_text(visit, tmp_path) -> None:
    log = tmp_path / "samples_long.jsonl"
    prompts = ["short", f"{'hay ' * 1000} needle", f"{'hay ' * 9}"]
    log.write_text("".join(write_row(at, one, "4", 1.0) for at, one in enumerate(prompts)), "utf-8")
    seen = visit()
    seen.open(report(log, output=tmp_path / "page.html").path, "#samples")
    seen.settle()
    assert search(seen, "hay") == 2
    assert search(seen, "needle") == 0
    assert search(seen, "needle", full=True) == 1
    assert "in all texts" in seen.page.locator('[role="status"]').inner_text()


@pytest.mark.parametrize(
    ("name", "value", "fits"),
    [("task", ONE_STEP, ONE_STEP), ("verdict", "wrong", "wrong"), ("rule", "strict-match a", "quickstart_")],
)
def test_filters_leave_the_rows_that_fit(name, value, fits, one_run, visit) -> None:
    seen = visit()
    page = seen.open(one_run, "#samples")
    seen.settle()
    page.locator(f"select[name={name}]").select_option(value)
    seen.settle()
    assert 0 < count_samples(page) < 210
    assert all(fits in row for row in list_rows(page))
    again = visit()
    again.open(one_run, page.evaluate("location.hash"))
    again.settle()
    assert count_samples(again.page) == count_samples(page)


def test_counts_are_those_of_the_logs(runs, one_run, visit) -> None:
    rows = [json.loads(line) for line in (runs[0] / f"samples_{ONE_STEP}.jsonl").read_text("utf-8").splitlines()]
    wrong = sum(row["exact_match"] == 0 for row in rows if row["filter"] == "flexible-extract")
    seen = visit()
    page = seen.open(one_run, f"#samples?task={ONE_STEP}&metric=exact_match,flexible-extract&verdict=wrong")
    seen.settle()
    assert count_samples(page) == wrong


def test_a_document_shows_its_reply_with_the_extracted_span_marked(one_run, visit) -> None:
    seen = visit()
    page = seen.open(one_run, f"#samples?task={ONE_STEP}&doc=0")
    seen.settle()
    shown = page.locator(".document")
    assert shown.locator("h3").inner_text() == f"{ONE_STEP} #0"
    assert shown.locator('[aria-label="Gold"]').inner_text() == "The answer is 12."
    assert "Mia has 7 pears" in shown.locator('[aria-label="Prompt"]').inner_text()
    reply = shown.locator('[aria-label="Reply"]')
    assert reply.inner_text().strip() == "Mia has 7 - 5 = 1 pear left. The answer is 1."
    assert "".join(reply.locator("mark").all_inner_texts()) == "1."
    steps = shown.locator("details").first.inner_text()
    assert "regex" in steps
    assert "match 1 of 1" in steps


def test_flips_are_found_and_both_answers_shown(two_runs, visit) -> None:
    seen = visit()
    page = seen.open(two_runs, "#samples?flipped=yes")
    seen.settle()
    assert 0 < count_samples(page) < 210
    assert all("flipped" in row for row in list_rows(page))
    page.locator(ROWS).first.click()
    seen.settle()
    titles = page.locator(".side h4").all_inner_texts()
    assert [title.split()[0] for title in titles] == ["A", "B"]
    assert {title.split()[-1] for title in titles} == {"right", "wrong"}


def test_a_reader_who_comes_back_finds_the_samples_again(one_run, visit) -> None:
    seen = visit()
    page = seen.open(one_run, "#samples")
    for view in ("overview", "samples"):
        seen.turn_to(view)
    assert count_samples(page) == 210


def test_a_missing_document_is_told(one_run, visit) -> None:
    seen = visit()
    page = seen.open(one_run, f"#samples?task={ONE_STEP}&doc=999")
    seen.settle()
    assert "no document 999" in page.locator(".document").inner_text()


def test_keys_move_through_the_rows(one_run, visit) -> None:
    seen = visit()
    page = seen.open(one_run, "#samples")
    seen.settle()
    page.locator('[role="listbox"]').focus()
    for key, place in (("ArrowDown", "1"), ("ArrowDown", "2"), ("ArrowUp", "1"), ("End", "210"), ("Home", "1")):
        page.keyboard.press(key)
        seen.settle()
        assert page.locator('[aria-selected="true"]').get_attribute("aria-posinset") == place
    assert page.locator(".document h3").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360])
def test_an_open_document_is_accessible(width, scheme, two_runs, visit) -> None:
    seen = visit(width=width, scheme=scheme)
    page = seen.open(two_runs, f"#samples?task={ONE_STEP}&doc=0")
    seen.settle()
    assert seen.find_violations() == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


# --- large pages ------------------------------------------------------------------------------------------------------


def test_a_page_above_the_limit_has_its_data_beside_it(runs, visit, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(pages, "ONE_FILE", 10_000)
    made = report(runs[0], output=tmp_path / "a page #1?.html")
    assert made.files
    seen = visit()
    page = seen.open(made.path, f"#samples?task={ONE_STEP}&doc=0")
    seen.settle()
    assert page.locator(".document mark").count()
    assert search(seen, "mia has 7 pears") == 1
    assert seen.find_outside(tmp_path) == []


def test_a_chunk_that_was_changed_is_refused(runs, chromium, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(pages, "ONE_FILE", 10_000)
    made = report(runs[0], output=tmp_path / "page.html")
    other = b64encode(gzip.compress(b'{"keys": [[0]], "runs": []}')).decode()
    for file in made.files:
        file.write_text(re.sub(r',".*"', f',"{other}"', file.read_text("utf-8")), "utf-8")
    seen = Visit(chromium)
    page = seen.open(made.path, "#samples")
    page.wait_for_selector('[role="alert"]')
    assert "not the one that this page was made with" in page.locator('[role="alert"]').inner_text()
    assert page.locator(ROWS).count() == 0
    seen.close()


def test_a_hundred_thousand_samples_stay_fluid(visit, tmp_path) -> None:
    """Only the rows in sight exist, and a worker searches; ``python -m bench page`` measures how long that takes."""
    log = write_large_log(tmp_path / "samples_sums.jsonl", MANY)
    seen = visit()
    page = seen.open(report(log, output=tmp_path / "page.html").path, "#samples")
    page.wait_for_selector(ROWS)
    assert count_samples(page) == MANY
    assert page.locator(ROWS).count() < 60
    assert search(seen, "question") == MANY  # as soon as all parts are there
    assert [search(seen, WORDS[:at]) for at in range(1, len(WORDS) + 1)][-1] == count_found(MANY)
    page.locator("select[name=verdict]").select_option("right")
    seen.settle()
    assert 0 < count_samples(page) < count_found(MANY)
    page.locator("select[name=verdict]").select_option("")
    assert search(seen, "") == MANY
    page.locator('[role="listbox"]').evaluate("(list) => list.scrollTo(0, list.scrollHeight / 2)")
    seen.settle()
    assert page.locator(ROWS).count() < 60
    assert int(page.locator(ROWS).first.get_attribute("aria-posinset")) > MANY / 2 - 60
    assert 0 < search(seen, "so the answer is 183", full=True) < MANY
    assert len(page.workers) == 1
