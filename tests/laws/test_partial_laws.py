"""Laws of partial scores: packing loses nothing, and merging files is merging columns."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from evalcore import EvalError, MetricKey, Scored, Task
from evalcore.core.partials.codec import FRACTION, RECORDS, pack, unpack
from evalcore.core.partials.partial import (
    Partial,
    decode_partial,
    encode_partial,
    number_documents,
    unite_partials,
)
from evalcore.core.partials.span import Span, find_gaps
from evalcore.core.records.row import take_rows
from evalcore.core.records.score import ScoredColumn
from evalcore.stats import Array, build_column
from evalcore.testing import columns, fingerprint

KINDS = ("floats", "labels", "stats", "objects")
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.text(st.characters(categories=["Cs"]), max_size=2)
    | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(PLAIN)
def test_packing_keeps_values_and_their_types(value):
    """unpack(pack(x)) is x, types included: a tuple is no list, 1 is no 1.0, NaN is NaN."""
    assert repr(unpack(pack(value))) == repr(value)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_packing_keeps_columns(kind, data):
    """A column comes back with the same bytes."""
    column = data.draw(columns(kind))
    assert fingerprint(unpack(pack(column))) == fingerprint(column)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 200))
def test_damaged_bytes_are_an_error(noise, at):
    """Whatever bytes are given: a value or an EvalError, never another exception."""
    good = encode_partial(Partial(spans=(Span("a", "bytes", 0, 5, 9),), scored=(Scored(Task("t", "generate_until")),)))
    head, _, body = good.partition(b"\n")
    for data in (noise, head + b"\n" + noise, head + b"\n" + body[:at] + noise + body[at + len(noise) :]):
        with contextlib.suppress(EvalError):
            decode_partial(data)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(RECORDS)), st.lists(PLAIN, max_size=10))
def test_bytes_that_claim_to_be_a_record(name, fields):
    """A record of fields of wrong types is refused or harmless."""
    import zlib

    from msgspec.msgpack import Ext, encode

    with contextlib.suppress(EvalError):
        unpack(zlib.compress(encode(Ext(1, encode([name, *map(ascii, fields)])))))


def test_a_fraction_is_two_integers():
    """A few bytes cannot ask for a number of a billion digits."""
    import zlib

    from msgspec.msgpack import Ext, encode

    with pytest.raises(EvalError, match="damaged bytes: invalid literal"):
        unpack(zlib.compress(encode(Ext(FRACTION, encode("1e9")))))


def part_of(whole, at, start):
    at = np.array(sorted(at), np.int64)
    keys = whole.keys.ints[at]
    reasons = {key: why for key, why in whole.reasons if key in keys}
    column = build_column(keys, take_rows(whole.rows, at), np.asarray(whole.status.data, np.uint8)[at], reasons)
    scored = Scored(Task("t", "generate_until"), (ScoredColumn(MetricKey("m"), column, None),))
    return Partial(scored=(scored,), spans=(Span("log", "bytes", start, start + 1, 9),), made=("x",))


@pytest.mark.parametrize("kind", ["floats", "labels", "stats"])
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_split_and_order_of_files_merges_to_the_whole(kind, data):
    """Partials of any cover of the documents, in any order and with repetitions, merge as their columns do."""
    whole = data.draw(columns(kind, min_size=1))
    owners = data.draw(st.lists(st.integers(0, 8), min_size=len(whole), max_size=len(whole)))
    parts = [part_of(whole, [at for at, who in enumerate(owners) if who == one], one) for one in range(9)]
    files = [encode_partial(one) for one in data.draw(st.permutations([*parts, parts[0]]))]
    merged = unite_partials(map(decode_partial, files))
    assert fingerprint(merged.scored[0].columns[0].column) == fingerprint(whole)
    assert list(find_gaps(merged.spans)) == []
    cut = data.draw(st.integers(1, len(files) - 1))
    left, right = (unite_partials(map(decode_partial, some)) for some in (files[:cut], files[cut:]))
    assert unite_partials([left, right]).scored == merged.scored


@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(0, 50), min_size=1), st.data())
def test_places_become_numbers_in_their_order(places, data):
    """Documents that go by their places in a file are numbered by their order there."""
    given_order = data.draw(st.permutations(sorted(places)))
    whole = build_column(sorted(places), _floats(len(places)))
    scored = Scored(Task("t", "generate_until"), (ScoredColumn(MetricKey("m"), whole, None),))
    numbered = number_documents(Partial(scored=(scored,), places=Array(np.array(given_order, np.int64))))
    column = numbered.scored[0].columns[0].column
    assert column.keys.ints.tolist() == list(range(len(places)))
    assert replace(column, keys=whole.keys) == whole


def _floats(count):
    from evalcore.stats import Floats

    return Floats(Array(np.arange(count, dtype=np.float64)))


@pytest.mark.parametrize("gone", [0, 3, 8])
def test_every_gap_is_found(gone):
    spans = [Span("log", "bytes", at, at + 1, 9) for at in range(9) if at != gone]
    assert [(gap.start, gap.stop) for gap in find_gaps(reversed(spans))] == [(gone, gone + 1)]
    assert json.dumps([str(gap) for gap in find_gaps(spans)]) == json.dumps([f"bytes {gone} to {gone + 1} of log"])
