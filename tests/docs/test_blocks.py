"""Every block of every page runs, in its order, and shows what comes out."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import HANDLERS, Walk, find_blocks, leave
from tests.docs.folder import PREPARED, ROOT, build_folder, load_stand_in
from tests.shell.fault_server import serve

NAMES = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md")
PAGES = {
    path.relative_to(ROOT).as_posix(): list(find_blocks(path.read_text("utf-8"), path.relative_to(ROOT).as_posix()))
    for path in (*map(ROOT.joinpath, NAMES), *sorted(ROOT.glob("docs/**/*.md")))
}
BLOCKS = [block for blocks in PAGES.values() for block in blocks]


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        build_folder(home, patch)
    return home


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(usage=True) as server:
        yield server.url.rpartition("/v1")[0]


SLOW = ("docs/from-lm-eval.md", "docs/hosts.md")
"""Pages that run other harnesses; the blocks of hosts.md are in tests/agreement, too."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one, blocks in PAGES.items() if blocks],
)
def test_every_block_of_a_page_runs(
    page: str, filled: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    home = tmp_path / "page"
    shutil.copytree(filled, home)
    monkeypatch.chdir(home)
    PREPARED.get(page, str)(home)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("OPENAI_API_KEY", "a key for nobody")
    monkeypatch.setattr(datasets, "load_dataset", load_stand_in)
    Walk(home, url).take_all(PAGES[page])


def test_blocks_that_are_not_run_are_few_and_say_why() -> None:
    left = [block for block in BLOCKS if block.not_run]
    assert len(BLOCKS) > 150
    assert len(left) <= 20, [block.where for block in left]
    assert [block.where for block in left if len(block.not_run.split()) < 3] == []


def test_no_command_hides_in_a_block_that_is_only_shown() -> None:
    shown = [block for block in BLOCKS if HANDLERS.get(block.language) is leave]
    typed = ("$ ", "evalcore ", "python ", "pip ", ">>> ")
    assert [block.where for block in shown if block.body.startswith(typed)] == []
    assert [block.where for block in BLOCKS if block.language not in {*HANDLERS, "py"}] == []


WRONG = {
    "```sh\nevalcore run --limt 3\n```": "limt",
    "<!-- not run: for a reason -->\n```sh\nevalcore run --limt 3\n```": "limt",
    "<!-- not run: for a reason -->\n```python\nx = = 1\n```": "invalid syntax",
    "<!-- not run: for a reason -->\n```yaml\nmodel: hf\nmodel_args: {pretraind: x}\n```": "pretraind",
    "```yaml\nmodel: dummy\nlimt: 3\ntasks: [a]\noutput_type: x\ntask: t\n```": "limt",
    "```sh\nfalse\n```": "exit code 1",
    "<!-- exit code 1 -->\n```sh\nevalcore models\n```": "exit code 0",
    "```console\n$ evalcore models dummy\nhf\n```": "shows",
    "```sh\nevalcore models dummy\n```\n<!-- output -->\n```text\nhf\n```": "shows",
    "```python\n>>> 1 + 1\n3\n```": "Expected",
    "```python\nassert False, 'no'\n```": "no",
    "```csv\na,b\n1\n```": "page",
    "```json\n{]\n```": "Expecting",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_in_a_block_is_found(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    walk = Walk(tmp_path, "http://127.0.0.1:9")
    with pytest.raises((AssertionError, SyntaxError, ValueError), match=WRONG[text]):
        walk.take_all(find_blocks(text, "page"))
