"""Core is pure, light and typed: what it may import, what importing it loads, what its signatures say."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import evalcore

CORE = Path(evalcore.__file__).parent / "core"
FILES = sorted(CORE.rglob("*.py"))
BANNED = {"os", "sys", "io", "time", "random", "logging", "pathlib", "socket", "subprocess", "threading", "asyncio"}
ALLOWED = {"numpy", "toolz", "pyrsistent", "msgspec", "evalcore"}
HEAVY = [
    "yaml",
    "jinja2",
    "httpx",
    "rich",
    "typer",
    "sklearn",
    "scipy",
    "sacrebleu",
    "rouge_score",
    "hypothesis",
    "datasets",
    "lm_eval",
    "pandas",
    "evalcore.shell",
    "evalcore.testing",
]


def imports(tree: ast.AST) -> set[str]:
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(CORE)))
def test_core_imports_nothing_impure_or_heavy(file):
    for name in imports(ast.parse(file.read_text(encoding="utf-8"))):
        root = name.split(".")[0]
        assert root not in BANNED
        assert not name.startswith(("evalcore.shell", "evalcore.testing"))
        assert root in ALLOWED or root in sys.stdlib_module_names


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(CORE)))
def test_core_says_no_any_and_prints_nothing(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    assert "Any" not in names
    assert "print" not in names
    assert "open" not in names


def test_one_core_file_knows_of_policies():
    """Rooms list their files, so their ``__init__`` may name it."""
    code = [file for file in FILES if file.name != "__init__.py"]
    assert [file.name for file in code if "polic" in file.read_text(encoding="utf-8").lower()] == ["policy.py"]


def loaded(code: str) -> set[str]:
    """The modules that this code loads in a fresh interpreter."""
    told = f"import sys; before = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    return set(subprocess.run([sys.executable, "-c", told], check=True, capture_output=True, text=True).stdout.split())


def test_importing_evalcore_loads_nothing_else():
    """What is behind a name is loaded when the name is first used."""
    found = loaded("import evalcore")
    assert {name for name in found if name.partition(".")[0] not in sys.stdlib_module_names} == {"evalcore"}


def test_all_of_evalcore_is_its_core():
    found = loaded("from evalcore import *")
    assert "evalcore.core" in found
    assert [name for name in HEAVY if name in found] == []
    others = {name.partition(".")[0] for name in found} - sys.stdlib_module_names
    assert others <= ALLOWED | {"pvectorc", "typing_extensions"}  # pyrsistent's
