"""docs/designs.md is true: every row names a test that is there, and every name it sends a reader to is public."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from inspect import isfunction, ismodule, signature
from pathlib import Path

import pytest
from pyrsistent import PMap

import evalcore

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "designs.md").read_text(encoding="utf-8")
KEYS = {"doc_to_choice", "filter_list", "metric_list", "repeat_cfg.reducer", "sample_count", "tag"}
"""Names in lm-eval's task and result files, which no public name bears."""

HOSTS = ("evalcore.adapters.lm_eval", "evalcore.adapters.lmms_eval")
SECTIONS = [text.partition("\n")[::2] for text in PAGE.split("\n## ")[1:]]
Row = dict[str, str]


def read_rows(text: str) -> Iterator[Row]:
    """The rows of a section's table, by heading."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    heading, _, *rows = cells
    return (dict(zip(heading, row, strict=True)) for row in rows)


ROWS = [(title, row) for title, text in SECTIONS for row in read_rows(text)]


def test_five_designs_and_the_differences() -> None:
    *designs, (last, differences) = SECTIONS
    assert len(designs) == 5
    assert {tuple(row) for _, text in designs for row in read_rows(text)} == {("element", "here", "tested in")}
    assert last == "Differences on purpose"
    assert {tuple(row) for row in read_rows(differences)} == {("design", "element", "here, and why", "tested in")}


# --- tests ------------------------------------------------------------------------------------------------------------


@cache
def list_tests(name: str) -> frozenset[str]:
    """The tests that a file beside this one defines."""
    body = ast.parse((Path(__file__).parent / name).read_text(encoding="utf-8")).body
    return frozenset(node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))


@pytest.mark.parametrize("title", [title for title, _ in SECTIONS])
def test_every_row_names_a_test(title: str) -> None:
    for row in (row for heading, row in ROWS if heading == title):
        named = re.findall(r"`(\w+\.py)::(\w+)`", row["tested in"])
        assert named, row
        assert [(name, test) for name, test in named if test not in list_tests(name)] == []


def test_every_test_is_in_a_row() -> None:
    files = [path.name for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__)]
    tests = [f"`{name}::{test}`" for name in files for test in list_tests(name)]
    assert [test for test in tests if test not in PAGE] == []


# --- names ------------------------------------------------------------------------------------------------------------


@cache
def public_names() -> dict[str, object]:
    """What a reader may import, by its name alone and by its whole path."""
    names = {f"evalcore.{name}": getattr(evalcore, name) for name in dir(evalcore)}
    for home in (*(f"evalcore.{name}" for name in evalcore._NAMESPACES), *HOSTS):
        module = import_module(home)
        names |= {home: module, **{f"{home}.{name}": getattr(module, name) for name in module.__all__}}
    return {**names, **{path.rpartition(".")[2]: one for path, one in names.items()}}


@cache
def words() -> frozenset[str]:
    """The fields of public records, the parameters of public functions, the entries of public tables."""
    public = public_names().values()
    fields = {name for one in public if isinstance(one, type) for name in dir(one)}
    parameters = {name for one in public if isfunction(one) for name in signature(one).parameters}
    tables = [one for one in public if isinstance(one, PMap)]
    inner = [part for one in tables for part in one.values() if isinstance(part, PMap)]
    return frozenset(fields | parameters | {key for one in (*tables, *inner) for key in one})


def is_known(name: str) -> bool:
    """Whether a name is public, a field of a public record or table, such a word, or Python's own."""
    home, _, last = name.rpartition(".")
    owner = public_names().get(home)
    if home:
        return name in public_names() or (not ismodule(owner) and hasattr(owner, last)) or name in KEYS
    return name in public_names() or name in words() | KEYS or hasattr(builtins, name)


def test_every_name_is_public() -> None:
    """What is no name (a key of a row, a value, a phrase) has a mark in it or after it."""
    texts = [text for _, row in ROWS for text in re.findall(r"`([^`]+)`", [*row.values()][-2])]
    names = [found[0] for text in texts if (found := re.match(r"[A-Za-z_][\w.]*(?=$|[(\[])", text))]
    assert len(names) > 30
    assert [name for name in names if not is_known(name)] == []


@pytest.mark.parametrize(
    "name", ["evalcore.core", "evalcore.groups.nothing", "Group.nothing", "FILTERS.nothing", "nothing", "os.path"]
)
def test_a_name_that_is_not_public_is_found(name: str) -> None:
    assert not is_known(name)
