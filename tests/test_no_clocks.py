"""No test asserts a clock: a busy machine must not fail one. Ratios belong to bench/, budgets to counted steps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FILES = sorted(path for path in TESTS.rglob("*.py") if path.name != Path(__file__).name)
CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "time", "timeit", "repeat", "getrusage"}
IMPORTED = re.compile(r"^\s*(import|from) (time|timeit|resource)\b", re.MULTILINE)
SPELLED = re.compile(r"\b(monotonic|perf_counter|process_time|thread_time|time\.time)(_ns)?\(\)")


def clock_names(tree: ast.AST) -> set[str]:
    """How a file may call a clock: ``time.monotonic``, or the name under which it is imported."""
    modules = ("time", "timeit", "resource")
    found = {f"{module}.{clock}{ns}" for module in modules for clock in CLOCKS for ns in ("", "_ns")}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            found |= {one.asname or one.name for one in node.names if one.name.removesuffix("_ns") in CLOCKS}
    return found


def reads_clock(node: ast.AST, clocks: set[str], timed: set[str]) -> bool:
    """Whether an expression calls a clock or holds a name that was made from one."""
    calls = (ast.unparse(one.func) for one in ast.walk(node) if isinstance(one, ast.Call))
    names = (one.id for one in ast.walk(node) if isinstance(one, ast.Name))
    return any(call in clocks for call in calls) or any(name in timed for name in names)


def made_names(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """What a statement makes, and from what: an assignment, or a list that something is appended to."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "extend"):
        yield from ((node.func.value, one) for one in node.args)


def timed_names(function: ast.AST, clocks: set[str]) -> set[str]:
    """The names in a function that hold a time, or something made from one."""
    timed: set[str] = set()
    while True:
        made = [pair for node in ast.walk(function) for pair in made_names(node)]
        targets = [target for target, value in made if reads_clock(value, clocks, timed)]
        found = {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
        if found <= timed:
            return timed
        timed |= found


def asserted_clocks(source: str) -> list[int]:
    """The lines that assert how a time compares, and those that write a clock into code for another process."""
    if not IMPORTED.search(source) and not SPELLED.search(source):
        return []
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    clocks = clock_names(tree)
    for function in functions * 2:  # a function that returns a time is a clock itself; twice, for those that call it
        timed = timed_names(function, clocks)
        returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
        if any(reads_clock(value, clocks, timed) for value in returned):
            clocks.add(function.name)
    found = set()
    for function in functions:
        timed = timed_names(function, clocks)
        for node in ast.walk(function):
            compared = (
                [one for one in ast.walk(node) if isinstance(one, ast.Compare)] if isinstance(node, ast.Assert) else ()
            )
            found |= {one.lineno for one in compared if reads_clock(one, clocks, timed)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return sorted(found | {node.lineno for node in texts if SPELLED.search(node.value)})


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_no_test_asserts_a_clock(path):
    assert asserted_clocks(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "body",
    [
        "start = time.perf_counter(); work(); assert time.perf_counter() - start < 2",
        "start = process_time()\n    work()\n    taken = process_time() - start\n    assert taken < 2 and taken > 0",
        "times = []\n    times.append(time.monotonic())\n    assert min(times) < 2",
        "assert seconds(work) < 2",
        "best = min(repeat(work, number=3))\n    slow = 2 * best\n    assert slow < 1e-6, 'slow'",
        "assert path.stat().st_mtime > time.time() - 60",
        "run('import time; print(time.process_time())')",
    ],
)
def test_asserted_clocks_are_found(body):
    helper = "def seconds(work):\n    start = time.time()\n    work()\n    return time.time() - start\n"
    imports = "import time\nfrom time import process_time\nfrom timeit import repeat\n"
    assert asserted_clocks(f"{imports}{helper}def test():\n    {body}\n")


@pytest.mark.parametrize(
    "body",
    [
        "deadline = time.monotonic() + 60\n    while time.monotonic() < deadline:\n        time.sleep(0.1)\n    assert done == 3",
        "os.utime(path, (0, time.time() - 60))\n    assert path.read_text() == 'a'",
        "clock = Clock()\n    assert clock.time() == 3\n    assert report.time == '3.5'",
    ],
)
def test_waiting_is_no_assertion(body):
    assert asserted_clocks(f"import time\ndef test():\n    {body}\n") == []
