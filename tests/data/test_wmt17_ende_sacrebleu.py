"""WMT17 English-German: BLEU under five tokenisations, chrF, chrF++ and TER as sacrebleu gives them."""

from __future__ import annotations

import pytest
from recorded import estimate, generated

from evalcore import GENERATE_UNTIL, MetricSpec, Sample, Task, freeze_options, report_task, score_task

SYSTEMS = tuple(f"{name}.en-de" for name in ("LIUM-NMT.4900", "online-A.0", "online-B.0", "online-F.0", "online-G.0"))
METRICS = {
    "bleu_13a": MetricSpec("bleu", options=freeze_options(tokenize="13a")),
    "bleu_tok_none": MetricSpec("bleu", options=freeze_options(tokenize="none")),
    "bleu_intl": MetricSpec("bleu", options=freeze_options(tokenize="intl")),
    "bleu_char": MetricSpec("bleu", options=freeze_options(tokenize="char")),
    "bleu_13a_lowercase": MetricSpec("bleu", options=freeze_options(tokenize="13a", lowercase=True)),
    "chrf": MetricSpec("chrf"),
    "chrfpp": MetricSpec("chrf++"),
    "ter": MetricSpec("ter"),
}


def report(data, system, spec):
    task = Task("wmt17", GENERATE_UNTIL, (spec,))
    samples = [Sample(row["idx"], gold=row["reference"]) for row in data.rows]
    answers = [generated("wmt17", row["idx"], row[system]) for row in data.rows]
    return estimate(report_task(score_task(task, samples, answers)), f"{spec.name},none")


def cases():
    """Every system under every metric; by default the first under all of them, the others under BLEU alone."""
    for system in SYSTEMS:
        for name in METRICS:
            slow = system != SYSTEMS[0] and name != "bleu_13a"
            yield pytest.param(system, name, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize(("system", "name"), list(cases()))
def test_corpus_scores_are_sacrebleus(recorded, system, name):
    pytest.importorskip("sacrebleu")
    data = recorded("wmt17_ende_sacrebleu")
    found = report(data, system, METRICS[name])
    full = f"newstest2017.{system}"
    assert found.value == pytest.approx(data.meta["expected"][full][name], rel=1e-13)
    assert (found.n, found.counts.scored) == (3004, 3004)
    assert found.stderr > 0
    published = data.meta["published"][full]
    if name == "bleu_13a":
        assert round(found.value, 1) == published["BLEU"]
    if name == "chrf":
        assert round(found.value, 1) == published["chrF2"]


def test_the_default_tokenisation_is_13a(recorded):
    pytest.importorskip("sacrebleu")
    data = recorded("wmt17_ende_sacrebleu")
    expected = data.meta["expected"][f"newstest2017.{SYSTEMS[0]}"]
    assert report(data, SYSTEMS[0], MetricSpec("bleu")).value == pytest.approx(expected["bleu_13a"], rel=1e-13)
