"""Laws of ranks: scores that several processes made and one gathers are those of a single process, to the bit."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from itertools import islice

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from evalcore import (
    EVALCORE,
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    EvalError,
    MetricSpec,
    Pipeline,
    Sample,
    Scored,
    Step,
    Tables,
    Task,
    TaskReport,
    build_report,
    merge_scored,
    report_task,
    score_task,
)
from evalcore.lm_eval import LM_EVAL_0_4_13, lm_eval_results
from evalcore.stats import Inference, Resampling
from evalcore.testing import Case, cases, fingerprint

LAW = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
DRAWN = Inference(resampling=Resampling(30))


def lengths(doc: dict[str, object], results: list[str]) -> dict[str, object]:
    """User code that emits a metric for some documents only."""
    return {"length": float(len(str(results[0]))), **({"odd": 1.0} if len(str(results[0])) % 2 else {})}


def top(items: Sequence[float]) -> float:
    return max(items)


OWN = Task("own", GENERATE_UNTIL, (MetricSpec("length", "median"), MetricSpec("odd", top)), (), lengths)
CORPUS = Task("gen", GENERATE_UNTIL, tuple(map(MetricSpec, ("bleu", "chrf", "ter", "exact_match"))))
VOTES = Task(
    "gen",
    GENERATE_UNTIL,
    (MetricSpec("exact_match"), MetricSpec("f1")),
    (Pipeline("maj", (Step.of("majority_vote"), Step.of("take_first"))), Pipeline("first", (Step.of("take_first"),))),
    ragged=True,
)
KINDS = {
    "choices": cases(MULTIPLE_CHOICE),
    "texts": cases(GENERATE_UNTIL),
    "corpora": cases(GENERATE_UNTIL, task=CORPUS),
    "repeats, reduced": cases(GENERATE_UNTIL, ragged=True),
    "repeats, filtered": cases(GENERATE_UNTIL, task=VOTES, ragged=True),
    "own code": cases(GENERATE_UNTIL, task=OWN),
    "likelihoods": cases(LOGLIKELIHOOD),
    "whole texts": cases(LOGLIKELIHOOD_ROLLING),
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def score(case: Case, samples: Sequence[Sample], tables: Tables) -> Scored:
    """What one rank does with its documents; it knows the answers to no others."""
    mine = {one.doc_id for one in samples}
    return score_task(case.task, samples, [one for one in case.answers if one.doc_id in mine], tables=tables)


def deal(case: Case, rank: int, world_size: int) -> list[Sample]:
    """lm-eval's split: every world_size-th document, from the rank's own number on."""
    return list(islice(sorted(case.samples, key=lambda one: one.doc_id), rank, None, world_size))


def pad(case: Case, mine: Sequence[Sample], count: int) -> list[Sample]:
    """Documents of other ranks, from the start, until all ranks hold equally many."""
    others = [one for one in case.samples if one not in mine]
    return [*mine, *others[: max(0, count - len(mine))]]


def carried(scored: Scored) -> Scored:
    """What arrives at another process."""
    return pickle.loads(pickle.dumps(scored))


def closed(scored: Scored, tables: Tables) -> tuple[TaskReport, bytes]:
    report = report_task(scored, tables=tables, inference=DRAWN)
    return report, msgspec.json.encode(lm_eval_results(build_report([report], tables=tables)))


def in_clusters(case: Case, named: bool) -> Case:
    return replace(
        case, samples=tuple(replace(one, cluster=f"c{one.doc_id % 4}" if named else None) for one in case.samples)
    )


def fit_policy(case: Case, tables: Tables) -> Case:
    """lm-eval's F1 takes two classes, whatever ``average`` says (E16, E46)."""
    kept = tuple(one for one in case.task.metrics if not (tables.as_host and "average" in one.options))
    return replace(case, task=replace(case.task, metrics=kept))


@EVERY_KIND
@pytest.mark.parametrize("tables", [EVALCORE, LM_EVAL_0_4_13], ids=lambda tables: tables.name)
@LAW
@given(st.data())
def test_gathered_ranks_are_one_process(kind: str, tables: Tables, data: st.DataObject) -> None:
    """Any number of ranks, some without a document, padded, pickled and gathered in any order."""
    case = in_clusters(fit_policy(data.draw(KINDS[kind]), tables), data.draw(st.booleans()))
    size = data.draw(st.integers(1, 8))
    alone = closed(score(case, case.samples, tables), tables)
    dealt = [deal(case, rank, size) for rank in range(size)]
    longest = len(dealt[0])
    padded = [pad(case, mine, longest) if data.draw(st.booleans()) else mine for mine in dealt]
    parts = [score(case, mine, tables) for mine in padded]
    again = [score(case, mine[-1:], tables) for mine in dealt if mine and data.draw(st.booleans())]  # own padding
    gathered = data.draw(st.permutations([*map(carried, parts), *again]))
    report, text = closed(merge_scored(gathered), tables)
    assert text == alone[1]
    assert fingerprint(report) == fingerprint(alone[0])


@EVERY_KIND
@LAW
@given(st.data())
def test_gathering_in_a_tree_is_gathering_at_once(kind: str, data: st.DataObject) -> None:
    """Nodes may merge their own ranks before they send, in whatever grouping, and a rank may be sent twice."""
    case = data.draw(KINDS[kind])
    parts = [score(case, deal(case, rank, 4), EVALCORE) for rank in range(4)]
    left = merge_scored([carried(merge_scored(parts[:2])), carried(merge_scored(parts[2:]))])
    right = merge_scored([parts[3], merge_scored([parts[1], carried(merge_scored([parts[2], parts[0]]))]), parts[1]])
    assert fingerprint(left) == fingerprint(right) == fingerprint(score(case, case.samples, EVALCORE))


@LAW
@given(cases(GENERATE_UNTIL, task=OWN, failures=False, max_docs=4))
def test_ranks_that_disagree_are_refused(case: Case) -> None:
    """A document that two ranks scored differently is an error that names it, whichever comes first."""
    first, *_ = sorted(case.samples, key=lambda one: one.doc_id)
    whole = score(case, case.samples, EVALCORE)
    others = tuple(
        replace(one, replies=(f"{one.replies[0]}!",)) if one.doc_id == first.doc_id else one for one in case.answers
    )
    wrong = score(replace(case, answers=others), [first], EVALCORE)
    for pair in ((whole, wrong), (wrong, whole)):
        with pytest.raises(EvalError, match=f"two different ones: .* - at doc {first.doc_id}"):
            merge_scored(map(carried, pair))
