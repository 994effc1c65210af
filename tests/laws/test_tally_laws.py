"""Laws of tallies: what they come to is what the documents come to, and what needs the documents is refused."""

from __future__ import annotations

import re
from itertools import pairwise
from math import isclose

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from evalcore import (
    AGGREGATIONS,
    EVALCORE,
    EvalError,
    MetricKey,
    MetricSpec,
    Scored,
    Task,
    aggregate_metric,
    build_report,
    freeze_options,
    merge_scored,
    report_task,
)
from evalcore.core.aggregate.numbers import fit_bounds
from evalcore.core.compare.pairs import pair_documents
from evalcore.core.records.row import Powers
from evalcore.core.records.score import ScoredColumn
from evalcore.core.stats.intervals import INTERVALS
from evalcore.core.tally import MANY, MOST_REASONS, list_support, tally_column, tally_scored
from evalcore.groups import Group, GroupMetric, Leaf
from evalcore.lm_eval import LM_EVAL_0_4_13
from evalcore.stats import (
    Array,
    Column,
    Floats,
    Inference,
    Labels,
    Objects,
    Resampling,
    Stats,
    build_column,
    list_outcomes,
    merge_all,
)
from evalcore.traces import contributions

LAW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
SCORES = (0.0, 1.0, 0.25, 1 / 3, 0.999, 0.004, -0.0, 0.1)


def floats(rng, n):
    if rng.random() < 0.3:
        return Floats(Array(rng.integers(0, 2, n).astype(np.float64)))
    return Floats(Array(rng.choice(SCORES, n) if rng.random() < 0.5 else rng.random(n) ** rng.integers(1, 9)))


def log_likelihoods(rng, n):
    return Floats(Array(-rng.gamma(2.0, 10.0, n).round(int(rng.integers(0, 9)))))


def lengths(rng, n):
    words = rng.integers(1, 30, n)
    return Stats(Array(np.column_stack([-(words * rng.gamma(2.0, 1.0, n)).round(int(rng.integers(0, 9))), words])))


def labels(rng, n):
    return Labels(Array(rng.integers(0, rng.integers(2, 5), (n, 2))))


def pairs(rng, n):
    names = ("no", "yes")
    return Objects(tuple((names[a], names[b]) for a, b in rng.integers(0, 2, (n, 2)).tolist()))


def counts(width):
    """N-gram counts of sentences: hits of each order are at most what was said."""

    def build(rng, n):
        said = rng.integers(1, 12, (n, width))
        return Stats(Array(np.minimum(said, rng.integers(0, 12, (n, width))).astype(np.float64)))

    return build


def bleu(rng, n):
    totals = rng.integers(4, 9, (n, 1)) - np.arange(4)
    hits = rng.integers(0, totals + 1)
    return Stats(Array(np.hstack([totals[:, :1], totals[:, :1], hits, totals]).astype(np.float64)))


def edits(rng, n):
    words = rng.integers(1, 30, n)
    return Stats(Array(np.column_stack([rng.integers(0, 1 + words), words]).astype(np.float64)))


GIVEN = {
    "mean": (floats,),
    "nanmean": (floats,),
    "brier_score": (floats,),
    "median": (floats, log_likelihoods),
    "perplexity": (log_likelihoods,),
    "weighted_perplexity": (lengths,),
    "bits_per_byte": (lengths,),
    "f1": (labels, pairs),
    "matthews_corrcoef": (labels, pairs),
    "bleu": (bleu,),
    "chrf": (counts(18),),
    "chrf++": (counts(24),),
    "ter": (edits,),
    "bypass": (floats, pairs),
}
OPTIONS = {"labels": freeze_options(average="macro"), "pairs": freeze_options(pos_label="yes")}
CLOSED = sorted(name for name, one in INTERVALS.items() if one.resampled is None)


def column_of(build, seed: int, n: int, start: int = 0) -> Column:
    rng = np.random.default_rng(seed)
    status = rng.choice(np.array([0, 0, 0, 0, 0, 0, 1, 2, 3], np.uint8), n)
    reasons = {
        start + i: f"{('late', 'cut')[i % 2]} - at t doc {i}"
        for i in np.flatnonzero((status == 1) | (status == 2)).tolist()
    }
    return build_column(range(start, start + n), build(rng, n), status, reasons)


def agree(a: float | None, b: float | None) -> bool:
    return a is b or (a is not None and b is not None and isclose(a, b, rel_tol=1e-12, abs_tol=1e-15))


def check_same(one, other):
    """The value to the last bit, errors and intervals to 1e-12, and all else that is not about documents."""
    assert (one.value, one.n, one.counts, one.reason, one.warnings) == (
        other.value,
        other.n,
        other.counts,
        other.reason,
        other.warnings,
    )
    assert (one.signature, one.scale.size, one.scale.bounds) == (other.signature, other.scale.size, other.scale.bounds)
    assert agree(one.stderr, other.stderr)
    assert agree(one.spread.variance, other.spread.variance)
    assert (one.ci is None) == (other.ci is None)
    assert one.ci is None or all(map(agree, one.ci, other.ci))


def test_every_entry_is_here():
    """Each entry says what it rests on: those that can be tallied are checked below, the others refused."""
    assert {name for name, one in AGGREGATIONS.items() if one.rests_on != "documents"} == set(GIVEN)
    assert {how for kind, name, how in list_support() if kind == "aggregation" and name not in GIVEN} == {"refused"}


@pytest.mark.parametrize("name", sorted(GIVEN))
@LAW
@given(st.data())
def test_a_tally_of_rows_closes_as_its_documents_do(name, data):
    """Every aggregation that does not rest on documents, under every closed interval and both forms of errors."""
    build = data.draw(st.sampled_from(GIVEN[name]))
    column = column_of(build, data.draw(st.integers(0, 2**32)), data.draw(st.integers(1, 60)))
    closed_by = Inference(
        interval=data.draw(st.sampled_from(CLOSED)), stderr=data.draw(st.sampled_from(("cr2", "cr1")))
    )
    entry = fit_bounds(AGGREGATIONS[name], data.draw(st.sampled_from((None, (0.0, 1.0)))), column)
    options = OPTIONS.get(build.__name__, freeze_options())
    tallied = tally_column(column)
    assert tallied.documents == len(column)
    try:
        whole = aggregate_metric(entry, column, options=options, inference=closed_by)
    except EvalError as wrong:  # F1 of one class, say
        with pytest.raises(EvalError, match=re.escape(str(wrong))):
            aggregate_metric(entry, tallied, options=options, inference=closed_by)
        return
    check_same(whole, aggregate_metric(entry, tallied, options=options, inference=closed_by))


LONG = frozenset({"bleu", "chrf", "chrf++", "ter"})
SUMMED = [
    pytest.param(name, marks=pytest.mark.slow) if name in LONG else name
    for name in sorted(GIVEN)
    if AGGREGATIONS[name].rests_on in ("sums", "weighted")
]


@pytest.mark.parametrize("name", SUMMED)
@LAW
@given(st.data())
def test_sums_of_many_scores_close_as_the_documents_do(name, data):
    """Beyond the most different scores only sums are kept; then errors of weighted ones need ``cr1``."""
    column = column_of(GIVEN[name][0], data.draw(st.integers(0, 2**32)), data.draw(st.integers(12, 60)))
    entry = fit_bounds(AGGREGATIONS[name], (0.0, 1.0) if GIVEN[name][0] is floats else None, column)
    tallied = tally_column(column, most=3)
    if not isinstance(tallied.rows, Powers):
        return
    rule = data.draw(st.sampled_from(("exclude", "zero"))) if isinstance(column.rows, Floats) else "exclude"
    for form in ("cr1", "cr2"):
        closed_by = Inference(interval=data.draw(st.sampled_from(CLOSED)), stderr=form, on_unscorable=rule)
        whole = aggregate_metric(entry, column, inference=closed_by)
        made = aggregate_metric(entry, tallied, inference=closed_by)
        if form == "cr2" and entry.rests_on == "weighted":
            assert whole.spread.weights is not None
            assert made.value == whole.value
            assert made.stderr is made.ci is None
            assert "cr1" in made.reason
        else:
            check_same(replace(whole, warnings=made.warnings), made)


@LAW
@given(st.data())
def test_tallies_merge_in_any_split_and_order(data):
    """Whatever is tallied first: the tally of the whole, to the last bit, as a table of rows and as sums."""
    build = data.draw(st.sampled_from((floats, log_likelihoods, lengths, labels, pairs)))
    most = data.draw(st.sampled_from((2, 8, 1000)))
    sizes = data.draw(st.lists(st.integers(0, 15), min_size=1, max_size=6))
    starts = np.cumsum([0, *sizes]).tolist()
    seed = data.draw(st.integers(0, 2**32))
    whole = column_of(build, seed, starts[-1])
    parts = (
        [
            build_column(
                whole.keys.ints[a:b],
                type(whole.rows)(
                    whole.rows.values[a:b] if isinstance(whole.rows, Objects) else Array(whole.rows.values.data[a:b])
                ),
                whole.status.data[a:b],
                {k: r for k, r in whole.reasons if a <= k < b},
            )
            for a, b in pairwise(starts)
        ]
        if starts[-1]
        else [whole]
    )
    wanted = tally_column(whole, most=most)
    for i in range(len(parts)):
        if data.draw(st.booleans()):
            parts[i] = tally_column(parts[i], most=most)
    while len(parts) > 1:
        a = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        b = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        parts.append(tally_column(merge_all((a, b)), most=most))
    assert tally_column(parts[0], most=most) == wanted


def scored_of(name: str, column: Column, aggregation: object = "mean") -> Scored:
    spec = MetricSpec("score", aggregation=aggregation, higher_is_better=True)
    return Scored(Task(name, "generate_until", (spec,)), (ScoredColumn(MetricKey("score"), column, spec),))


def test_groups_of_tallied_tasks():
    """Means of tasks, their errors and intervals are those of the documents."""
    columns = {
        name: column_of(build, seed, 50)
        for seed, (name, build) in enumerate({"a": floats, "b": log_likelihoods}.items())
    }
    tree = Group("g", tuple(Leaf(name, None) for name in columns), (GroupMetric("score"),))
    made = [
        build_report([report_task(form(scored_of(name, column))) for name, column in columns.items()], [tree]).group(
            "g"
        )
        for form in (lambda scored: scored, tally_scored, lambda scored: tally_scored(scored, most=4))
    ]
    check_same(made[0]["score,none"], made[1]["score,none"])
    check_same(made[0]["score,none"], made[2]["score,none"])


@pytest.mark.parametrize("tables", [EVALCORE, LM_EVAL_0_4_13], ids=lambda tables: tables.name)
def test_what_needs_documents_is_refused(tables):
    """Aggregations, intervals and clusters, before a document is forgotten; so is a tally that is closed by them."""
    column = build_column(range(4), Floats([0.0, 1.0, 1.0, 1.0]))
    refused = [name for kind, name, how in list_support(tables) if kind == "aggregation" and how == "refused"]
    for aggregation in (*refused, max):
        with pytest.raises(EvalError, match="must know which documents have it; score without tally - at t"):
            tally_scored(replace(scored_of("t", column, aggregation), tables=tables.name), tables=tables)
    for name in (name for name, one in INTERVALS.items() if one.resampled is not None):
        with pytest.raises(EvalError, match=f"the interval {name}"):
            tally_scored(scored_of("t", column), inference=Inference(interval=name))
        with pytest.raises(EvalError, match=f"the interval {name}"):
            report_task(tally_scored(scored_of("t", column)), inference=Inference(interval=name))
    with pytest.raises(EvalError, match="clusters"):
        tally_scored(replace(scored_of("t", column), clusters=((0, 1), (1, 1), (2, 3), (3, 3))))


def test_what_has_too_many_scores_for_a_number_says_so():
    """A median needs every score; a score beyond all numbers has no sum; nothing is computed without errors."""
    many = build_column(range(9), Floats(np.linspace(0, 1, 9)))
    assert "needs every score" in aggregate_metric(AGGREGATIONS["median"], tally_column(many, most=4)).reason
    wild = tally_column(build_column(range(9), Floats([*range(8), np.inf])), most=4)
    assert "1 scores are not finite" in aggregate_metric(AGGREGATIONS["mean"], wild).reason
    bare = aggregate_metric(
        AGGREGATIONS["mean"], tally_column(many, most=4), inference=Inference(resampling=Resampling(0))
    )
    assert (bare.value, bare.stderr, bare.ci) == (0.5, None, None)
    with pytest.raises(EvalError, match="compares with none"):
        tally_column(build_column([0], Objects((object(),))))


def test_reasons_are_counted_while_they_are_few():
    """Documents without a score for the same reason are one row; of very many reasons, one row for all."""
    n = MOST_REASONS + 2
    for different in (3, n):
        reasons = {i: f"reason {i % different} - at t doc {i}" for i in range(n)}
        column = build_column(range(n), Floats(np.zeros(n)), np.ones(n, np.uint8), reasons)
        halves = [
            tally_column(
                build_column(
                    range(a, a + n // 2),
                    Floats(np.zeros(n // 2)),
                    np.ones(n // 2, np.uint8),
                    {i: reasons[i] for i in range(a, a + n // 2)},
                )
            )
            for a in (0, n // 2)
        ]
        made = tally_column(column)
        assert made == tally_column(merge_all(halves))
        assert made.documents == n
        assert [reason for _, reason in made.reasons] == ([MANY] if different == n else [reasons[i] for i in range(3)])


def test_a_document_that_begins_two_tallies_is_found():
    """Others that are counted twice cannot be."""
    one = scored_of("t", build_column(range(4), Floats([0.0, 1.0, 1.0, 1.0])))
    with pytest.raises(EvalError, match="expected tallies of different documents"):
        merge_scored([tally_scored(one), tally_scored(one)])


def test_a_tally_has_no_documents_to_show_or_pair():
    """What would take the first document of a tally for all of them refuses it."""
    made = tally_scored(scored_of("t", build_column(range(4), Floats([0.0, 1.0, 1.0, 1.0]))))
    with pytest.raises(EvalError, match="score without tally"):
        list_outcomes(made.columns[0].column)
    with pytest.raises(EvalError, match="tallies have no documents to pair"):
        pair_documents(made, made)
    with pytest.raises(EvalError, match="unknown key"):
        contributions(build_report([report_task(made)]), "t", 0)
    assert "needs every task's rows" in pooled(made).reason


def pooled(made: Scored):
    tasks = [report_task(replace(made, task=replace(made.task, name=name))) for name in "ab"]
    tasks = [
        replace(
            one, estimates=tuple((key, replace(e, scale=replace(e.scale, average=False))) for key, e in one.estimates)
        )
        for one in tasks
    ]
    tree = Group("g", (Leaf("a", None), Leaf("b", None)), (GroupMetric("score", aggregation="pool"),))
    return build_report(tasks, [tree]).group("g")["score,none"]
