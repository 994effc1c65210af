"""Scoring and errors stay far ahead of lm-eval: half of what ``bench/`` asks for, since others may use the machine."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("lm_eval")
BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def bench():
    """Any module of ``bench/`` by its name."""

    def load(name):
        spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    sys.path.insert(0, str(BENCH))
    yield load
    sys.path.remove(str(BENCH))


@pytest.mark.parametrize(("kind", "least"), [("generation", 50), ("choices", 25)])
def test_scoring_is_far_faster_than_lm_evals(bench, kind, least):
    scoring = bench("scoring")
    case = scoring.generation(1000, ("answer", scoring.ANSWER, 0)) if kind == "generation" else scoring.choices(2000)
    theirs, values = scoring.lm_eval_seconds(case["config"], case["reply"], log_samples=True)
    ours, found = scoring.evalcore_seconds(case, rounds=20)
    assert all(found[key] == pytest.approx(values[key], abs=1e-12) for key in found)
    assert theirs / ours > least


@pytest.mark.parametrize(
    ("kind", "n", "drawn", "closed", "replayed"),
    [("of_numbers", 200, 1000, 500, 1), ("of_classes", 200, 100, 500, 150), ("of_corpora", 40, 20, 40, 40)],
)
def test_errors_are_far_faster_than_lm_evals(bench, kind, n, drawn, closed, replayed):
    errors = bench("errors")
    for work in getattr(errors, kind)(n, drawn):
        times = errors.measure(work)
        assert times.stderrs[1] == pytest.approx(times.stderrs[0], rel=1e-12, abs=1e-15), work.name
        assert times.lm_eval / times.default > closed, work.name
        assert times.lm_eval / times.replayed > replayed, work.name
