"""Laws of hosts: however rows are split into batches or documents onto ranks, results are the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pyarrow
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

import evalcore
from evalcore import GENERATE_UNTIL, Answer, Failure, Generate, Instance, MetricSpec, Sample, Scored, Task, score_task
from evalcore.core.records.frozen_dict import thaw_dict
from evalcore.scale import ScorePartial, gather_partials, merge, merge_partials, write_partial
from evalcore.shell.run.run_result import RunResult

NO_SHRINK = (Phase.explicit, Phase.reuse, Phase.generate)
LAW = settings(max_examples=6, deadline=None, phases=NO_SHRINK, suppress_health_check=list(HealthCheck))
ERROR = "__inference_error__"
SCHEMA = pyarrow.schema(
    [
        ("n", pyarrow.int64()),
        ("reply", pyarrow.list_(pyarrow.string())),
        ("gold", pyarrow.string()),
        ("page", pyarrow.int64()),
        (ERROR, pyarrow.string()),
    ]
)
KEYS = {"answer": "reply", "gold": "gold", "id": "n", "cluster": "page", "reducer": ["mean", "pass@2"]}
WORDS = st.sampled_from(("a", "b", "a b", ""))
CASES = st.lists(
    st.tuples(st.lists(WORDS, min_size=2, max_size=2), WORDS, st.integers(0, 3), st.sampled_from((None, "", "lost"))),
    min_size=1,
    max_size=15,
)


def text(result: RunResult) -> str:
    return json.dumps(thaw_dict(result.results))


def make_rows(cases: list[tuple[list[str], str, int, str | None]], *, named: bool) -> list[dict[str, object]]:
    return [
        {"n": f"q{at}" if named else 3 * at - 9, "reply": None if why else said, "gold": gold, "page": page, ERROR: why}
        for at, (said, gold, page, why) in enumerate(cases)
    ]


@pytest.mark.parametrize("named", [False, True])
@LAW
@given(CASES, st.randoms(use_true_random=False))
@example([(["a", "b"], "a", 0, "lost")] * 2, Random(0))
def test_batches_are_their_table(named, cases, random):
    """One, seven or as many batches as rows, in any order, some of them twice: the bytes of ``score``.

    Documents are in the order of their ids, texts in that of their hashes: what is drawn, as the error of a median in
    clusters, and warnings that number documents, are those of a table in this order.
    """
    metrics = ["exact_match", 'f1={"aggregation": "median"}']
    keys = {**KEYS, "cluster": None} if named else KEYS
    rows = make_rows(cases, named=named)
    schema = SCHEMA.set(0, pyarrow.field("n", pyarrow.string())) if named else SCHEMA
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        want = evalcore.score(path, metric=metrics, error=ERROR, **keys)
    score, shuffled = ScorePartial(name="t", metric=metrics, **keys), random.sample(rows, len(rows))
    for count in (1, 7, len(rows)):
        made = [score(pyarrow.Table.from_pylist(shuffled[at::count], schema)) for at in range(count)]
        made += random.sample(made, min(3, count))
        random.shuffle(made)
        got = merge_partials(made)
        assert (text(got), got.warnings, got.bounds) == (text(want), want.warnings, want.bounds)


def score_some(cases: list[tuple[list[str], str, int, str | None]], places: list[int]) -> Scored:
    task = Task(
        "t",
        GENERATE_UNTIL,
        (MetricSpec("exact_match", reducers=("mean", "pass@2")), MetricSpec("f1", "median", "mean")),
    )
    answers = [
        Answer(Instance("t", at, 0, Generate("?"), 2), (Failure(why),) * 2 if why else tuple(said))
        for at in places
        for said, _, _, why in [cases[at]]
    ]
    return score_task(task, [Sample(at, cases[at][1], cluster=cases[at][2]) for at in places], answers)


@LAW
@given(CASES, st.randoms(use_true_random=False))
def test_ranks_are_one_process(cases, random):
    """One, seven or fifty ranks, padded so that all have as many documents, through files in any order."""
    everything = list(range(len(cases)))
    want = gather_partials(score_some(cases, everything))
    assert isinstance(want, RunResult)
    for world in (1, 7, 50):
        share = -(-len(cases) // world)
        padded = (everything * world)[: share * world]
        with TemporaryDirectory() as folder:
            ranks = random.sample(range(world), world)
            files = [
                write_partial(folder, score_some(cases, sorted(set(padded[rank::world]))), rank=rank, world=world)
                for rank in ranks
            ]
            assert text(merge(folder)) == text(merge(files)) == text(want)
