"""Sample logs that lm-eval itself writes are replayed to the last bit."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from evalcore.core.records.request import Generate, Likelihood, LogLikelihood, Rolling
from evalcore.shell.models.model import Question
from evalcore.shell.models.replay import BACKEND

pytest.importorskip("lm_eval")


def test_what_lm_eval_writes_comes_back(tmp_path: Path) -> None:
    from lm_eval.loggers import EvaluationTracker

    options = {"until": ["\n", "é"], "do_sample": False, "temperature": 0.0, "max_gen_toks": 32}
    texts = ["a \u2028 b", "é 😀\n", "", "0.1", "None"]
    values = [-0.1 - 0.2, -math.inf, -1e-300, -12345.678901234567]

    def sample(arguments: list[object], resps: list[object]) -> dict[str, object]:
        return {
            "doc_id": 0,
            "arguments": arguments,
            "resps": resps,
            "filtered_resps": resps,
            "target": 1,
            "filter": "none",
        }

    samples = [
        sample([("q: é", options)], [texts]),
        sample([("ctx", f" {n}") for n in range(len(values))], [[(value, n == 1)] for n, value in enumerate(values)]),
        sample([("whole text",)], [[values[3]]]),
    ]
    tracker = EvaluationTracker(output_path=str(tmp_path))
    tracker.general_config_tracker.model_name_sanitized = "m"
    tracker.date_id = "2026"
    tracker.save_results_samples("t", samples)
    model = BACKEND.open({"path": str(tmp_path)})

    def ask(*questions: Question) -> list[object]:
        return [heard.reply for heard in model.ask(questions)]

    assert ask(*(Question(Generate("q: é", options), n) for n in range(len(texts)))) == texts  # type: ignore[arg-type]
    assert ask(*(Question(LogLikelihood("ctx", f" {n}")) for n in range(len(values)))) == [
        Likelihood(value, n == 1) for n, value in enumerate(values)
    ]
    assert ask(Question(Rolling("whole text"))) == [values[3]]
