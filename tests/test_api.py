"""The public names: few, each of them once, each of them on docs/api.md, and none that a reader has to dig for."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest

import evalcore

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "evalcore"
EXPORTS = ("comparisons", "traces", "stats", "groups", "logs", "lm_eval", "extensions", "scale", "starter")
NAMESPACES = (*EXPORTS, "frames", "testing")
UNCOUNTED = {"GENERATE_UNTIL", "LOGLIKELIHOOD", "LOGLIKELIHOOD_ROLLING", "MULTIPLE_CHOICE", "__version__"}
EXAMPLES = [path for path in sorted(ROOT.glob("examples/**/*.*")) if path.suffix != ".pyc"]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *EXAMPLES]


def names_of(home: str) -> set[str]:
    """The public names of ``evalcore`` or of one of its namespaces."""
    if home == "evalcore":
        return set(dir(evalcore)) - set(NAMESPACES)
    return set(import_module(home).__all__)


HOMES = ("evalcore", *(f"evalcore.{name}" for name in NAMESPACES))


def test_the_root_has_few_names() -> None:
    assert len(names_of("evalcore") - UNCOUNTED) <= 45
    assert set(evalcore.__all__) | {"run", "score", "compare"} >= names_of("evalcore") >= set(evalcore.__all__)


@pytest.mark.parametrize("home", HOMES)
def test_every_name_is_there(home: str) -> None:
    module = import_module(home)
    assert [name for name in names_of(home) if not hasattr(module, name)] == []


def test_a_name_has_one_home() -> None:
    homes = defaultdict(list)
    for home in HOMES:
        for name in names_of(home):
            homes[name].append(home)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_names_say_what_they_are() -> None:
    regrettable = {"of", "options", "column", "explain", "lint", "adjust", "Line", "Side", "check", "power", "diff"}
    public = set().union(*map(names_of, HOMES)) - names_of("evalcore.testing")
    assert public & regrettable == set()
    assert public & set(NAMESPACES) == set()


def test_nothing_else_is_called_like_a_public_name() -> None:
    defined = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                defined[node.name].add(path.relative_to(SOURCE).as_posix())
    public = set().union(*map(names_of, HOMES)) - names_of("evalcore.testing")
    assert {name: defined[name] for name in public if len(defined[name]) > 1} == {}


@pytest.mark.parametrize("name", EXPORTS)
def test_a_namespace_is_only_a_list(name: str) -> None:
    docstring, *body = ast.parse((SOURCE / f"{name}.py").read_text("utf-8")).body
    assert isinstance(docstring, ast.Expr)
    assert {type(node) for node in body[:-1]} == {ast.ImportFrom}
    assert isinstance(body[-1], ast.Assign)


def test_types_and_names_at_the_root_agree() -> None:
    """What mypy sees is what Python loads, from the same module."""
    [typed] = [node for node in ast.parse((SOURCE / "__init__.py").read_text("utf-8")).body if isinstance(node, ast.If)]
    seen = {
        alias.asname or alias.name: node.module
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    homes = {**evalcore._HOMES, **evalcore._COMMANDS}
    del homes["__version__"]
    assert seen == {name: f"evalcore.{home}" for name, home in homes.items()}


def test_importing_a_submodule_hides_no_command() -> None:
    code = "import evalcore.shell.run.run, evalcore.shell.score.score, evalcore.shell.compare.compare, evalcore; print(*map(callable, (evalcore.run, evalcore.score, evalcore.compare)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 3


def test_the_page_lists_exactly_the_public_names() -> None:
    listed = defaultdict(list)
    home = ""
    for line in (ROOT / "docs" / "api.md").read_text("utf-8").splitlines():
        if found := re.match(r"## `([\w.]+)`", line):
            home = found[1]
        elif found := re.match(r"\| `(\w+)` \| (.+) \|", line):
            listed[home].append(found[1])
    assert {home: len(names) for home, names in listed.items()} == {home: len(names_of(home)) for home in HOMES}
    assert {home: set(names) for home, names in listed.items()} == {home: names_of(home) for home in HOMES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_sends_a_reader_into_the_rooms(page: Path) -> None:
    if page.name == "architecture.md" or page.is_dir():
        pytest.skip("the page for those who change the rooms")
    assert re.findall(r"evalcore[./](?:core|shell)\b.*", page.read_text("utf-8")) == []
