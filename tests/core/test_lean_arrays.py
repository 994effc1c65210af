"""Columns of very many documents take little memory, and nobody who reads them can tell."""

from __future__ import annotations

import itertools
import pickle
import tracemalloc

import numpy as np
import pytest

from evalcore import MULTIPLE_CHOICE, MetricSpec, Sample, Scored, Task, merge_scored, report_task, score_task
from evalcore.core.aggregate.inference import Inference
from evalcore.core.pipeline import close_column
from evalcore.core.records.array import Array, add_up, frozen
from evalcore.core.records.column import Column, build_column, list_outcomes, merge_all
from evalcore.core.records.lean.blend import Blend, count_scores
from evalcore.core.records.lean.slim import join, join_keys, slim_numbers, take
from evalcore.core.records.lean.steps import Bits, Lean, Level, Steps
from evalcore.core.records.row import Floats
from evalcore.core.repeats.repeated_score import slim_column
from evalcore.logs import request_table

SCORES = np.array([0.0, 1.0, np.nan, 1.0, 0.0])
LEAN = {
    "steps": (Steps(7, 5), np.arange(7, 12)),
    "level": (Level(0.5, 5), np.full(5, 0.5)),
    "bits": (slim_numbers(Array(SCORES)).held, SCORES),
    "blend": (Blend(count_scores(Array(SCORES)), (3.0, -1.0), 0.25), SCORES * 3.0 - 1.0 - 0.25),
}


@pytest.mark.parametrize("kind", LEAN)
def test_an_array_is_the_same_however_it_is_kept(kind: str) -> None:
    held, numbers = LEAN[kind]
    assert isinstance(held, Lean)
    lean, plain = Array(held), frozen(numbers)
    assert lean == plain
    assert hash(lean) == hash(plain)
    assert repr(lean) == repr(plain)
    assert len(lean) == len(plain)
    assert not lean.data.flags.writeable
    assert lean.part(1, 3).tobytes() == plain.part(1, 3).tobytes()
    again = pickle.loads(pickle.dumps(lean))
    assert again == plain
    assert isinstance(again.held, type(held))
    order = np.array([4, 0])
    assert take(lean, order) == take(plain, order)
    assert join([lean, plain, lean]) == join([plain, plain, plain])


def test_what_is_not_exactly_0_or_1_is_kept() -> None:
    for odd in (-0.0, 0.5, np.inf, -np.nan, 2.0):
        assert not isinstance(slim_numbers(Array([0.0, 1.0, odd])).held, Bits)


def test_keys_with_a_gap_are_kept() -> None:
    assert join_keys([Array([1, 2]), Array([4])]).data.tolist() == [1, 2, 4]


def _split(values: np.ndarray, sizes: tuple[int, ...], slim: bool) -> list[Column]:
    ends = np.cumsum([0, *sizes]).tolist()
    status = np.where(np.isnan(values), 1, 0).astype(np.uint8)
    parts = [
        build_column(range(a, b), Floats(Array(values[a:b])), status[a:b], {a: "no answer"} if status[a] else None)
        for a, b in itertools.pairwise(ends)
    ]
    return [slim_column(part) if slim else part for part in parts]


@pytest.mark.parametrize("kind", ["bits", "lost", "floats"])
def test_lean_columns_merge_and_close_to_the_same_bits_in_any_order(kind: str) -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 2, 3000).astype(np.float64) if kind != "floats" else rng.random(3000) ** 9
    if kind == "lost":
        values[rng.integers(0, 3000, 40)] = np.nan
    plain = merge_all(_split(values, (3000,), slim=False))
    for sizes in ((3000,), (1000, 1000, 1000), (10, 2000, 300, 690)):
        for parts in (_split(values, sizes, slim=True), _split(values, sizes, slim=True)[::-1]):
            merged = merge_all(parts)
            reasons = tuple(pair for part in parts[::-1] for pair in part.reasons)
            assert (merged.keys, merged.rows, merged.status) == (plain.keys, plain.rows, plain.status), reasons
            assert isinstance(merged.keys.held, Steps) or len(parts) == 1
            assert isinstance(merged.rows, Floats)
            assert isinstance(merged.rows.values.held, Bits) == (kind != "floats")
            for inference in (Inference(), Inference(interval="t", on_unscorable="zero")):
                assert close_column(merged, inference=inference) == close_column(plain, inference=inference)
            assert [str(one) for one in list_outcomes(merged)[:9]] == [str(one) for one in list_outcomes(plain)[:9]]


def test_documents_scored_twice_collapse_and_contradictions_are_named() -> None:
    one = slim_column(build_column(range(600), Floats(Array(np.ones(600)))))
    other = slim_column(build_column(range(300, 900), Floats(Array(np.ones(600)))))
    assert len(merge_all((one, other))) == 900
    wrong = slim_column(build_column(range(300, 900), Floats(Array(np.zeros(600)))))
    with pytest.raises(ValueError, match=r"two different ones: 1\.0 and 0\.0 - at doc 300"):
        merge_all((wrong, one))


def test_sums_of_functions_of_numbers_are_exact_in_blocks() -> None:
    values = np.random.default_rng(1).normal(size=200_000)
    assert add_up(values, of=np.square) == add_up(values**2) == add_up(Array(values), of=np.square)


def _score(start: int, count: int) -> Scored:
    task = Task("choices", MULTIPLE_CHOICE, tuple(map(MetricSpec, ("acc", "acc_norm", "brier_score"))))
    rng = np.random.default_rng(start)
    samples = [Sample(start + i, gold=i % 4, choices=("a", "b", "c", "d")) for i in range(count)]
    asked = request_table("choices", np.repeat(np.arange(start, start + count), 4), np.tile(np.arange(4), count))
    return score_task(task, samples, asked.answered([(one, False) for one in rng.normal(size=4 * count).tolist()]))


def test_three_metrics_take_some_25_bytes_a_document_until_they_are_closed() -> None:
    """Scores of 8, 1 and 1 bytes and three statuses, twice while they are merged; closing takes one array at a time."""
    _score(0, 300)
    n, step = 120_000, 12_000
    tracemalloc.start()
    parts = [_score(start, step) for start in range(0, n, step)]
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    report = report_task(merge_scored(parts))
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert report.n_docs == n
    block = 1 << 22  # numbers on their way to fsum, some at a time
    assert kept < 16 * n
    assert after < 32 * n
    assert peak < 40 * n + block
