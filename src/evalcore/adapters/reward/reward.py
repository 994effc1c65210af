"""A metric as a reward for training: a completion and its gold to a number, by the path that scores a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr

from evalcore.adapters.texts import (
    FilterLike,
    MetricLike,
    list_items,
    make_text_task,
    read_completion,
    read_gold,
    read_metric,
)
from evalcore.core.aggregate.stderr import evaluate
from evalcore.core.aggregate.task_report import aggregation_of
from evalcore.core.answers.batch import Batch, take_documents
from evalcore.core.answers.result import GenResult
from evalcore.core.answers.text import GenBatch, gen_batch
from evalcore.core.filters.chain import chain, scope_of
from evalcore.core.filters.reply import FELL_BACK, FilterFn, Replies
from evalcore.core.metrics.custom import own_metric
from evalcore.core.metrics.metric import Emitted, Marks
from evalcore.core.records.column import EMPTY
from evalcore.core.records.errors import EvalError
from evalcore.core.records.outcome import FAILED, UNSCORABLE, Failed, Ok, Outcome, Unscorable
from evalcore.core.records.request import Options, Sample
from evalcore.core.records.row import Floats, Rows, take_rows
from evalcore.core.records.score import ScoredColumn
from evalcore.core.records.task import MetricKey, Task
from evalcore.core.tables import EVALCORE, Tables, pipelines_of


class Reward(Struct, frozen=True, eq=False):
    """A reward function without state that can be sent to other processes; ``make_reward`` makes one.

    ``unscorable`` is the reward of a completion without a score, ``scale`` a factor on all other rewards.
    """

    task: Task
    unscorable: float = 0.0
    scale: float = 1.0
    tables: Tables = EVALCORE
    apply: FilterFn | None = None
    score: Callable[[GenBatch, Options], Emitted] | None = None

    def __post_init__(self) -> None:
        task, (spec, *_) = self.task, self.task.metrics
        own = None if spec.function is None else own_metric(spec.function, (GenResult,), spec.options)
        force_setattr(self, "apply", chain(pipelines_of(task, self.tables)[0], self.tables.filters))
        force_setattr(self, "score", (own or self.tables.metrics[task.output_type][spec.name]).score)

    def __reduce__(self) -> tuple[Callable[..., Reward], tuple[object, ...]]:
        return Reward, (self.task, self.unscorable, self.scale, self.tables)

    def __call__(self, completion: object, gold: object) -> float:
        return self.value(self.outcome(completion, gold))

    @property
    def name(self) -> str:
        """The name of the metric."""
        return self.task.metrics[0].name

    def rewards(self, completions: Sequence[object], golds: Sequence[object]) -> list[float]:
        """Reward many completions, in their order."""
        return [
            self.value(one) for one in self.outcomes(list_items(completions, "completions"), list_items(golds, "golds"))
        ]

    def value(self, outcome: Outcome) -> float:
        """Convert an outcome to a reward."""
        if isinstance(outcome, Ok) and isinstance(outcome.score, float):
            return outcome.score * self.scale
        return self.unscorable

    def outcome(self, completion: object, gold: object) -> Outcome:
        """Score a completion, or say why it has no score."""
        return self.outcomes((completion,), (gold,))[0]

    def outcomes(self, completions: Sequence[object], golds: Sequence[object]) -> list[Outcome]:
        """Score each completion, or say why it has no score."""
        if len(completions) != len(golds):
            raise EvalError(f"expected a gold for every completion, got {len(golds)} for {len(completions)}")
        texts = [read_completion(one) for one in completions]
        lost: dict[int, Outcome] = {i: text for i, text in enumerate(texts) if isinstance(text, Failed)}
        samples = [Sample(i, read_gold(gold)) for i, gold in enumerate(golds) if i not in lost]  # type: ignore[arg-type]
        scored = lost | _score_texts(self, [text for text in texts if not isinstance(text, Failed)], samples)
        return [scored[i] for i in range(len(texts))]


def make_reward(
    metric: MetricLike,
    filters: Iterable[FilterLike] = (),
    *,
    unscorable: float = 0.0,
    scale: float = 1.0,
    tables: Tables = EVALCORE,
    **given: object,
) -> Reward:
    """Make a reward of a metric of texts, the filters before it and, by name, the metric's options.

    >>> reward = make_reward("exact_match", [{"function": "regex", "regex_pattern": "([0-9]+)", "group_select": -1}])
    >>> reward("2 + 2 = 4", "4"), reward("no idea", "4"), reward(None, "4")
    (1.0, 0.0, 0.0)
    >>> make_reward("f1", unscorable=-1.0).rewards(["the big cat", "a dog"], ["cat", None])
    [0.6666666666666666, -1.0]
    """
    spec = read_metric(metric, given)
    task = make_text_task([spec], filters, name="reward", tables=tables)
    if len(task.filters) > 1 or any(pipeline.metrics for pipeline in task.filters) or spec.reducers:
        raise EvalError(
            "expected one metric, at most one pipeline and no reducers: a reward is one number of one reply"
        )
    if scope_of(pipelines_of(task, tables)[0], tables.filters) == "task":
        raise EvalError("a reward sees one completion, and a filter looks at all of them; give it scope='document'")
    entry = None if spec.function is not None else tables.metrics[task.output_type][spec.name]
    higher = spec.higher_is_better if spec.higher_is_better is not None or entry is None else entry.higher_is_better
    if higher is False and scale > 0:
        raise EvalError(
            f"{spec.name} is better when it is lower: as a reward it would teach the opposite; use scale=-1"
        )
    return Reward(task, float(unscorable), float(scale), tables)


def count_unscored(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Count the outcomes that are no score, by reason.

    >>> count_unscored(make_reward("exact_match").outcomes(["4", None, "5"], ["4", "4", None]))
    {'no answer': 1, 'expected a gold answer, got none': 1}
    """
    reasons = (getattr(one, "reason", "not emitted") for one in outcomes if not isinstance(one, Ok))
    return dict(Counter(reason.partition(" - at ")[0] for reason in reasons))


# --- filters, batch, metric: the path of a task without its table of answers -----------------------------------------


def _score_texts(reward: Reward, texts: Sequence[str], samples: Sequence[Sample]) -> dict[int, Outcome]:
    """Score each text, by document."""
    if not samples or reward.apply is None or reward.score is None:
        return {}
    task, spec, one_each = reward.task, reward.task.metrics[0], np.arange(len(samples) + 1)
    left = reward.apply(Replies(texts, one_each, np.zeros(len(samples), np.int8)), samples)
    keys = np.array([sample.doc_id for sample in samples])
    batch = Batch(task.name, "none", samples, keys, left.values, left.offsets, left.rules == FELL_BACK)
    gone: dict[int, Outcome] = {}
    if left.offsets is not one_each and left.offsets.tolist() != one_each.tolist():
        gone = dict.fromkeys(keys.tolist(), Unscorable("expected one reply from the filters, got none or several"))
        batch = take_documents(batch, left.counts == 1)
    built = gen_batch(batch)
    emitted = reward.score(built, spec.options)
    if isinstance(emitted, Mapping):
        raise EvalError(f"expected one number for a reward, got several: {', '.join(emitted)}")
    marks = emitted if isinstance(emitted, Marks) else Marks(emitted, {})
    missing = {**marks.missing, **{i: (UNSCORABLE, reason) for i, reason in built.problems.items()}}
    value_at = _make_getter(reward, marks.rows)
    return gone | {doc.doc_id: _make_outcome(value_at, i, missing.get(i)) for i, doc in enumerate(batch.samples)}


def _make_outcome(value_at: Callable[[int], float | None], i: int, missing: tuple[int, str] | None) -> Outcome:
    if missing is not None:
        return Failed(missing[1]) if missing[0] == FAILED else Unscorable(missing[1])
    value = value_at(i)
    return Ok(value) if value is not None and isfinite(value) else Unscorable(f"expected a finite score, got {value}")


def _make_getter(reward: Reward, rows: Rows) -> Callable[[int], float | None]:
    """Make the function that gets a document's score as a number; counts, as BLEU's, are closed for each
    document alone.
    """
    if isinstance(rows, Floats):
        values: list[float] = rows.values.floats.tolist()
        return values.__getitem__
    spec = reward.task.metrics[0]
    aggregation = aggregation_of(reward.task, ScoredColumn(MetricKey(spec.name), EMPTY, spec), reward.tables)
    return lambda i: evaluate(aggregation, aggregation.summarise(take_rows(rows, np.array([i])), spec.options))[0]
