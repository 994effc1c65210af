"""The harness in the examples is whole and public; every block of Python in the guides runs."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from evalcore.lm_eval import lm_eval_results

ROOT = Path(__file__).parents[2]
HARNESS = ROOT / "examples" / "harness" / "harness.py"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.fixture(scope="module")
def harness() -> ModuleType:
    spec = importlib.util.spec_from_file_location("harness_example", HARNESS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_runs_as_it_is(tmp_path: Path) -> None:
    command = [sys.executable, str(HARNESS), str(tmp_path / "results.json")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stderr == ""
    results = json.loads((tmp_path / "results.json").read_bytes())
    assert set(results["results"]) == {"sums", "products", "arithmetic"}
    assert results["group_subtasks"] == {"arithmetic": ["products", "sums"]}
    for name, row in results["results"].items():
        keys = [key for key in row if key.startswith("exact_match@") and "_stderr" not in key]
        assert keys == ["exact_match@mean,number", "exact_match@pass@2,number", "exact_match@maj@3,number"]
        for key in keys:
            line = next(
                one for one in done.stdout.splitlines() if one.startswith(name) and key.partition(",")[0] in one
            )
            assert f"Estimate({row[key]:.6g} ± " in line


def test_lm_evals_table_code_prints_its_results(harness: ModuleType) -> None:
    utils = pytest.importorskip("lm_eval.utils")
    printed = utils.make_table(lm_eval_results(harness.evaluate(harness.Careless(1), HARNESS.parent)))
    assert [line.split("|")[1].strip() for line in printed.splitlines()[2::3]] == ["arithmetic", "- products", "- sums"]


def test_a_right_a_wrong_and_a_failing_model(harness: ModuleType) -> None:
    def right(prompt: str) -> str:
        return f"I think that is {eval(prompt.removeprefix('What is ').rstrip('?'))}"

    def fails_on_products(prompt: str) -> str:
        if "*" in prompt:
            raise TimeoutError("no answer")
        return right(prompt)

    done = harness.evaluate(right, HARNESS.parent)
    assert [one.group("arithmetic")["exact_match@maj@3,number"].value for one in (done,)] == [1.0]
    wrong = harness.evaluate(lambda prompt: "no number", HARNESS.parent)
    assert wrong.group("arithmetic")["exact_match@pass@2,number"].value == 0.0
    hurt = harness.evaluate(fails_on_products, HARNESS.parent)
    assert hurt.task("sums")["exact_match@mean,number"].value == 1.0
    lost = hurt.task("products")["exact_match@mean,number"]
    assert (lost.value, lost.counts.failed) == (None, 5)
    assert "5 failed" in harness.table(hurt)


def test_it_uses_public_names_only_and_is_short() -> None:
    source = HARNESS.read_text("utf-8")
    tree = ast.parse(source)
    froms = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    namespaces = {f"evalcore.{name}" for name in ("comparisons", "groups", "lm_eval", "logs", "stats", "traces")}
    assert {one for one in froms if one and one.startswith("evalcore")} <= {"evalcore", *namespaces}
    body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom | ast.Expr | ast.ClassDef)]
    lines = [line for node in body for line in source.splitlines()[node.lineno - 1 : node.end_lineno]]
    assert len([line for line in lines if line.strip()]) <= 45
