"""lm-eval's ``evaluate``, whole or its second half, with evalcore's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from evalcore.adapters.lm_eval.host import LmGroup, LmModel, LmTask, TaskDict, read_task_dict
from evalcore.adapters.lm_eval.part import ScoredPart, score_one
from evalcore.adapters.lm_eval.ranks import gather_ranks, pack_scores
from evalcore.adapters.lm_eval.requests import SEED, ask_model, build_requests, refuse_unfit, seed_shots
from evalcore.adapters.lm_eval.results import Rows, read_trees, write_results
from evalcore.adapters.lm_eval.tasks import refuse_lost_metrics
from evalcore.core.aggregate.inference import Inference
from evalcore.core.lm_eval.policy import POLICIES
from evalcore.core.pipeline import build_report, report_task
from evalcore.core.records.errors import EvalError, require_known
from evalcore.core.tables import Tables

Plain = dict[str, object]


def score_tasks(
    task_dict: TaskDict,
    *,
    policy: str | Tables = "evalcore",
    bootstrap_iters: int | None = None,
    log_samples: bool = True,
    samples: Mapping[str, Sequence[int]] | None = None,
    cluster: str | Mapping[str, str] | None = None,
    inference: Inference | None = None,
) -> Plain:
    """Score tasks whose instances hold the model's replies, as lm-eval's results: the second half of its ``evaluate``.

    ``policy``: right by default, or ``lm-eval-0.4.13`` for lm-eval's own numbers. ``bootstrap_iters``: as in lm-eval, 0
    for no errors; by default the policy's own (formulas if there are any, or lm-eval's 100,000). ``samples`` are the
    documents that were asked for, ``cluster`` the field whose documents belong together (or one for each task).
    """
    tables = _choose_tables(policy)
    tasks, groups = read_task_dict(task_dict)
    given = {name: score_one(name, task, tables, log_samples, samples, cluster) for name, task in tasks.items()}
    return _close_part(tasks, groups, given, tables, bootstrap_iters, log_samples, inference)


def evaluate(
    lm: LmModel,
    task_dict: TaskDict,
    limit: float | None = None,
    samples: Mapping[str, Sequence[int]] | None = None,
    cache_requests: bool = False,
    rewrite_requests_cache: bool = False,
    bootstrap_iters: int | None = None,
    write_out: bool = False,
    log_samples: bool = True,
    system_instruction: str | None = None,
    apply_chat_template: bool | str = False,
    fewshot_as_multiturn: bool = False,
    verbosity: str = "INFO",
    confirm_run_unsafe_code: bool = False,
    *,
    policy: str | Tables = "evalcore",
    cluster: str | Mapping[str, str] | None = None,
    inference: Inference | None = None,
    fewshot_random_seed: int | None = SEED,
) -> Plain | None:
    """Evaluate with lm-eval's arguments: lm-eval asks, evalcore scores. None on ranks other than 0.

    ``fewshot_random_seed`` seeds the few-shot draws of every task as ``simple_evaluate`` does, with the same default:
    the examples are the same. lm-eval's own ``evaluate`` leaves them to chance (E54); so does None, which keeps the
    generators that tasks have. The results record it.
    """
    if limit is not None and samples is not None:
        raise EvalError("expected a limit or samples, got both")
    tables = _choose_tables(policy)
    tasks, groups = read_task_dict(task_dict)
    refuse_unfit(lm, tasks, log_samples=log_samples, run_unsafe_code=confirm_run_unsafe_code)
    for name, task in tasks.items():
        refuse_lost_metrics(name, task, tables)
    seed_shots(tasks, fewshot_random_seed)
    build_requests(
        lm,
        tasks,
        limit,
        samples,
        write_out=write_out,
        apply_chat_template=apply_chat_template,
        cache_requests=cache_requests,
        rewrite_requests_cache=rewrite_requests_cache,
        system_instruction=system_instruction,
        fewshot_as_multiturn=fewshot_as_multiturn,
    )
    ask_model(lm, tasks)
    mine = {name: score_one(name, task, tables, log_samples, samples, cluster) for name, task in tasks.items()}
    given = mine if lm.world_size == 1 else _gather_parts(lm, mine)
    if lm.rank != 0:
        return None
    made = _close_part(tasks, groups, given, tables, bootstrap_iters, log_samples, inference)
    return _record_seed(made, fewshot_random_seed)


def _record_seed(made: Plain, seed: int | None) -> Plain:
    """Record the seed of few-shot draws under the name that it has in ``simple_evaluate``'s results."""
    extras = made["evalcore"]
    return {**made, "evalcore": {**(extras if isinstance(extras, dict) else {}), "fewshot_seed": seed}}


def _gather_parts(lm: LmModel, mine: Mapping[str, ScoredPart]) -> Mapping[str, ScoredPart]:
    """Gather the parts of all ranks on rank 0; a rank's own stay whole, the others' come packed."""
    packed = {name: ScoredPart(pack_scores(part.scored), part.rows) for name, part in mine.items()}
    ranks = lm.gather_object(packed, dst=0)
    if ranks is None:
        return mine
    return {
        name: ScoredPart(gather_ranks([part.scored, *(one[name].scored for one in ranks)]), _sort_rows(ranks, name))  # type: ignore[index]
        for name, part in mine.items()
    }


def _sort_rows(ranks: Sequence[object], name: str) -> tuple[Plain, ...]:
    """Sort rows as one process writes them: filter by filter, by document."""
    rows: list[Plain] = [row for one in ranks for row in one[name].rows]  # type: ignore[index]
    filters = list(dict.fromkeys(row["filter"] for row in rows))
    return tuple(sorted(rows, key=lambda row: (filters.index(row["filter"]), row["doc_id"])))


def _close_part(
    tasks: Mapping[str, LmTask],
    groups: Mapping[str, LmGroup],
    given: Mapping[str, ScoredPart],
    tables: Tables,
    bootstrap_iters: int | None,
    log_samples: bool,
    inference: Inference | None,
) -> Plain:
    how = inference or Inference()
    if bootstrap_iters is not None:
        how = replace(how, resampling=replace(how.resampling, draws=bootstrap_iters))
    closed = [
        report_task(part.scored, inference=how, n_original=len(tasks[name].eval_docs), tables=tables)
        for name, part in given.items()
    ]
    report = build_report(closed, read_trees(groups), inference=how, tables=tables)
    rows: Rows | None = {name: list(part.rows) for name, part in given.items()} if log_samples else None
    directions = {name: _find_directions(tasks[name], part) for name, part in given.items()}
    return write_results(report, tasks, groups, tables, directions, rows)


def _find_directions(task: LmTask, part: ScoredPart) -> Mapping[str, bool]:
    """Find the directions of a task's metrics; what a metric gives under other names (pass@1, pass@10) has its own."""
    known = task.higher_is_better()
    given = [(one.key.metric, one.spec.name) for one in part.scored.columns if one.spec is not None]
    return {**known, **{metric: known[name] for metric, name in given if name in known}}


def _choose_tables(policy: str | Tables) -> Tables:
    if isinstance(policy, Tables):
        return policy
    require_known("policy", [policy], POLICIES)
    return POLICIES[policy]
