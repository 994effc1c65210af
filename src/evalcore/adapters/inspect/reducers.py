"""evalcore's reducers over Inspect's epochs: several scores of one sample become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING

import numpy as np

from evalcore.core.records.errors import EvalError, require
from evalcore.core.repeats.reducers import reducer
from evalcore.core.repeats.repeat import Repeats

if TYPE_CHECKING:
    from inspect_ai.scorer import Score, ScoreReducer, Value


def evalcore_reducers(*names: str) -> list[ScoreReducer]:
    """Make Inspect reducers of evalcore's: ``Epochs(4, evalcore_reducers("mean", "pass@2", "maj@3"))``.

    If one is undefined (pass@5 of three epochs) the sample is unscored, not 0.
    """
    require("inspect_ai", "inspect")
    return [_make_reducer(name) for name in names]


def _make_reducer(name: str) -> ScoreReducer:
    from inspect_ai.scorer import Score, score_reducer, value_to_float

    reduce, to_float = reducer(name), value_to_float()
    if reduce.reduce is None:
        raise EvalError("collect makes lists, which no metric of Inspect averages; use Inspect's own collect")

    def number(values: Sequence[object], scores: Sequence[Score]) -> float:
        floats = [nan if value is None else to_float(value) for value in values]  # type: ignore[arg-type]
        answers = [] if all(one.answer is None for one in scores) else [[one.answer or "" for one in scores]]
        fell = np.array([[bool((one.metadata or {}).get("fell_back")) for one in scores]])
        return float(reduce(Repeats(np.array([floats]), answers, fell))[0])

    @score_reducer(name=f"evalcore/{name}")  # a name of its own: Inspect's "mean" stays Inspect's
    def make() -> ScoreReducer:
        def reduced(scores: list[Score]) -> Score:
            keyed = [one.value for one in scores if isinstance(one.value, Mapping)]
            value: Value = number([one.value for one in scores], scores) if not keyed else {}
            if keyed:
                cells = [one.value if isinstance(one.value, Mapping) else {} for one in scores]
                value = {key: number([cell.get(key) for cell in cells], scores) for key in keyed[0]}
            same = len({one.answer for one in scores}) == 1
            return Score(value=value, answer=scores[0].answer if same else None, metadata=scores[0].metadata)

        return reduced

    return make()
