"""An entry of a host's tables that raises, exits, returns nonsense or changes its input costs its own document alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from evalcore.core.aggregate.aggregations import from_callable
from evalcore.core.answers.batch import Batch
from evalcore.core.answers.text import GenBatch
from evalcore.core.explain.trace import trace_document
from evalcore.core.filters.reply import Filter, FilterFn, Replies
from evalcore.core.guard import Step as GuardedStep
from evalcore.core.guard import StepLoss
from evalcore.core.metrics.dispatch import Score, Scores
from evalcore.core.metrics.metric import Metric, score_column
from evalcore.core.pipeline import score_task
from evalcore.core.records.array import Array, Floats64
from evalcore.core.records.column import list_outcomes
from evalcore.core.records.errors import EvalError
from evalcore.core.records.outcome import Failed, Ok, Outcome, Unscorable
from evalcore.core.records.request import GENERATE_UNTIL, Answer, Generate, Instance, Sample
from evalcore.core.records.row import Floats
from evalcore.core.records.score import Scored
from evalcore.core.records.task import MetricSpec, Pipeline, Step, Task
from evalcore.core.repeats.repeat import Repeats
from evalcore.core.tables import EVALCORE, Tables
from evalcore.shell.config.plan import Plan
from evalcore.shell.run.close import close_task

SAID = ["a", "a", "bad", "b", "a"]
BAD = SAID.index("bad")
PIPE = Pipeline("mine", (Step.of("own"), Step.of("take_first")))
Trouble = Callable[[str], object]


def raise_error(text: str) -> object:
    return 1 / (text != "bad")


def leave(text: str) -> object:
    return sys.exit(3) if text == "bad" else 1


def hide(text: str) -> object:
    if text == "bad":
        raise EvalError("expected another text")
    return 1


TROUBLES = pytest.mark.parametrize("trouble", [raise_error, leave, hide])


def score(task: Task, tables: Tables, said: Sequence[str] = SAID, repeats: int = 1, chunk: int = 8192) -> Scored:
    answers = [Answer(Instance("t", i, 0, Generate("?"), repeats), (text,) * repeats) for i, text in enumerate(said)]
    samples = [Sample(i, gold="a") for i in range(len(said))]
    return score_task(task, samples, answers, tables=tables, keep_replies=True, chunk=chunk)


def outcomes(scored: Scored, key: str) -> list[Outcome]:
    return [one for _, one in list_outcomes(scored.column(key))]


def expect_lost(found: Sequence[Outcome], others: Sequence[float] = (1, 1, 0, 1)) -> str:
    """Only the bad document has no score, and its reason says where."""
    lost = found[BAD]
    assert isinstance(lost, Unscorable), found
    assert lost.reason.endswith(f" - at t doc {BAD}")
    assert [one for i, one in enumerate(found) if i != BAD] == list(map(Ok, map(float, others)))
    return lost.reason


def filter_by(change: Callable[[Replies], object]) -> Tables:
    def make() -> FilterFn:
        return lambda given, docs: change(given)  # type: ignore[return-value]  # nonsense on purpose

    return replace(EVALCORE, filters=EVALCORE.filters.set("own", Filter(make)))


@TROUBLES
@pytest.mark.parametrize("chunk", [1, 2, 8192])
def test_a_filter_that_fails_on_a_document(trouble: Trouble, chunk: int) -> None:
    def change(given: Replies) -> Replies:
        list(map(trouble, map(str, given.values)))
        return given

    scored = score(Task("t", GENERATE_UNTIL, filters=(PIPE, Pipeline("raw"))), filter_by(change), chunk=chunk)
    expect_lost(outcomes(scored, "exact_match,mine"))
    assert outcomes(scored, "exact_match,raw")[BAD] == Ok(0.0), "another pipeline is not concerned"
    assert BAD not in scored.provenance[0].keys.ints


@pytest.mark.parametrize(
    "nonsense",
    [
        lambda given: None,
        lambda given: Replies(given.values, given.offsets[1:], given.rules),
        lambda given: given.values.append("more"),
        lambda given: given.offsets.sort() or given.offsets.fill(0),
    ],
    ids=["nothing", "units", "appends", "writes"],
)
def test_a_filter_that_returns_nonsense_or_changes_its_input(nonsense: Callable[[Replies], object]) -> None:
    def change(given: Replies) -> object:
        return nonsense(given) if "bad" in given.values else given

    scored = score(Task("t", GENERATE_UNTIL, filters=(PIPE, Pipeline("raw"))), filter_by(change))
    expect_lost(outcomes(scored, "exact_match,mine"))
    assert outcomes(scored, "exact_match,raw")[BAD] == Ok(0.0)


def test_a_filter_that_always_fails_is_wrong_itself() -> None:
    def change(given: Replies) -> object:
        raise ValueError("torn")

    with pytest.raises(EvalError, match=r"ValueError: torn \(filter 'mine'\) - at t"):
        score(Task("t", GENERATE_UNTIL, filters=(PIPE,)), filter_by(change))


def test_a_document_that_an_entry_fails_on_is_traced() -> None:
    def change(given: Replies) -> Replies:
        list(map(raise_error, map(str, given.values)))
        return given

    answer = Answer(Instance("t", BAD, 0, Generate("?")), ("bad",))
    task = Task("t", GENERATE_UNTIL, filters=(PIPE,))
    [trace] = trace_document(task, Sample(BAD, gold="a"), [answer], tables=filter_by(change))
    assert trace.problem == f"ZeroDivisionError: division by zero (filter 'mine') - at t doc {BAD}"


def measure_by(function: Callable[[GenBatch], object]) -> Scored:
    own = Metric(lambda batch, options: function(batch), options=None)  # type: ignore[arg-type, return-value]
    kinds = EVALCORE.metrics[GENERATE_UNTIL].set("own", own)
    tables = replace(EVALCORE, metrics=EVALCORE.metrics.set(GENERATE_UNTIL, kinds))
    return score(Task("t", GENERATE_UNTIL, (MetricSpec("own"), MetricSpec("exact_match"))), tables)


def are_right(batch: GenBatch) -> Floats:
    return Floats(Array([float(text == "a") for text in batch.predictions]))


@TROUBLES
def test_a_metric_that_fails_on_a_document(trouble: Trouble) -> None:
    def fail(batch: GenBatch) -> Floats:
        list(map(trouble, batch.predictions))
        return are_right(batch)

    scored = measure_by(fail)
    expect_lost(outcomes(scored, "own,none"))
    assert outcomes(scored, "exact_match,none")[BAD] == Ok(0.0), "another metric is not concerned"


@pytest.mark.parametrize(
    "nonsense",
    [
        lambda batch: None,
        lambda batch: Floats(Array([1.0] * 7)),
        lambda batch: Floats(Array([np.nan] * len(batch))),
        lambda batch: batch.predictions.append("more"),
        lambda batch: batch.fell_back.fill(True),
    ],
    ids=["nothing", "rows", "nan", "appends", "writes"],
)
def test_a_metric_that_returns_nonsense_or_changes_its_input(nonsense: Callable[[GenBatch], object]) -> None:
    scored = measure_by(lambda batch: nonsense(batch) if batch.predictions == ("bad",) else _odd(batch))
    expect_lost(outcomes(scored, "own,none"))
    assert outcomes(scored, "exact_match,none")[BAD] == Ok(0.0)


def _odd(batch: GenBatch) -> object:
    return None if "bad" in batch.predictions else are_right(batch)


def test_a_function_of_one_document_that_exits() -> None:
    task = Task("t", GENERATE_UNTIL, (MetricSpec("own", function=lambda prediction, gold: leave(prediction)),))
    found = outcomes(score(task, EVALCORE), "own,none")
    assert found[BAD] == Failed(f"SystemExit: 3 - at t doc {BAD}")
    assert found.count(Ok(1.0)) == 4


def test_process_results_that_exits_or_changes_its_document() -> None:
    def process(doc: dict[str, object], results: list[object]) -> dict[str, object]:
        doc["gold"] = results.clear()
        return {"own": 1.0}

    task = Task("t", GENERATE_UNTIL, (MetricSpec("own"),), process_results=process)
    assert set(outcomes(score(task, EVALCORE), "own,none")) == {Ok(1.0)}
    task = Task(
        "t", GENERATE_UNTIL, (MetricSpec("own"),), process_results=lambda doc, results: {"own": leave(results[0])}
    )
    found = outcomes(score(task, EVALCORE), "own,none")
    assert found[BAD] == Failed(f"SystemExit: 3 - at t doc {BAD}")


@pytest.mark.parametrize("how", ["raises", "nothing", "strangers"])
def test_a_scorer_that_fails_on_a_document(how: str) -> None:
    def scorer(task: Task, specs: Sequence[MetricSpec], batch: Batch) -> Scores:
        rows = Floats(Array([float(text == "a") for text in batch.replies]))
        if "bad" in batch.replies:
            if how == "raises":
                raise KeyError("bad")
            if how == "nothing":
                return None  # type: ignore[return-value]
            batch = replace(batch, keys=batch.keys + 100)
        return (Score("exact_match", score_column(rows, batch, {}), MetricSpec("exact_match")),)

    tables = replace(EVALCORE, scorers=EVALCORE.scorers.set(GENERATE_UNTIL, scorer))
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match"),))
    expect_lost(outcomes(score(task, tables), "exact_match,none"))


@pytest.mark.parametrize("how", ["raises", "short", "writes"])
def test_a_reducer_that_fails_on_a_document(how: str) -> None:
    def reduce(repeats: Repeats) -> Floats64:
        if any("bad" in answers for answers in repeats.answers):
            if how == "raises":
                raise KeyError("bad")
            if how == "writes":
                repeats.scores[:] = 1
            return repeats.scores[:0, 0]
        return repeats.scores[:, 0]

    tables = replace(EVALCORE, reducers=EVALCORE.reducers.set("own", reduce))
    specs = MetricSpec("exact_match", reducers=("own",)), MetricSpec("includes", reducers=("mean",))
    scored = score(Task("t", GENERATE_UNTIL, specs, (Pipeline("raw"),)), tables, repeats=2)
    assert "reducer 'own'" in expect_lost(outcomes(scored, "exact_match,raw")) or how == "short"
    assert outcomes(scored, "includes,raw")[BAD] == Ok(1.0)


def hang(scores: list[float]) -> float:
    while True:
        pass


def fail(scores: list[float]) -> float:
    raise KeyError("gone")


@pytest.mark.parametrize(("function", "told"), [(fail, "KeyError: 'gone'"), (hang, "took longer than 0.6 s")])
def test_an_aggregation_that_fails_or_hangs_costs_its_own_number(function: Callable[..., float], told: str) -> None:
    own = from_callable(function)
    tables = replace(EVALCORE, aggregations=EVALCORE.aggregations.set("own", own))
    specs = MetricSpec("exact_match", aggregation="own"), MetricSpec("includes")
    scored = score(Task("t", GENERATE_UNTIL, specs), tables)
    report = close_task(scored, Plan(model="dummy", tasks=(), doc_timeout=0.01), tables)
    numbers = {str(key): estimate for key, estimate in report.estimates}
    assert numbers["includes,none"].value == 0.8
    assert numbers["exact_match,none"].value is None
    assert told in str(numbers["exact_match,none"].reason)


def test_what_a_guard_stops_is_unscorable_alone() -> None:
    """The core knows no clock: a guard that stops by what it sees gives the same bits every time."""

    def guard(step: GuardedStep, chunk: object) -> Scored | StepLoss:
        docs = chunk.docs  # type: ignore[attr-defined]
        return StepLoss("too long") if any(doc.doc_id == BAD for doc in docs) else step(chunk)  # type: ignore[arg-type]

    answers = [Answer(Instance("t", i, 0, Generate("?")), (text,)) for i, text in enumerate(SAID)]
    samples = [Sample(i, gold="a") for i in range(len(SAID))]
    parts = [score_task(Task("t", GENERATE_UNTIL), samples, answers, guard=guard, chunk=size) for size in (1, 2, 99)]
    assert parts[0] == parts[1] == parts[2]
    assert expect_lost(outcomes(parts[0], "exact_match,none")) == f"too long - at t doc {BAD}"
