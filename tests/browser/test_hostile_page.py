"""Whatever a model, a task name or a document put into a page is text there: nothing of it is executed or followed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalcore.shell.report.report import report

PAYLOADS = (
    "<script>globalThis.ran = 1</script>",
    "</script><script>globalThis.ran = 2</script>",
    "<!--<script>",
    "]]><svg onload=globalThis.ran=3>",
    '"><img src=x onerror=globalThis.ran=4>',
    "javascript:globalThis.ran=5",
    "<a href='javascript:globalThis.ran=6'>click</a>",
    "<style>body { display: none }</style>",
    "<iframe srcdoc='<script>parent.ran = 7</script>'></iframe>",
    "'; globalThis.ran = 8; //",
    "${globalThis.ran = 9}",
    "\u2028globalThis.ran = 10\u2029",
    "\u202egnp.exe\u202c \u200f\u05d0\u05d1\u05d2",
    "__proto__",
    "constructor",
    "\x00\x01\x1b[31m\ufffe",
    "<base href='https://example.com/'><meta http-equiv=refresh content='0;url=https://example.com/'>",
)
NAME = "<img src=x onerror=globalThis.ran=11>"


def write_log(folder: Path, swap: int) -> Path:
    folder.mkdir()
    path = folder / f"samples_{NAME}.jsonl"
    with path.open("w", encoding="utf-8") as out:
        for at, text in enumerate(PAYLOADS):
            for name in ("__proto__", PAYLOADS[1]):
                row = {
                    "doc_id": at, "doc": {"id": text, "__proto__": text}, "target": text,
                    "arguments": {"gen_args_0": {"arg_0": text, "arg_1": {"until": [text]}}},
                    "resps": [[text]], "filtered_resps": [text], "filter": name, "metrics": ["__proto__", PAYLOADS[4]],
                    "__proto__": float(at % 2 == swap), PAYLOADS[4]: float(at % 2),
                }  # fmt: skip
                out.write(f"{json.dumps(row)}\n")
    return folder


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    logs = [write_log(folder / name, swap) for swap, name in enumerate(("one", "two"))]
    return report(*logs, names=[PAYLOADS[1], PAYLOADS[5]], output=folder / "page.html").path


def find_damage(page) -> list[object]:
    """What the page has that only markup out of the data could have put there."""
    strange = "img, iframe, object, embed, base, body style, main script, [onload], [onerror], a[href^='javascript:']"
    return page.evaluate(
        "(strange) => [globalThis.ran ?? null, ({}).ran ?? null, document.querySelectorAll(strange).length]", strange
    )


def test_nothing_of_the_data_is_executed(hostile, visit) -> None:
    seen = visit()
    page = seen.open(hostile)
    for view in seen.list_views():
        seen.turn_to(view)
        assert find_damage(page) == [None, None, 0], view
    assert seen.find_outside(hostile.parent) == []


def test_every_sample_is_shown_as_the_text_that_it_is(hostile, visit) -> None:
    seen = visit()
    page = seen.open(hostile, "#samples")
    seen.settle()
    page.locator('[role="listbox"]').focus()
    for text in PAYLOADS:
        page.keyboard.press("ArrowDown")
        seen.settle()
        shown = page.locator('[aria-label="Prompt"]').evaluate("(node) => node.textContent")
        assert shown == text
        assert find_damage(page) == [None, None, 0]
    assert page.locator(".document h3").inner_text().startswith(NAME)
    assert seen.find_violations() == []


@pytest.mark.parametrize("text", PAYLOADS[:6])
def test_an_address_is_no_code_either(text, hostile, visit) -> None:
    seen = visit()
    page = seen.open(hostile, "#samples")
    seen.settle()
    page.evaluate(
        "(text) => (location.hash = `samples?${new URLSearchParams({q: text, task: text, doc: text})}`)", text
    )
    seen.settle()
    assert find_damage(page) == [None, None, 0]
