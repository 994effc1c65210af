"""The scores of every reply to a question, if lmms-eval has them: their mean, their variance, whether they agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import nan
from statistics import fmean

import numpy as np

from evalcore.adapters.lmms_eval.host import Key, LmmsOutput
from evalcore.adapters.lmms_eval.keys import RankPlace, number_scores
from evalcore.adapters.lmms_eval.numbers import get_score_key, read_number
from evalcore.core.records.array import Array
from evalcore.core.records.column import Column, build_column
from evalcore.core.records.row import Floats
from evalcore.core.records.score import ScoredColumn
from evalcore.core.records.task import MetricKey, MetricSpec
from evalcore.core.repeats.reduce import measure_noise, reduce_repeats

MEAN = "expected_accuracy"
VARIANCE = "internal_variance"
AGREEMENT = "consistency_rate"
VOTE = "consensus_accuracy"
"""lmms-eval's vote on scores, which is left open: a vote is on answers, which are not known any more (E32)."""


def read_repeats(
    output: LmmsOutput, key: Key, documents: Sequence[int | None], where: RankPlace
) -> Iterator[ScoredColumn]:
    """Read the replies' scores under a key, each list at its document; replies without a number do not count."""
    metric, name = key
    lists = getattr(output, "per_sample_metrics", {}).get(key, ())
    if len(lists) != len(documents):  # some questions had too few replies, and nobody says which
        placed = number_scores(output, key, len(lists), None, where)
        documents = [None if at is None else ~at for at in placed]
    score_key = get_score_key(output.task_config)
    found = [(at, _read_replies(one, score_key)) for at, one in zip(documents, lists, strict=True) if at is not None]
    replies = [(at, scores) for at, scores in found if scores]
    if not replies:
        return
    turns = [
        _build_numbers([(at, scores[turn]) for at, scores in replies if turn < len(scores)])
        for turn in range(max(len(scores) for _, scores in replies))
    ]
    spread = min(len(scores) for _, scores in replies), len(turns)
    noise = measure_noise("mean", turns)
    kinds = (
        (MEAN, reduce_repeats("mean", turns), noise, output.task.higher_is_better().get(metric)),
        (VARIANCE, _build_numbers([(at, _find_variance(scores)) for at, scores in replies]), None, False),
        (AGREEMENT, _build_numbers([(at, float(len(set(scores)) == 1)) for at, scores in replies]), None, True),
    )
    for kind, column, noises, higher in kinds:
        spec = MetricSpec(f"{metric}_{kind}", "mean", ("mean",), higher)
        yield ScoredColumn(MetricKey(spec.name, name), column, spec, "mean", spread, noise=noises)


def _read_replies(scores: object, score_key: str) -> list[float]:
    given = scores if isinstance(scores, list | tuple) else ()
    return [number for one in given if (number := read_number(one, score_key)) is not None]


def _find_variance(scores: Sequence[float]) -> float:
    """Find the sample variance; NaN for one reply, which has none."""
    mean = fmean(scores)
    return sum((score - mean) ** 2 for score in scores) / (len(scores) - 1) if len(scores) > 1 else nan


def _build_numbers(scores: Sequence[tuple[int, float]]) -> Column:
    known = [(at, score) for at, score in scores if not np.isnan(score)]
    return build_column([at for at, _ in known], Floats(Array([score for _, score in known])))
