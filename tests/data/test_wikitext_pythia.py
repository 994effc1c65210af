"""WikiText perplexities of Pythia models: 60 published triples, remade from documents by the rolling metrics."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import log, log2

import pytest
from recorded import estimate

from evalcore import LOGLIKELIHOOD_ROLLING, Answer, Instance, Rolling, Sample, Task, report_task, score_task
from evalcore.lm_eval import LM_EVAL_0_4_13

TASK = Task("wikitext", LOGLIKELIHOOD_ROLLING)
DOCS = 62


def test_the_published_figures_keep_their_identities(recorded):
    data = recorded("wikitext_pythia_aggregates")
    expected = data.meta["expected"]
    for row in data.rows:
        assert abs(row["bits_per_byte"] - log2(row["byte_perplexity"])) <= expected["max_abs_error_bits_per_byte"]
        ratio = log(row["word_perplexity"]) / log(row["byte_perplexity"])
        assert expected["bytes_per_word_min"] <= ratio <= expected["bytes_per_word_max"]


def texts(ratio):
    """Documents of different lengths whose bytes and words have this ratio."""
    exact = Fraction(ratio).limit_denominator(400_000)
    letters = exact.numerator - exact.denominator  # every word brings one separator along
    short, rest = divmod(letters, exact.denominator)
    words = ["x" * (short + (i < rest)) for i in range(exact.denominator)]
    bounds = [len(words) * i * (i + 1) // (DOCS * (DOCS + 1)) for i in range(DOCS + 1)]
    return [" ".join(words[a:b]) + " " for a, b in pairwise(bounds)]


@pytest.mark.parametrize("tables", [None, LM_EVAL_0_4_13], ids=["evalcore", "lm-eval"])
def test_rolling_metrics_remake_every_figure(recorded, tables):
    data = recorded("wikitext_pythia_aggregates")
    made = texts(data.meta["expected"]["bytes_per_word_median"])
    chosen = {} if tables is None else {"tables": tables}
    if tables is not None:  # erratum E21: lm-eval counts the empty string after the last separator as a word
        made = ["x" + text[:-1] for text in made]
    samples = [Sample(key, gold=text) for key, text in enumerate(made)]
    for row in data.rows:
        lls = [-log(row["byte_perplexity"]) * len(text) * (0.5 + (key % 2)) for key, text in enumerate(made)]
        total = -log(row["byte_perplexity"]) * sum(map(len, made))
        lls[-1] += total - sum(lls)
        answers = [Answer(Instance("wikitext", key, 0, Rolling("")), (ll,)) for key, ll in enumerate(lls)]
        report = report_task(score_task(TASK, samples, answers, **chosen), **chosen)
        assert {str(key) for key, _ in report.estimates} == {f"{name},none" for name in list(row)[1:]}
        for name in list(row)[1:]:
            assert estimate(report, f"{name},none").value == pytest.approx(row[name], rel=1e-11), (
                row["file"],
                name,
            )
        byte, bits = estimate(report, "byte_perplexity,none"), estimate(report, "bits_per_byte,none")
        assert bits.value == pytest.approx(log2(byte.value), rel=1e-14)
