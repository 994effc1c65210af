"""Policies as tables: the default ones, and lm-eval 0.4.13's with an entry replaced for each of its errata."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace
from pyrsistent import PMap, pmap

from evalcore.core.aggregate.aggregations import AGGREGATIONS
from evalcore.core.filters.chain import FILTERS
from evalcore.core.groups.averages import AVERAGES
from evalcore.core.groups.tree import leaves
from evalcore.core.lm_eval.aggregations import as_lm_eval, from_callable_without_error, resampling_of
from evalcore.core.lm_eval.groups import POOLED_MEAN, over_paths, task_size
from evalcore.core.lm_eval.metrics import GENERATION, LM_METRICS, list_directions, majority_vote
from evalcore.core.metrics.dispatch import SCORERS
from evalcore.core.metrics.process_results import from_process_results
from evalcore.core.records.request import GENERATE_UNTIL
from evalcore.core.records.task import Pipeline, Task
from evalcore.core.tables import EVALCORE, TAKE_FIRST, Tables, sees_all


def take_first(task: Task, tables: Tables) -> Pipeline:
    """lm-eval's implicit filter. A reducer, of which lm-eval knows none, sees the replies that it awaits."""
    awaited = any(set(spec.reducer_names) - {"first"} or sees_all(spec, task, tables) for spec in task.metrics)
    return Pipeline("none") if awaited else TAKE_FIRST


LM_EVAL_0_4_13 = replace(
    EVALCORE,
    name="lm-eval-0.4.13",
    filters=FILTERS.set("majority_vote", replace(FILTERS["majority_vote"], make=majority_vote)),
    scorers=SCORERS.set(GENERATE_UNTIL, GENERATION),
    metrics=LM_METRICS,
    aggregations=pmap({name: as_lm_eval(name) for name in AGGREGATIONS}),
    process_results=partial(from_process_results, finite=False),
    resampling_of=resampling_of,
    averages=AVERAGES.set("leaves", over_paths),
    group_rules=EVALCORE.group_rules.set("mean", POOLED_MEAN),
    group_callable=POOLED_MEAN,
    size_of=task_size,
    members=leaves,
    from_callable=from_callable_without_error,
    default_pipeline=take_first,
    directions=list_directions,
    unreduced="mean",
    as_host=True,
)

POLICIES: PMap[str, Tables] = pmap({"evalcore": EVALCORE, "lm-eval-0.4.13": LM_EVAL_0_4_13})
