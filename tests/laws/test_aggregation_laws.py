"""Laws of aggregations: influence is the derivative of the value in a unit's weight, for every entry."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from evalcore import AGGREGATIONS, aggregate_metric, freeze_options
from evalcore.core.metrics.corpus import pair_statistics
from evalcore.extensions import from_callable
from evalcore.lm_eval import LM_EVAL_0_4_13
from evalcore.stats import Array, Floats, Inference, Objects, Resampling, Stats, build_column
from evalcore.testing import check_aggregation, check_resamples, columns, fingerprint

LAW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))

UNIT = st.floats(0.0, 1.0, allow_subnormal=False)


def objects(cells, min_size=1, max_size=8):
    made = st.lists(cells, min_size=min_size, max_size=max_size)
    return made.map(lambda rows: build_column(range(len(rows)), Objects(tuple(rows))))


def stats(cells, min_size=1, max_size=8):
    made = st.lists(cells, min_size=min_size, max_size=max_size)
    return made.map(lambda rows: build_column(range(len(rows)), Stats(Array(np.array(rows, np.float64)))))


def negatives():
    made = st.lists(st.floats(-20.0, -1e-3), min_size=1, max_size=8)
    return made.map(lambda rows: build_column(range(len(rows)), Floats(Array(np.array(rows)))))


FORECASTS = st.tuples(st.integers(0, 2), st.sampled_from(((0.2, 0.3, 0.5), (1.0, 0.0, 0.0), (1 / 3, 1 / 3, 1 / 3))))
QUESTIONS = st.tuples(st.booleans(), st.sampled_from(("p", "q", "r")))
BINARY = st.tuples(st.integers(0, 1), st.integers(0, 1))

GIVEN = {
    "mean": columns(),
    "nanmean": columns(),
    "median": columns(),
    "perplexity": negatives(),
    "weighted_perplexity": columns("stats"),
    "bits_per_byte": columns("stats"),
    "f1": objects(BINARY),
    "matthews_corrcoef": columns("labels"),
    "brier_score": objects(FORECASTS),
    "acc_all": objects(QUESTIONS),
    "ece": stats(st.tuples(UNIT, st.integers(0, 1))),
    "bypass": columns(),
}
CORPUS = ("bleu", "chrf", "chrf++", "ter")


def test_every_entry_is_here():
    """An aggregation that someone adds to the table must be checked below."""
    assert set(AGGREGATIONS) == {*GIVEN, *CORPUS}


@pytest.mark.parametrize("name", sorted(GIVEN))
@LAW
@given(st.data())
def test_entries(name, data):
    """Influence equals the numeric derivative and sums to 0; bits, bounds and errors are as they should be."""
    check_aggregation(AGGREGATIONS[name], [data.draw(GIVEN[name])])


@pytest.mark.parametrize("name", sorted(GIVEN))
@settings(LAW, max_examples=12)  # lm-eval's errors of each take 300,000 draws
@given(st.data())
def test_resamples_of_any_length_under_the_other_policy(name, data):
    """lm-eval's own value of whatever rows are drawn, so that whole clusters can be drawn too."""
    check_resamples(LM_EVAL_0_4_13.aggregations[name], data.draw(GIVEN[name]))


def test_a_wrong_resample_is_caught():
    """A resample that forgets what was drawn, or how much of it, is no sample of the rows."""
    one = build_column(range(3), Floats(Array(np.array([0.0, 1.0, 0.5]))))
    wrong = {
        "median": lambda values: lambda index: np.sort(values[index], axis=1)[:, len(values) // 2],
        "mean": lambda values: lambda index: np.full(len(index), values.mean()),
    }
    for name, resampled in wrong.items():
        entry = LM_EVAL_0_4_13.aggregations[name]
        check_resamples(entry, one)

        def summarise(rows, given, entry=entry, resampled=resampled):
            return replace(entry.summarise(rows, given), resampled=resampled(rows.values.floats))

        with pytest.raises(AssertionError, match="a resample is the value of rows"):
            check_resamples(replace(entry, summarise=summarise), one)


@pytest.mark.parametrize("average", ["macro", "micro", "weighted"])
@LAW
@given(columns("labels"))
def test_f1_of_several_classes(average, one):
    """The averages of F1 over classes obey the same laws."""
    check_aggregation(AGGREGATIONS["f1"], [one], given=freeze_options(average=average))


REFERENCES = (
    "the cat sat on the mat and looked at the dog",
    "there is a cat on the mat",
    "it is raining in the north of the country today",
    "Der schnelle braune Fuchs springt über den faulen Hund",
    "results were published last year in a journal of statistics",
)
SENTENCES = (
    "the cat sat on the mat and looked at a dog",
    "a cat is on the mat",
    "it rains in the north of the country today",
    "Der schnelle Fuchs springt über den faulen braunen Hund",
    "the results were published in a journal of statistics last year , they say",
    "nothing at all",
    "",
)
PAIRS = st.tuples(st.sampled_from(REFERENCES), st.sampled_from(SENTENCES))


@pytest.mark.parametrize("name", CORPUS)
@settings(LAW, max_examples=6)
@given(st.lists(PAIRS, min_size=2, max_size=6))
@example([(REFERENCES[1], SENTENCES[0]), (REFERENCES[2], SENTENCES[1])])  # as long as its references: BLEU has a kink
def test_corpus_scores_of_sentences(name, pairs):
    """BLEU, chrF and TER of real sentences: the same laws, from texts as from counts."""
    check_corpus(name, pairs)


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPUS)
@settings(LAW, max_examples=40)
@given(st.lists(PAIRS, min_size=2, max_size=6))
def test_corpus_scores_of_many_sentences(name, pairs):
    check_corpus(name, pairs)


def check_corpus(name, pairs):
    counts = pair_statistics(name, pairs)
    one = build_column(range(len(pairs)), Stats(Array(counts)))
    # Where an order has no match at all, smoothed BLEU is no function of ratios: doubling every document changes it.
    scale_free = name != "bleu" or bool(np.all(counts[:, 2:6].sum(axis=0) > 0))
    check_aggregation(AGGREGATIONS[name], [one], scale_free=scale_free)
    texts = aggregate_metric(AGGREGATIONS[name], build_column(range(len(pairs)), Objects(tuple(pairs))))
    assert fingerprint(texts) == fingerprint(aggregate_metric(AGGREGATIONS[name], one))


@pytest.mark.parametrize("name", CORPUS)
def test_corpus_errors_agree_with_the_bootstrap(name):
    """The delta error of a corpus score is near that of two thousand resampled corpora."""
    dice = np.random.default_rng(3)
    picked = [
        (REFERENCES[i], SENTENCES[j]) for i, j in zip(dice.integers(0, 5, 150), dice.integers(0, 6, 150), strict=True)
    ]
    close = [(REFERENCES[i], SENTENCES[i]) for i in range(5)] * 20
    counts = pair_statistics(name, [*picked, *close])
    closed = aggregate_metric(AGGREGATIONS[name], build_column(range(len(counts)), Stats(Array(counts))))
    summary = AGGREGATIONS[name].summarise(Stats(Array(counts)), freeze_options())
    drawn = summary.resampled(dice.integers(0, len(counts), (2000, len(counts))))
    assert closed.stderr == pytest.approx(float(np.std(drawn, ddof=1)), rel=0.1)


@pytest.mark.parametrize("name", CORPUS)
def test_copies_of_one_document_have_no_error(name):
    """Where every resample is the same corpus there is nothing to err by, also where an order has no match."""
    for pair in ((REFERENCES[0], SENTENCES[0]), ("a b c d e f g", "a b x c y d z")):
        counts = pair_statistics(name, [pair] * 30)
        closed = aggregate_metric(AGGREGATIONS[name], build_column(range(30), Stats(Array(counts))))
        assert closed.stderr == pytest.approx(0.0, abs=1e-9)


def test_the_median_is_exact():
    """The median's error is the bootstrap's with endless draws: 40,000 seeded ones come near (odd n)."""
    values = np.random.default_rng(5).lognormal(size=41)
    one = build_column(range(41), Floats(Array(values)))
    exact = aggregate_metric(AGGREGATIONS["median"], one)
    drawn = np.random.default_rng(6).integers(0, 41, (40_000, 41))
    assert exact.stderr == pytest.approx(float(np.std(np.median(values[drawn], axis=1))), rel=0.02)
    callable_one = from_callable(np.median)
    seeded = [
        aggregate_metric(callable_one, one, inference=Inference(resampling=Resampling(draws=4000, seed=seed)))
        for seed in (1, 1, 2)
    ]
    assert seeded[0].stderr == seeded[1].stderr != seeded[2].stderr
    assert seeded[0].stderr / (41 / 40) ** 0.5 == pytest.approx(exact.stderr, rel=0.06)


@settings(LAW, max_examples=20)
@given(columns(min_size=1))
def test_callables_obey_what_they_can(one):
    """A function of the list of scores has no influence, and the same bits for any split."""
    assume(one.scored.any())
    check_aggregation(from_callable(max), [one])


@settings(LAW, max_examples=20)
@given(columns(min_size=1))
def test_no_draws_no_errors(one):
    """bootstrap_iters: 0 leaves every value and takes away every error, with the reason."""
    for name in ("mean", "median"):
        closed = aggregate_metric(AGGREGATIONS[name], one)
        bare = aggregate_metric(AGGREGATIONS[name], one, inference=Inference(resampling=Resampling(draws=0)))
        assert bare.value == closed.value
        assert bare.stderr is None
        assert bare.reason


@LAW
@given(columns(min_size=2, unscored=False))
def test_intervals_hold_their_values(one):
    """An interval holds its value and lies within the bounds; more confidence never narrows it."""
    for name in ("mean", "median", "brier_score"):
        wide, narrow = (
            aggregate_metric(AGGREGATIONS[name], one, inference=Inference(confidence=level)).ci for level in (0.99, 0.9)
        )
        value = aggregate_metric(AGGREGATIONS[name], one).value
        if wide is None or narrow is None:
            continue
        low, high = AGGREGATIONS[name].bounds
        tiny = 1e-12
        assert low <= wide[0] <= narrow[0] + tiny
        assert narrow[0] <= value <= narrow[1]
        assert wide[0] <= value <= wide[1]
        assert narrow[1] - tiny <= wide[1] <= high
        assert (wide[0] < wide[1]) or high == inf


@pytest.mark.parametrize("scores", [[1.0, 0.5, 0.5], [0.0, 0.5, 0.5], [1.0, 0.1, 0.25], [0.255, 0.731, 0.803]])
def test_more_confidence_narrows_no_interval_of_a_few_skewed_scores(scores):
    """Lengthened for skewness, an end would come back from its farthest place, at 90 %, as confidence rises."""
    one = build_column(range(len(scores)), Floats(Array(np.array(scores))))
    levels = (0.5, 0.8, 0.9, 0.93, 0.97, 0.99, 0.995, 0.999)
    for name in ("mean", "brier_score"):
        found = [aggregate_metric(AGGREGATIONS[name], one, inference=Inference(confidence=at)).ci for at in levels]
        for narrow, wide in pairwise(found):
            assert wide[0] <= narrow[0] + 1e-12
            assert narrow[1] - 1e-12 <= wide[1]


@LAW
@given(columns(min_size=1))
def test_unscored_documents_could_only_do_so_much(one):
    """Counting documents without a score as 0 or 1 gives values between the lowest and the highest."""
    assume(one.scored.any())
    closed = aggregate_metric(AGGREGATIONS["mean"], one)
    zero = aggregate_metric(AGGREGATIONS["mean"], one, inference=Inference(on_unscorable="zero"))
    assert closed.counts.lowest <= closed.value <= closed.counts.highest
    assert zero.value == pytest.approx(closed.counts.lowest, abs=1e-15)
    assert closed.counts.scored + closed.counts.unscorable + closed.counts.failed + closed.counts.not_emitted == len(
        one
    )


@LAW
@given(columns(min_size=1, unscored=False))
def test_the_other_policy_has_the_same_means(one):
    """lm-eval's left-fold sums agree with exact ones to 1e-12."""
    ours, theirs = (aggregate_metric(table["mean"], one).value for table in (AGGREGATIONS, LM_EVAL_0_4_13.aggregations))
    assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-15)


def test_a_wrong_aggregation_is_caught():
    """The checker refuses an order-dependent sum, a value beyond its bounds and an error rule that is off."""
    one = build_column(range(4), Floats(Array(np.array([0.1, 0.7, 0.2, 0.9]))))
    mean = AGGREGATIONS["mean"]

    def doubled(rows, summary, influence, resampling):
        found = mean.error(rows, summary, influence, resampling)
        return replace(found, stderr=found.stderr * 2)

    def cut(rows, given):
        summary = mean.summarise(rows, given)
        return replace(summary, finalise=lambda sums: summary.finalise(np.real(sums)) + 0 * np.imag(sums[..., 0]))

    wrong = (
        replace(mean, total=lambda stats: stats[0] * len(stats)),
        replace(mean, bounds=(0.0, 0.4)),
        replace(mean, error=doubled),
        replace(mean, summarise=cut),
    )
    check_aggregation(mean, [one])
    for aggregation in wrong:
        with pytest.raises(AssertionError):
            check_aggregation(aggregation, [one])
