"""Laws of columns: a commutative, idempotent monoid that refuses conflicts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore import EvalError
from evalcore.core.records.row import take_rows
from evalcore.stats import Array, Column, Floats, Labels, Objects, build_column, list_outcomes, merge_all, merge_columns
from evalcore.testing import check_merge, columns, fingerprint

KINDS = ("floats", "labels", "stats", "objects")


def part(whole, at):
    """The rows of a column at these positions, as a column of its own."""
    at = np.array(at, np.int64)
    keys = whole.keys.ints[at]
    reasons = {key: why for key, why in whole.reasons if key in keys}
    return build_column(keys, take_rows(whole.rows, at), np.asarray(whole.status.data, np.uint8)[at], reasons)


@st.composite
def covers(draw, kind):
    """A column, and parts of it that overlap and together hold all of it."""
    whole = draw(columns(kind, min_size=1))
    places = st.lists(st.integers(0, len(whole) - 1), unique=True, max_size=len(whole))
    parts = draw(st.lists(places, max_size=4))
    rest = sorted(set(range(len(whole))) - {i for one in parts for i in one})
    return whole, [part(whole, one) for one in [*parts, rest]]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_cover_merges_to_the_whole(kind, data):
    """Parts that overlap in any way, in any order, merge to the whole: equal duplicates collapse."""
    whole, parts = data.draw(covers(kind))
    assert fingerprint(merge_all(parts)) == fingerprint(whole)
    check_merge(parts)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_monoid(kind, data):
    """merge is associative and commutative on columns with keys of their own, with the empty column as identity."""
    a, b, c = (data.draw(columns(kind)) for _ in range(3))
    b, c = shifted(b, 100), shifted(c, 200)
    check_merge([a, b, c])
    assert merge_columns(merge_columns(a, b), c) == merge_columns(a, merge_columns(b, c))
    assert merge_columns(a, b) == merge_columns(b, a)
    assert len(merge_all([a, b, c])) == len(a) + len(b) + len(c)


def shifted(one, by):
    reasons = tuple((key + by, why) for key, why in one.reasons)
    return Column(Array(one.keys.ints + by), one.rows, one.status, reasons)


@settings(max_examples=60, deadline=None)
@given(columns(min_size=1, unscored=False), st.data())
def test_conflicts_are_refused_in_any_order(one, data):
    """Two different scores of one document are an error that names it, whichever comes first."""
    at = data.draw(st.integers(0, len(one) - 1))
    key = int(one.keys.ints[at])
    other = build_column([key], Floats(Array([float(one.rows.values.floats[at]) + 1.0])))
    for pair in ((one, other), (other, one)):
        with pytest.raises(EvalError, match=f"doc {key}$"):
            merge_columns(*pair)


def test_other_conflicts():
    """A score and a failure, or two different reasons, are conflicts too; a NaN equals itself."""
    lost = build_column([0], Floats(Array([np.nan])), np.array([1], np.uint8), {0: "why"})
    other = build_column([0], Floats(Array([np.nan])), np.array([1], np.uint8), {0: "another"})
    scored = build_column([0], Floats(Array([1.0])))
    assert merge_columns(lost, lost) == lost
    for clash in (other, scored):
        with pytest.raises(EvalError):
            merge_columns(lost, clash)
        with pytest.raises(EvalError):
            merge_columns(clash, lost)


@settings(max_examples=40, deadline=None)
@given(columns("labels", min_size=1, unscored=False), columns("objects", min_size=1, unscored=False))
def test_kinds_mix_without_losing_a_score(labels, objects):
    """Columns of different kinds merge to one that still holds every document's score."""
    both = merge_columns(labels, shifted(objects, 100))
    assert both == merge_columns(shifted(objects, 100), labels)
    assert list_outcomes(both) == list_outcomes(labels) + list_outcomes(shifted(objects, 100))


@settings(max_examples=40, deadline=None)
@given(columns(min_size=1))
def test_columns_do_not_change(one):
    """Every array of a column is read-only."""
    for array in (one.keys, one.status, one.rows.values):
        with pytest.raises(ValueError, match="read-only"):
            array.data[0] = 0


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1)), unique_by=lambda pair: pair[0]), st.randoms())
def test_a_column_is_a_set_of_rows(pairs, dice):
    """The order in which rows are given is irrelevant."""
    mixed = dice.sample(pairs, len(pairs))
    made = [
        build_column([k for k, _ in rows], Floats(Array(np.array([v for _, v in rows])))) for rows in (pairs, mixed)
    ]
    assert made[0] == made[1]
    assert made[0].keys.data.tolist() == sorted(k for k, _ in pairs)


def test_kinds_of_rows_keep_their_types():
    """Labels stay integers and objects stay what they were."""
    labels = build_column([1, 0], Labels(Array(np.array([[1, 0], [2, 2]]))))
    assert list_outcomes(labels)[0][1].score == (2, 2)
    kept = build_column([0], Objects(({"a": [1]},)))
    list_outcomes(kept)[0][1].score["a"].append(2)
    assert list_outcomes(kept)[0][1].score == {"a": [1]}


LONG = np.arange(3000.0)
CHANGED = np.where(LONG == 1500, -1.0, LONG)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (LONG, LONG.copy()),
        ({"a": 1, "b": [np.nan]}, {"b": [float("nan")], "a": 1}),
        ((np.float32(np.nan), {1, 2}), (np.float32("nan"), {2, 1})),
        (np.array([None, "x"]), np.array([None, "".join("x")])),
    ],
    ids=["array", "mapping", "nan", "objects"],
)
def test_objects_that_are_the_same_collapse(a, b):
    """Values collapse by what they are, not by how they are written."""
    merged = merge_columns(build_column([0], Objects((a,))), build_column([0], Objects((b,))))
    assert len(merged) == 1


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (LONG, CHANGED),
        ({"a": [LONG]}, {"a": [CHANGED]}),
        (LONG, LONG.astype(np.float32)),
        (LONG, LONG.reshape(2, -1)),
        (np.array([None, "x"]), np.array([None, "y"])),
        ([1, 2], [1]),
        ([1], (1,)),
        ({"a": 1}, {"a": 1, "b": 1}),
        ({"a": 1}, {"a": True}),
        (0.0, -0.0),
    ],
    ids=lambda one: type(one).__name__,
)
def test_objects_that_differ_anywhere_are_refused(a, b):
    """A difference at any depth is a conflict, whichever comes first."""
    one, other = (build_column([0], Objects((value,))) for value in (a, b))
    for pair in ((one, other), (other, one)):
        with pytest.raises(EvalError, match="two different ones"):
            merge_columns(*pair)
