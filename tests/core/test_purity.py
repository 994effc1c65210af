"""Core is pure, light and typed: what it may import, what importing it loads, what its signatures say."""

import ast
import os
import subprocess
import sys
import time
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
    assert [file.name for file in FILES if "polic" in file.read_text(encoding="utf-8").lower()] == ["policy.py"]


def run(code: str, **more: str) -> str:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | more
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env).stdout


def test_importing_evalcore_loads_core_only():
    loaded = run("import sys, evalcore; print(*sys.modules)").split()
    assert [name for name in HEAVY if name in loaded] == []


def test_importing_evalcore_takes_less_than_twice_numpy(tmp_path):
    """With bytecode written for both, as after any install."""
    run("import evalcore", PYTHONPYCACHEPREFIX=str(tmp_path))

    def best(code: str) -> float:
        times = []
        for _ in range(9):
            start = time.perf_counter()
            run(code, PYTHONPYCACHEPREFIX=str(tmp_path))
            times.append(time.perf_counter() - start)
        return min(times)

    bare = best("pass")
    assert best("import evalcore") - bare < 2 * (best("import numpy") - bare)
