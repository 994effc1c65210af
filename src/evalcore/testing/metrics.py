"""Laws of what sees one document at a time: metrics, reducers, filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from pyrsistent import PMap, pmap

from evalcore.core.answers.batch import Batch
from evalcore.core.answers.choice import mc_batch
from evalcore.core.answers.kind import Build, batch_of
from evalcore.core.answers.likelihood import ll_batch, rolling_batch
from evalcore.core.answers.text import gen_batch
from evalcore.core.filters.reply import FilterFn, Replies, nested, replies
from evalcore.core.metrics.metric import Emitted, Marks, Metric
from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.records.errors import require_known
from evalcore.core.records.outcome import NOT_EMITTED, OK, UNSCORABLE
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    NO_OPTIONS,
    Options,
    OutputType,
    Sample,
)
from evalcore.core.records.row import Floats, as_objects, score_at
from evalcore.core.repeats.repeat import Reduce, Repeats
from evalcore.testing.fingerprints import fingerprint

BUILDERS: PMap[OutputType, Build] = pmap(
    dict[OutputType, Build](
        {
            MULTIPLE_CHOICE: mc_batch,
            GENERATE_UNTIL: gen_batch,
            LOGLIKELIHOOD: ll_batch,
            LOGLIKELIHOOD_ROLLING: rolling_batch,
        }
    )
)
Cell = tuple[int, object]
"""The status of a document under a metric and, if it is scored, its score."""


def check_metric(
    metric: Metric[object] | Callable[..., Emitted],
    batches: Iterable[Batch],
    output_type: OutputType,
    *,
    given: Options = NO_OPTIONS,
) -> None:
    """Check that a batch scores as its documents do one by one, in any order, within bounds; inputs stay unchanged.

    The same holds for its results: a batch made of ``batch[i]`` alone scores as the document does.

    >>> docs, none = (Sample(0, "4"), Sample(1, "5")), np.zeros(2, np.bool_)
    >>> two = Batch("t", "none", docs, np.arange(2), ("4", "4"), np.arange(3), none)
    >>> from evalcore.core.metrics.text import TEXT_METRICS
    >>> check_metric(TEXT_METRICS["exact_match"], [two], GENERATE_UNTIL)
    >>> from evalcore.stats import Array
    >>> check_metric(lambda batch, options: Floats(Array([0.0] * 2)), [two], GENERATE_UNTIL)
    Traceback (most recent call last):
    AssertionError: a batch scores one row per document: expected 1 rows, got 2
    """
    require_known("output type", [output_type], BUILDERS)
    score = metric.score if isinstance(metric, Metric) else metric
    bounds = metric.bounds if isinstance(metric, Metric) else (-np.inf, np.inf)
    for batch in batches:
        n = len(batch.samples)
        whole = _list_cells(score, BUILDERS[output_type], batch, given, bounds)
        for order in (range(n)[::-1], *([i] for i in range(n))):
            at = np.array(list(order), np.int64)
            part = _list_cells(score, BUILDERS[output_type], _pick_documents(batch, at), given, bounds)
            for key, cells in part.items():
                _check_cells(whole[key], cells, key, n, len(at))
        _check_results(score, BUILDERS[output_type], batch, given, bounds, whole)


def _check_results(
    score: Callable[..., Emitted],
    build: Build,
    batch: Batch,
    given: Options,
    bounds: tuple[float, float],
    whole: dict[int, dict[str, Cell]],
) -> None:
    built = build(batch)
    for i, key in enumerate(batch.keys.tolist()):
        if i not in built.problems:
            alone = _list_cells(score, build, batch_of([built[i]]), given, bounds)
            _check_cells(whole[key], alone[key], key, 0, 1)


def _list_cells(
    score: Callable[..., Emitted],
    build: Build,
    batch: Batch,
    given: Options,
    bounds: tuple[float, float],
) -> dict[int, dict[str, Cell]]:
    """List every emitted metric's cell, by document key."""
    built = build(batch)
    before = fingerprint(batch), fingerprint(built)
    emitted = score(built, given)
    assert (fingerprint(batch), fingerprint(built)) == before, "a metric leaves what it is given unchanged"
    named = dict(emitted) if isinstance(emitted, Mapping) else {"": emitted}
    problems = built.problems
    out: dict[int, dict[str, Cell]] = {int(key): {} for key in batch.keys}
    for name, found in named.items():
        marks = found if isinstance(found, Marks) else Marks(found, {})
        length = len(as_objects(marks.rows))
        assert length == len(batch.keys), (
            f"a batch scores one row per document: expected {len(batch.keys)} rows, got {length}"
        )
        for i, key in enumerate(batch.keys.tolist()):
            status = UNSCORABLE if i in problems else marks.missing.get(i, (OK, ""))[0]
            out[key][name] = (status, fingerprint(score_at(marks.rows, i)) if status == OK else None)
            if status == OK and isinstance(marks.rows, Floats):
                value = float(marks.rows.values.floats[i])
                inside = np.isnan(value) or bounds[0] <= value <= bounds[1]
                assert inside, f"a score keeps its bounds: expected {bounds}, got {value} - at doc {key}"
    return out


def _check_cells(whole: dict[str, Cell], part: dict[str, Cell], key: int, n: int, m: int) -> None:
    for name in {*whole, *part}:
        one, two = whole.get(name, (NOT_EMITTED, None)), part.get(name, (NOT_EMITTED, None))
        law = "document order is irrelevant" if n == m else "a batch scores as its documents do one by one"
        assert one == two, f"{law}: expected {two}, got {one} - at doc {key}{' ' + name if name else ''}"


def _pick_documents(batch: Batch, at: Ints64) -> Batch:
    """Pick these documents of a batch, in this order."""
    spans = [np.arange(batch.offsets[i], batch.offsets[i + 1]) for i in at]
    flat = np.concatenate([np.zeros(0, np.int64), *spans])
    return Batch(
        batch.task,
        batch.filter,
        tuple(batch.samples[i] for i in at),
        batch.keys[at],
        tuple(batch.replies[i] for i in flat),
        np.concatenate([[0], np.cumsum([len(span) for span in spans])]).astype(np.int64),
        batch.fell_back[flat],
    )


def check_reducer(reducer: Reduce, repeats: Iterable[Repeats], *, itself: bool = True) -> None:
    """Check that a reducer gives one score per document, the same alone and in any order; inputs stay unchanged.

    With ``itself`` (an average, a choice) one repeat reduces to itself; not so for a variance.

    >>> from evalcore.core.repeats.reducers import mean, variance
    >>> check_reducer(mean, [Repeats(np.array([[0.25, 0.5], [1.0, np.nan]]))])
    >>> check_reducer(variance, [Repeats(np.array([[0.25]]))])
    Traceback (most recent call last):
    AssertionError: one repeat reduces to itself: expected [0.25], got [0.0]
    """
    for given in repeats:
        whole = _reduce_checked(reducer, given)
        n = len(given.scores)
        for at in (np.arange(n)[::-1], *(np.array([i]) for i in range(n))):
            part = _reduce_checked(reducer, _pick_rows(given, at))
            same = fingerprint(whole[at]) == fingerprint(part)
            assert same, f"a document reduces by itself: expected {part.tolist()}, got {whole[at].tolist()}"
        if itself:
            _check_itself(reducer, given)


def _reduce_checked(reducer: Reduce, given: Repeats) -> Floats64:
    before = fingerprint(given)
    out = np.asarray(reducer(given), np.float64)
    assert fingerprint(given) == before, "a reducer leaves what it is given unchanged"
    assert out.shape == (len(given.scores),), (
        f"one score per document: expected {len(given.scores)} scores, got shape {out.shape}"
    )
    return out


def _pick_rows(given: Repeats, at: Ints64) -> Repeats:
    answers = [given.answers[i] for i in at] if given.answers else ()
    return Repeats(given.scores[at], answers, None if given.fell_back is None else given.fell_back[at])


def _check_itself(reducer: Reduce, given: Repeats) -> None:
    scores = given.scores[:, :1]
    fell = None if given.fell_back is None else given.fell_back[:, :1]
    once = _reduce_checked(reducer, Repeats(scores, [answers[:1] for answers in given.answers], fell))
    assert fingerprint(once) == fingerprint(scores[:, 0].copy()), (
        f"one repeat reduces to itself: expected {scores[:, 0].tolist()}, got {once.tolist()}"
    )


def check_filter(filter_fn: FilterFn, units: Sequence[Sequence[object]], docs: Sequence[Sample] | None = None) -> None:
    """Check a filter of document scope: a document does not depend on the others; inputs stay unchanged.

    >>> from evalcore.core.filters.rewrite import lowercase
    >>> check_filter(lowercase(), [["A", "b"], ["C"]])
    >>> check_filter(lambda given, docs: replies([[len(given.values)] for _ in docs]), [["a"], ["b"]])
    Traceback (most recent call last):
    AssertionError: a document is filtered by itself: expected [1], got [2] - at doc 0
    """
    known = [Sample(i) for i in range(len(units))] if docs is None else list(docs)
    whole, rules = _filter_checked(filter_fn, units, known)
    for i, unit in enumerate(units):
        alone, rule = _filter_checked(filter_fn, [unit], known[i : i + 1])
        assert fingerprint((alone[0], rule[0])) == fingerprint((whole[i], rules[i])), (
            f"a document is filtered by itself: expected {alone[0]}, got {whole[i]} - at doc {known[i].doc_id}"
        )
    turned, _ = _filter_checked(filter_fn, list(units)[::-1], known[::-1])
    assert fingerprint(turned[::-1]) == fingerprint(whole), "document order is irrelevant to a filter"


def _filter_checked(
    filter_fn: FilterFn, units: Sequence[Sequence[object]], docs: Sequence[Sample]
) -> tuple[list[list[object]], list[list[object]]]:
    given = replies(units)
    before = fingerprint(given), fingerprint(docs)
    out = filter_fn(given, docs)
    assert (fingerprint(given), fingerprint(docs)) == before, "a filter leaves what it is given unchanged"
    assert len(out.offsets) == len(units) + 1, (
        f"a filter keeps its documents: expected {len(units)}, got {len(out.offsets) - 1}"
    )
    return nested(out), nested(Replies(out.rules.tolist(), out.offsets, out.rules))
