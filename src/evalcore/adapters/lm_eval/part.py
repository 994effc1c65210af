"""One task's filled instances to its scores and its rows of the sample log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from evalcore.adapters.lm_eval.documents import (
    make_process_results,
    read_filled,
    read_samples,
    see_documents,
    tabulate_replies,
)
from evalcore.adapters.lm_eval.host import LmTask
from evalcore.adapters.lm_eval.results import log_rows
from evalcore.adapters.lm_eval.tasks import is_known, list_metrics, read_task
from evalcore.core.pipeline import score_task
from evalcore.core.records.score import Scored
from evalcore.core.records.task import MetricSpec
from evalcore.core.tables import EVALCORE, Tables

Plain = dict[str, object]


class ScoredPart(Struct, frozen=True):
    """A task's scores over some of its documents, and their rows in the sample log."""

    scored: Scored
    rows: tuple[Plain, ...] = ()


def score_one(
    name: str,
    task: LmTask,
    tables: Tables = EVALCORE,
    log_samples: bool = False,
    samples: Mapping[str, Sequence[int]] | None = None,
    cluster: str | Mapping[str, str] | None = None,
) -> ScoredPart:
    """Score one task's filled instances: what one of several ranks gives to ``gather_ranks``."""
    filled = read_filled(name, task)
    made = read_task(name, task, tables, [{one.request_type for one in asked} for asked in filled.asked.values()])
    if not is_known(task, tables):
        made = replace(made, process_results=make_process_results(task, filled))
    field = cluster.get(name) if isinstance(cluster, Mapping) else cluster
    documents, answers = read_samples(name, task, filled, tables, field), tabulate_replies(name, filled)
    scored = score_task(made, documents, answers, tables=see_documents(tables, filled), keep_replies=log_samples)
    if made.process_results is not None:
        scored = _declare_metrics(scored, list_metrics(task, tables))
    if not log_samples:
        return ScoredPart(scored)
    numbers = _number_docs(filled.docs, (samples or {}).get(name), tables)
    rows = log_rows(scored, task, filled, documents, numbers)
    return ScoredPart(replace(scored, provenance=()), tuple(rows))


def _declare_metrics(scored: Scored, specs: Sequence[MetricSpec]) -> Scored:
    """Declare the metrics that the task knows now; its code may have met some while it ran."""
    by_name = {spec.name: spec for spec in specs}
    columns = tuple(replace(one, spec=one.spec or by_name.get(one.key.metric)) for one in scored.columns)
    known = {spec.name for spec in scored.task.metrics}
    late = tuple(spec for spec in specs if spec.name not in known)
    return replace(scored, task=replace(scored.task, metrics=scored.task.metrics + late), columns=columns)


def _number_docs(docs: Mapping[int, object], chosen: Sequence[int] | None, tables: Tables) -> Mapping[int, int]:
    """Number documents as in their split. lm-eval takes chosen ones in order, but names them as they were
    given: under its policy so do we.
    """
    if not chosen:
        return {doc_id: doc_id for doc_id in docs}
    listed = chosen if tables.as_host else sorted(set(chosen))
    return {doc_id: listed[doc_id] for doc_id in docs}
