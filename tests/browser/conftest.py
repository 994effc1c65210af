"""One Chromium for all tests, the quickstart's runs, and pages about them.

``visit`` opens pages and, at the end, finds no console message, no error, no dialog and nothing that the policy refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import evalcore
from evalcore.shell.report.report import report
from tests.browser.chromium import Visit, need_chromium, start_chromium

CONFIG = Path(__file__).parents[2] / "examples" / "quickstart" / "config.yaml"

Open = Callable[..., Visit]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium() -> Iterator[object]:
    need_chromium()
    with start_chromium() as browser:
        yield browser


@pytest.fixture
def visit(chromium) -> Iterator[Open]:
    """Make visits with settings of their own; whatever a page said or tried meanwhile fails the test."""
    visits: list[Visit] = []

    def start(**settings: object) -> Visit:
        visits.append(Visit(chromium, **settings))
        return visits[-1]

    yield start
    trouble = [one for visit in visits for one in visit.trouble]
    for one in visits:
        one.close()
    assert trouble == []


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> tuple[Path, Path]:
    """The quickstart's answers of SmolLM2, and those of the dummy, which guesses."""
    need_chromium()
    folder = tmp_path_factory.mktemp("runs")
    evalcore.run(CONFIG, output_path=str(folder / "smollm2"))
    evalcore.run(CONFIG, output_path=str(folder / "dummy"), model="dummy", model_args={"seed": 1})
    return folder / "smollm2", folder / "dummy"


@pytest.fixture(scope="session")
def one_run(runs, tmp_path_factory) -> Path:
    """A page about one run."""
    return report(runs[0], output=tmp_path_factory.mktemp("one") / "report.html").path


@pytest.fixture(scope="session")
def two_runs(runs, tmp_path_factory) -> Path:
    """A page about two runs."""
    return report(*runs, output=tmp_path_factory.mktemp("two") / "report.html").path
