"""Whether more is better, as lm-eval's results say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalcore.core.records.report import Directions
from evalcore.core.records.score import ScoredColumn
from evalcore.core.records.task import MetricSpec, Task

REGISTERED: Mapping[str, bool] = {
    **dict.fromkeys(("acc", "acc_norm", "acc_mutual_info", "acc_bytes", "acc_all", "exact_match", "likelihood"), True),
    **dict.fromkeys(("mcc", "f1", "bleu", "chrf", "chrf++", "bypass"), True),
    **dict.fromkeys(("perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte", "ter", "brier_score"), False),
}
"""The metrics that lm-eval registers (lm_eval/api/metrics.py)."""


def list_directions(task: Task, columns: Sequence[ScoredColumn]) -> Directions:
    """List the direction of every metric that a task declares, emitted or not, and then of what these emit.

    None if neither the task nor lm-eval's registry says; what a task emits without declaring it is not listed.

    >>> from evalcore.core.records.request import GENERATE_UNTIL
    >>> list_directions(Task("t", GENERATE_UNTIL, (MetricSpec("ter"), MetricSpec("pass_at_k"))), ())
    (('ter', False), ('pass_at_k', None))
    """
    declared = {spec.name: _direct(spec) for spec in task.metrics if len(spec.reducers) < 2}
    return tuple((declared | {one.key.metric: _direct(one.spec) for one in columns if one.spec is not None}).items())


def _direct(spec: MetricSpec) -> bool | None:
    return REGISTERED.get(spec.name) if spec.higher_is_better is None else spec.higher_is_better
