"""Scoring stays two orders of magnitude ahead of lm-eval: half of what ``bench/`` asks for, since others may use the machine."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("lm_eval")
BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def bench():
    sys.path.insert(0, str(BENCH))
    spec = importlib.util.spec_from_file_location("bench_scoring", BENCH / "scoring.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(BENCH))


@pytest.mark.parametrize(("kind", "least"), [("generation", 50), ("choices", 25)])
def test_scoring_is_far_faster_than_lm_evals(bench, kind, least):
    case = bench.generation(1000, ("answer", bench.ANSWER, 0)) if kind == "generation" else bench.choices(1000)
    theirs, values = bench.lm_eval_seconds(case["config"], case["reply"], log_samples=True)
    ours, found = bench.evalcore_seconds(case)
    assert all(found[key] == pytest.approx(values[key], abs=1e-12) for key in found)
    assert theirs / ours > least
