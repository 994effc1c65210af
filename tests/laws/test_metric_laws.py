"""Laws of metrics, filters and reducers: a document is scored by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalcore import (
    FILTERS,
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    METRICS,
    MULTIPLE_CHOICE,
    REDUCERS,
    Pipeline,
    Sample,
    Step,
    freeze_options,
    reduce_repeats,
)
from evalcore.core.filters.chain import chain
from evalcore.core.metrics.likelihood import LIKELIHOOD_METRICS
from evalcore.core.repeats.reducers import reducer
from evalcore.core.repeats.repeat import ReducerAt
from evalcore.extensions import Repeats
from evalcore.stats import Array, Floats, Labels, build_column, list_outcomes
from evalcore.testing import batches, check_filter, check_metric, check_reducer, columns, repeats, texts

LAW = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
ENTRIES = [
    (kind, name)
    for kind in (MULTIPLE_CHOICE, GENERATE_UNTIL, LOGLIKELIHOOD_ROLLING)
    for name in sorted(METRICS[kind])
    if name not in ("f1", "bypass") or kind == GENERATE_UNTIL
] + [(LOGLIKELIHOOD, name) for name in sorted(LIKELIHOOD_METRICS)]


@pytest.mark.parametrize(("kind", "name"), ENTRIES)
@LAW
@given(st.data())
def test_metrics(kind, name, data):
    """Every metric of the tables: batch equals one by one, in any order, within bounds, inputs unchanged."""
    check_metric(METRICS[kind][name], [data.draw(batches(kind))], kind)


@pytest.mark.parametrize("given_options", [{"ignore_case": True, "ignore_punctuation": True}, {"ignore_numbers": True}])
@LAW
@given(batches(GENERATE_UNTIL))
def test_metrics_with_options(given_options, batch):
    """Options change scores, not laws."""
    check_metric(METRICS[GENERATE_UNTIL]["exact_match"], [batch], GENERATE_UNTIL, given=freeze_options(given_options))


def test_a_metric_that_looks_around_is_caught():
    """The checker refuses a metric that normalises over its batch, changes its input or leaves its bounds."""
    batch = batches_of_two()

    def relative(batch, options):
        longest = max(map(len, batch.predictions))
        return Floats(Array([len(text) / longest for text in batch.predictions]))

    def greedy(batch, options):
        with pytest.raises(ValueError, match="read-only"):
            batch.fell_back[:] = True
        batch.fell_back.setflags(write=True)
        batch.fell_back[:] = True
        return Floats(Array(np.zeros(len(batch.predictions))))

    for metric in (relative, greedy):
        with pytest.raises(AssertionError):
            check_metric(metric, [batch], GENERATE_UNTIL)


def batches_of_two():
    from evalcore.core.answers.batch import Batch

    docs = (Sample(0, gold="aa"), Sample(1, gold="b"))
    return Batch("t", "none", docs, np.arange(2), ("aa", "b"), np.arange(3), np.zeros(2, np.bool_))


# --- filters -----------------------------------------------------------------------------------------------------

STEPS = {
    "take_first_k": {"k": 1},
    "regex": {"regex_pattern": r"(-?[0-9.,]+)|(the)", "group_select": -1},
    "multi_choice_regex": {"regex_pattern": r"(\([A-Z]\))", "ignore_case": True},
    "map": {"mapping_dict": {"4": "four"}, "default_value": "none"},
    "majority_vote": {"ties": "smallest"},
}
DOCUMENT_SCOPE = sorted(name for name in FILTERS if FILTERS[name].scope == "document")


@pytest.mark.parametrize("name", DOCUMENT_SCOPE)
@LAW
@given(st.lists(st.lists(texts(), min_size=1, max_size=3), min_size=1, max_size=4))
def test_filters(name, units):
    """Every document-scope filter: what becomes of a document does not depend on the others."""
    docs = [Sample(i, choices=("red", "a", "The answer")) for i in range(len(units))]
    check_filter(chain(Pipeline("p", (Step.of(name, **STEPS.get(name, {})),))), units, docs)


@LAW
@given(
    st.lists(
        st.sampled_from(["lowercase", "strip_punctuation", "remove_whitespace", "take_first", "regex"]), max_size=4
    ),
    st.lists(st.lists(texts(), min_size=1, max_size=3), min_size=1, max_size=4),
)
def test_chains(names, units):
    """A chain of document-scope filters is one; the empty chain is the identity."""
    apply = chain(Pipeline("p", tuple(Step.of(name, **STEPS.get(name, {})) for name in names)))
    check_filter(apply, units)
    if not names:
        from evalcore.core.filters.reply import nested, replies

        assert nested(apply(replies(units), [])) == units


# --- reducers ----------------------------------------------------------------------------------------------------

ITSELF = ("first", "last", "mean", "median", "min", "max", "mode", "maj@1")
OTHERS = ("variance", "consensus", "consistency", "pass@1", "pass@2", "pass^2", "at_least(2)", "maj@2")


@pytest.mark.parametrize("name", ITSELF + OTHERS)
@LAW
@given(repeats())
def test_reducers(name, given_repeats):
    """Every reducer: one score per document, by itself; an average or a choice of one repeat is that repeat."""
    check_reducer(reducer(name), [given_repeats], itself=name in ITSELF)


def test_every_reducer_of_the_table_is_here():
    """A reducer that someone adds to the table must be named above."""
    named = {*ITSELF, *OTHERS, "collect"}  # which makes no number
    stems = {name for name, entry in REDUCERS.items() if isinstance(entry, ReducerAt)}
    assert set(REDUCERS) - stems <= named
    assert all(any(name.startswith(stem) for name in named) for stem in stems)


@LAW
@given(repeats())
def test_reducers_on_zeros_and_ones(given_repeats):
    """For 0/1 scores, one repeat reduces to itself under pass@1, pass^1 and consensus; pass@n is max, pass^n is min."""
    hits = np.where(np.isnan(given_repeats.scores), np.nan, np.round(given_repeats.scores))
    for name in ("pass@1", "pass^1", "at_least(1)", "consensus"):
        check_reducer(reducer(name), [Repeats(hits[:, :1])])
    for row in hits:
        kept = Repeats(row[~np.isnan(row)][None, :])
        n = kept.scores.shape[1]
        assert reducer(f"pass@{n}")(kept) == reducer("max")(kept)
        assert reducer(f"pass^{n}")(kept) == reducer("min")(kept)
        np.testing.assert_allclose(reducer("pass@1")(kept), reducer("mean")(kept), rtol=1e-14)
        np.testing.assert_allclose(reducer("pass^1")(kept), reducer("mean")(kept), rtol=1e-14)


@pytest.mark.parametrize("name", [name for name in ITSELF if name != "maj@1"])
@settings(LAW, max_examples=30)
@given(columns())
def test_one_repeat_of_a_column_reduces_to_itself(name, one):
    """A column of one repeat keeps its keys, scores, statuses and reasons."""
    assert list_outcomes(reduce_repeats(name, [one])) == list_outcomes(one)


@settings(LAW, max_examples=30)
@given(columns("labels", min_size=1, unscored=False))
def test_first_and_last_keep_any_rows(one):
    """first and last of several repeats pick rows of any kind."""
    other = build_column(one.keys.ints, Labels(Array(one.rows.values.ints[:, ::-1])))
    assert reduce_repeats("first", [one, other]) == one
    assert reduce_repeats("last", [one, other]) == other
    assert reduce_repeats("first", [one]) == reduce_repeats("last", [one]) == one
