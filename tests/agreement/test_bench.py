"""Both sides of a benchmark do the same work: lm-eval and evalcore find the same numbers. The ratios are bench/'s."""

import pytest

pytest.importorskip("lm_eval")
from bench.after import errors, scoring


@pytest.mark.parametrize("kind", ["generation", "choices"])
def test_scoring_gives_lm_evals_values(kind):
    case = scoring.generation(200, ("answer", scoring.ANSWER, 0)) if kind == "generation" else scoring.choices(400)
    _, theirs = scoring.lm_eval_seconds(case["config"], case["reply"], log_samples=True)
    _, ours = scoring.evalcore_seconds(case, rounds=1)
    assert ours == pytest.approx({key: theirs[key] for key in ours}, abs=1e-12)


@pytest.mark.parametrize(
    ("kind", "n", "drawn"), [("of_numbers", 200, 1000), ("of_classes", 200, 100), ("of_corpora", 40, 20)]
)
def test_replayed_errors_are_lm_evals(kind, n, drawn):
    for work in getattr(errors, kind)(n, drawn):
        theirs, ours = errors.lm_eval_stderr(work), errors.replay_stderr(work, work.drawn)
        assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-15), work.name
