"""``score``: recorded answers of any harness, scored again, grouped, closed, written."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from evalcore.core.ledger import count_outcomes, sum_ledgers
from evalcore.core.records.errors import EvalError
from evalcore.core.records.report import TaskReport
from evalcore.shell.config.values import Names, RunPath, is_allowed, list_names
from evalcore.shell.files.given import parse_path
from evalcore.shell.logs.declarations import refuse_undeclared
from evalcore.shell.logs.log import Problem
from evalcore.shell.logs.tables.column_map import ColumnKeys
from evalcore.shell.output.files.results import build_results, title_run
from evalcore.shell.output.terminal.progress import UNSEEN, Progress
from evalcore.shell.run.close import close_groups
from evalcore.shell.run.run_result import RunResult
from evalcore.shell.run.write import write_folder
from evalcore.shell.score.labels import gather_facts
from evalcore.shell.score.report import (
    choose_trees,
    close_logs,
    find_unknown_shots,
    list_emitted,
    tell_bounds,
    tell_missing,
    tell_numbers,
)
from evalcore.shell.score.rules import Rules
from evalcore.shell.score.scored_log import ScoredLog, score_logs
from evalcore.shell.score.units.log_plan import ScorePlan
from evalcore.shell.score.units.score_keys import MergeKeys, ScoreKeys, plan_scoring
from evalcore.shell.score.units.typed_command import spell_command

if TYPE_CHECKING:
    from evalcore.shell.run.prepare import Selected


def score(logs: RunPath | Sequence[RunPath], *, shown: Progress = UNSEEN, **keys: Unpack[ScoreKeys]) -> RunResult:
    """Score recorded answers again, by the task's own or by new filters, metrics, reducers and groups.

    ``logs`` are run folders, results, sample logs, Inspect logs or plain tables. The keys are the flags of ``evalcore
    score``, and a host's own ``readers`` and ``tables``; nothing is written without ``output_path``.

    >>> score("no/such/run", metric="f1")
    Traceback (most recent call last):
    evalcore.EvalError: no/such/run: no such file or folder
    """
    start, paths = time.time(), list(map(parse_path, [logs] if isinstance(logs, str | Path) else logs))
    asked = plan_scoring(keys)
    scored, selected = score_logs(paths, asked, shown)
    told = [str(path) for path in paths]
    source = {"scored": told, "command": spell_command("score", told, keys)}
    return close_run(scored, asked, selected, source=source, start=start, keys=keys)


def close_run(
    scored: Sequence[ScoredLog],
    asked: ScorePlan,
    selected: Selected | None,
    *,
    source: Mapping[str, list[str]],
    start: float,
    keys: MergeKeys,
) -> RunResult:
    """Close the scores of logs into numbers, group them, and write them where that was asked for."""
    refuse_undeclared(asked.rules.declared, list_emitted(scored))
    tasks = close_logs(scored, asked.plan, asked.tables)
    trees, left_out = choose_trees(scored, tasks, asked, selected.trees if selected else ())
    report = close_groups(tasks, trees, asked.plan, asked.tables)
    problems = tuple(problem for part in scored for problem in part.problems)
    if not problems and not any(task.estimates for task in tasks):
        raise EvalError(_tell_nothing(next(iter(source.values())), tasks))
    warnings = (
        *(selected.warnings if selected else ()),
        *(warning for part in scored for warning in part.warnings),
        *left_out,
        *_tell_idle(keys, scored, asked.rules),
        *tell_missing(scored, tasks, asked.plan),
        *(tell_numbers(scored, tasks, asked.tables) if asked.unchanged else ()),
    )
    facts = gather_facts([part.log for part in scored], asked.plan, asked.tables, selected.trusted if selected else {})
    hashes = {name: digest for part in scored for name, digest in part.hashes.items()}
    results = build_results(report, facts, hashes=hashes, warnings=(*warnings, *tell_problems(problems, most=3)))
    shots = find_unknown_shots(report)
    results = {**results, "n-shot": _forget_shots(results.get("n-shot"), shots)}
    ledger = sum_ledgers(count_outcomes(task) for task in report.tasks)
    lost, documents = ledger.lost + len(problems), ledger.documents + len(problems)
    files: tuple[str, ...] = ()
    if asked.folder is not None:
        files = write_folder(asked.folder, results, hashes, source=source, start=start, parquet=asked.parquet)
    return RunResult(
        report=report,
        results=results,
        title=f"{title_run(facts)}, scored again",
        confidence=asked.plan.confidence,
        folder=asked.folder,
        files=files,
        ledger=ledger,
        complete=is_allowed(lost, documents, asked.plan.allow_failures),
        warnings=warnings,
        problems=problems,
        bounds=tell_bounds(report),
        unknown_shots=shots,
    )


def _forget_shots(shots: object, unknown: frozenset[str]) -> dict[str, object]:
    """The shots of tasks and groups as results have them, null where they are not recorded."""
    known = shots if isinstance(shots, Mapping) else {}
    return {name: None if name in unknown else count for name, count in known.items()}


def _tell_nothing(paths: Sequence[str], tasks: Sequence[TaskReport]) -> str:
    """Say why there is no number at all."""
    where = ", ".join(paths)
    if not tasks:
        return f"{where}: no documents"
    names = ", ".join(task.name for task in tasks)
    return f"{where}: none of the scores that {names} had are there; name what to measure (--metric NAME, --score NAME)"


def _tell_idle(keys: MergeKeys, scored: Sequence[ScoredLog], rules: Rules) -> list[str]:
    """Name the flags that had no effect."""
    get, closing = keys.get, {one.name for one in rules.metrics} & {name.partition(",")[0] for name in rules.scores}
    columns = [name for name in ColumnKeys.__annotations__ if name != "score" and get(name)]
    tabular = any(part.log.reader.tabular for part in scored)
    named = get("filter_name") is not None
    idle = [
        ("--weights", get("weights") and get("group_by") is None, "only weighs the tasks of --group_by"),
        (", ".join(f"--{name}" for name in columns), columns and not tabular, "is for plain tables only"),
        (
            _name_idle(keys.get("metric", ()), keys.get("score", ())),
            get("score"),
            "scores nothing where --score takes what was recorded",
        ),
        ("--filter", get("filter") and get("score"), "filters nothing where --score takes what was recorded"),
        (
            "--filters",
            get("filters") and get("score") and not closing,
            "scores nothing where --score takes what was recorded",
        ),
        ("--filter_name", named and not get("filter"), "only names the steps of --filter"),
        ("--parquet", get("parquet") and not get("output_path"), "only goes with --output_path"),
        ("--overwrite", get("overwrite") and not get("output_path"), "only goes with --output_path"),
    ]
    return [f"{flag} had no effect: it {why}" for flag, unused, why in idle if flag and unused]


def _name_idle(metrics: Names, scores: Names) -> str:
    """The flags of metrics that are no recorded score; one of its name says how that is closed.

    >>> _name_idle(['loss={"aggregation": "median"}', "f1"], ["loss"]), _name_idle("loss", "loss,none")
    ('--metric f1', '')
    >>> _name_idle("f1", "loss")
    '--metric'
    """
    taken = {name for score in list_names(scores) for name in (score, score.partition(",")[0])}
    idle = [name for name, _, _ in (text.partition("=") for text in list_names(metrics)) if name not in taken]
    whole = len(idle) == len(list_names(metrics))
    return "" if not idle else "--metric" if whole else f"--metric {', '.join(idle)}"


def tell_problems(problems: Sequence[Problem], *, most: int = 20) -> list[str]:
    """List records that could not be read: how many, then the place of each."""
    if not problems:
        return []
    each = [f"{one.place}: {one.message}" + f" (byte {one.byte:,})" * bool(one.byte) for one in problems[:most]]
    left = len(problems) - most
    many = "1 record" if len(problems) == 1 else f"{len(problems):,} records"
    return [f"{many} could not be read:", *each, *([f"... and {left:,} more"] if left > 0 else [])]
