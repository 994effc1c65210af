"""Pages that are made from tables are as they would be made now, and say something of every entry."""

from __future__ import annotations

import re

import pytest

from evalcore.core.groups.config import GROUP_KEYS
from evalcore.core.groups.config import METRIC_KEYS as KEYS_OF_AVERAGES
from evalcore.core.lm_eval.task_config import METRIC_KEYS
from evalcore.core.metrics.dispatch import METRICS
from evalcore.shell.cli import COMMANDS
from evalcore.shell.prompts.settings import TaskSettings
from evalcore.shell.tasks.task_keys import AVERAGE_KEYS, GROUP_FILE_KEYS, METRIC_LIST_KEYS, TASK_KEYS
from tests.docs.__main__ import make_files
from tests.docs.formulas import FORMULAS
from tests.docs.nav import ROOT, find_source, find_title, list_cells, read_nav
from tests.docs.reference import HOMES, PAGES, list_arguments, list_names
from tests.test_api import HOMES as PUBLIC
from tests.test_api import names_of

MADE = make_files()


@pytest.mark.parametrize("path", MADE, ids=lambda path: path.name)
def test_what_is_made_is_not_stale(path) -> None:
    assert path.read_text("utf-8") == MADE[path], "python -m tests.docs --write"


def test_every_metric_has_a_formula_and_a_source() -> None:
    assert set(FORMULAS) == {(str(kind), name) for kind, table in METRICS.items() for name in table}
    assert all(formula and source for formula, source in FORMULAS.values())


def test_every_key_has_a_meaning() -> None:
    assert set(METRIC_LIST_KEYS) == METRIC_KEYS
    assert tuple(GROUP_FILE_KEYS) == GROUP_KEYS
    assert tuple(AVERAGE_KEYS) == KEYS_OF_AVERAGES
    assert set(TaskSettings.__struct_fields__) <= set(TASK_KEYS)


def test_every_flag_says_what_it_does() -> None:
    flags = [(name, *row) for name in COMMANDS for row in list_arguments(name)]
    assert len(flags) > 200
    assert [row for row in flags if not row[2]] == []


def test_cells_are_short() -> None:
    """Whatever takes more than a line or two to say stands below its table, on every page, made or written."""
    paths = [path for pages in ("*.md", "examples/*.md", "docs/**/*.md") for path in ROOT.glob(pages)]
    cells = [(path.name, cell) for path in paths for cell in list_cells(path.read_text("utf-8"))]
    assert len(cells) > 5000
    assert [(name, cell) for name, cell in cells if len(cell) > 160] == []


def test_every_namespace_has_a_page_of_its_public_names() -> None:
    assert set(HOMES) == set(PUBLIC)
    for home in HOMES:
        assert set(list_names(home)) | {"__version__"} == names_of(home) | {"__version__"}


def test_every_page_is_in_the_navigation_once() -> None:
    paths = [place.path for place in read_nav()]
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in sorted(ROOT.glob("docs/**/*.md"))]
    assert sorted(path for path in paths if not path.startswith("project/")) == sorted(pages)
    assert len(paths) == len(set(paths))
    assert len(PAGES) == len(list(ROOT.glob("docs/reference/*.md")))


def test_llms_txt_has_a_line_for_every_page() -> None:
    lines = re.findall(r"(?m)^- \[(.+)\]\((\S+)\.html\)(?:: (.+))?$", (ROOT / "docs" / "llms.txt").read_text("utf-8"))
    assert len(lines) == len(read_nav())
    assert [title for title, _, claim in lines if not claim] == []
    assert [place.path for place in read_nav() if not find_title(find_source(place.path).read_text("utf-8"))] == []
