"""``evalcore score``: recorded answers of any harness, scored again."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalcore.shell.cli.flags import as_keys, given_flags
from evalcore.shell.cli.inputs import COLUMNS, columns_of
from evalcore.shell.config.keys import KEYS

if TYPE_CHECKING:
    from evalcore.core.records.report import Report, TaskReport
    from evalcore.shell.logs.log import Problem
    from evalcore.shell.score.scored_log import Asked, Part

__all__ = ["COLUMNS", "main", "parser"]

EXAMPLES = """examples:
  evalcore score runs/mine                                   by its own rules: the same numbers again
  evalcore score lm_eval_out/ --task my_gsm8k.yaml           by the filters and metrics of a task file
  evalcore score samples_gsm8k.jsonl --filter 'regex={"regex_pattern": "answer is (-?[0-9]+)"}'
  evalcore score logs/*.eval                                 Inspect's logs, by the scores they have
  evalcore score answers.csv --answer reply --gold target --metric exact_match --group_by subject --weights equal

Which rules: --task if it is given, else those of the results beside a log, else the usual ones of its kind of answers;
--filter, --metric and --reducer go over them. No code of a log is ever run; that of a task file only with --trust.
exit codes: 0 done, 1 some documents have no score or could not be read, 2 bad input
"""

SHARED = ("cluster", "policy", "confidence", "ci", "on_unscorable", "bootstrap_iters", "limit", "include_path", "trust")


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        "evalcore score",
        usage="evalcore score LOG ... [--task FILE | --filter NAME ... --metric NAME ...] [--output_path FOLDER]",
        description="Score recorded answers again, by the task's own or by new filters, metrics, reducers and groups.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    out.add_argument("logs", nargs="+", metavar="LOG", help="run folders, results, sample logs, .eval files, tables")
    rules = out.add_argument_group("rules")
    rules.add_argument("--task", nargs="+", action="extend", default=[], metavar="TASK", help="task files or names")
    named = "NAME or 'NAME={\"option\": value}'; given again"
    rules.add_argument("--filter", action="append", default=[], metavar="NAME", help=f"{named}, the next step")
    rules.add_argument("--filter_name", default="none", metavar="NAME", help="what to call these filters (none)")
    rules.add_argument("--metric", action="append", default=[], metavar="NAME", help=f"{named}, another metric")
    rules.add_argument("--reducer", action="append", default=[], metavar="NAME", help="of repeats: mean, pass@5, maj@8")
    rules.add_argument("--filters", type=Path, metavar="FILE", help="YAML with a filter_list and a metric_list")
    rules.add_argument("--score", action="append", default=[], metavar="NAME", help="a recorded score, as it is")
    rules.add_argument("--unparsed", choices=("wrong", "unscorable"), default="wrong", help="answers no filter finds")
    groups = out.add_argument_group("groups")
    groups.add_argument(
        "--group_by", metavar="FIELD", help="a task for each value of this field, path (a.b) or {{template}}"
    )
    groups.add_argument("--weights", choices=("size", "equal"), help="of these tasks (size)")
    groups.add_argument(
        "--only", nargs="+", action="extend", default=[], metavar="GLOB", help="only tasks of such names"
    )
    groups.add_argument("--groups", type=Path, metavar="FILE", help="YAML with groups over the tasks of the logs")
    tables = out.add_argument_group("columns of plain tables (JSONL, CSV, Parquet)")
    for name, what in COLUMNS.items():
        tables.add_argument(f"--{name}", metavar="COLUMN", help=what)
    closing = out.add_argument_group("as in run")
    for name in SHARED:
        many = {"nargs": "+", "action": "extend"} if KEYS[name].kind == "names" else {}
        closing.add_argument(f"--{name}", metavar="X", help=KEYS[name].help.replace("%", "%%"), **many)  # type: ignore[arg-type]
    _add_output(out)
    return out


def _add_output(out: argparse.ArgumentParser) -> None:
    told = out.add_argument_group("output")
    form = told.add_mutually_exclusive_group()
    for name, what in (("json", "the results as JSON"), ("csv", "a row per number"), ("markdown", "a Markdown table")):
        form.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=f"print {what}")
    told.add_argument("--output_path", "-o", metavar="FOLDER", help="write results.json and samples_<task>.jsonl there")
    told.add_argument("--parquet", action="store_true", help="also results.parquet and samples_<task>.parquet there")
    told.add_argument("--overwrite", action="store_true", help="replace results that are there")
    told.add_argument("--keep_going", action="store_true", help="list records that cannot be read, and go on")
    told.add_argument("--quiet", "-q", action="store_true", help="no progress")


def main(argv: Sequence[str]) -> int:
    """Score, print, write; the exit code says whether anything was left out."""
    given = parser().parse_args([_own_key(one) for one in as_keys(argv)])
    from evalcore.core.records.errors import EvalError, require

    if given.parquet:  # a package that is missing, before anything is scored
        require("pyarrow.parquet", "parquet")
    asked, start = asked_of(given), time.time()
    from evalcore.shell.output.terminal.losses import lost_of
    from evalcore.shell.output.terminal.progress import progress
    from evalcore.shell.safety.safe_text import visible
    from evalcore.shell.score.report import close_parts, report_parts, tell_missing, tell_numbers, trees_over
    from evalcore.shell.score.scored_log import score_logs

    with progress(given.quiet) as shown:
        parts, selected = score_logs(given.logs, asked, shown)
    tasks = close_parts(parts, asked.plan)
    trees, told = trees_over(
        parts,
        tasks,
        chosen=selected.trees if selected else (),
        file=given.groups,
        split=given.group_by is not None,
        by_size=given.weights != "equal",
        changed=asked.rules.changes,
    )
    report = report_parts(tasks, trees, asked.plan)
    problems = [one for part in parts for one in part.problems]
    if not problems and not any(task.estimates for task in tasks):
        raise EvalError(tell_nothing(given.logs, tasks))
    told = (*told, *tell_idle(given, any(part.log.reader.tabular for part in parts)))
    warnings = (*(selected.warnings if selected else ()), *(one for part in parts for one in part.warnings), *told)
    warnings = (*warnings, *tell_missing(parts, tasks, asked.plan))
    if not (asked.rules.changes or selected or asked.plan.limit or asked.plan.cluster or given.group_by):
        warnings = (*warnings, *tell_numbers(parts, tasks))  # the same samples by the same rules
    trusted = selected.trusted if selected else {}
    finish(given, asked, parts, report, warnings, trusted, start)
    sys.stderr.write("".join(f"{visible(one)}\n" for one in tell_problems(problems)))
    return 1 if problems or lost_of(report) else 0


def _own_key(one: str) -> str:
    """``--keep-going`` is ``--keep_going``."""
    flag, equals, value = one.partition("=")
    return flag[:2] + flag[2:].replace("-", "_") + equals + value if flag.startswith("--") else one


def asked_of(given: argparse.Namespace) -> Asked:
    """What the flags ask for."""
    from evalcore.shell.config.plan import plan_from
    from evalcore.shell.logs.lm_eval.results import NO_MODEL
    from evalcore.shell.score.rules import read_rules
    from evalcore.shell.score.scored_log import Asked

    shared = given_flags(argparse.Namespace(**{name: getattr(given, name, None) for name in KEYS}))
    plan = plan_from({"model": NO_MODEL, "tasks": given.task or ["-"], **shared}, "the command line", "").plan
    rules = read_rules(
        steps=given.filter,
        name=given.filter_name,
        metrics=given.metric,
        reducers=given.reducer,
        scores=given.score,
        unparsed=given.unparsed,
        file=given.filters,
    )
    return Asked(
        plan=plan,
        rules=rules,
        columns=columns_of(given),
        tasks=tuple(given.task),
        group_by=given.group_by,
        folder=Path(given.output_path).expanduser() if given.output_path else None,
        overwrite=given.overwrite,
        keep_going=given.keep_going,
        only=tuple(given.only),
    )


def finish(
    given: argparse.Namespace,
    asked: Asked,
    parts: Sequence[Part],
    report: Report,
    warnings: Sequence[str],
    trusted: Mapping[str, str],
    start: float,
) -> None:
    """Print the numbers, and write them where that was asked for."""
    from msgspec.structs import replace

    from evalcore.shell.output.files.results import run_results, run_title
    from evalcore.shell.output.terminal.show import show, shown_of
    from evalcore.shell.score.pieces import facts_of
    from evalcore.shell.score.report import tell_bounds, unknown_shots

    facts = facts_of([part.log for part in parts], asked.plan, trusted)
    hashes = {name: one for part in parts for name, one in part.hashes.items()}
    unread = tell_problems([one for part in parts for one in part.problems], most=3)  # people are told of all by main
    results = run_results(report, facts, hashes=hashes, warnings=(*warnings, *unread))
    untold = unknown_shots(report)
    results = {**results, "n-shot": {name: None if name in untold else n for name, n in shots_of(results)}}
    files = put_results(asked.folder, results, hashes, given, start) if asked.folder is not None else ()
    shown = shown_of(
        report,
        results,
        warnings=warnings,
        confidence=asked.plan.confidence,
        title=f"{run_title(facts)}, scored again",
        folder=str(asked.folder or ""),
        files=files,
    )
    rows = tuple(replace(row, shots=None) if row.name in untold else row for row in shown.rows)
    show(replace(shown, rows=rows, losses=(*tell_bounds(report), *shown.losses)), given.form or "table")


def put_results(
    folder: Path, results: Mapping[str, object], tasks: Collection[str], given: argparse.Namespace, start: float
) -> tuple[str, ...]:
    """Put results beside the samples that were written of these tasks, in place of older ones; what files there are."""
    from evalcore.shell.cli.run import renew_parquet
    from evalcore.shell.output.files.environment import describe_run
    from evalcore.shell.output.files.run_files import list_files, samples_path, write_results, write_run
    from evalcore.shell.run.write import drop_stale_samples  # only here: templates take time

    write_results(folder, results)
    drop_stale_samples(folder, written := [samples_path(folder, name).name for name in tasks])
    write_run(folder, describe_run(start, time.time(), scored=[str(one) for one in given.logs], samples=written))
    return (*list_files(folder, tasks), *renew_parquet(folder, asked=given.parquet))


def shots_of(results: Mapping[str, object]) -> Iterable[tuple[str, object]]:
    found = results.get("n-shot")
    return found.items() if isinstance(found, Mapping) else ()


def tell_nothing(logs: Sequence[str], tasks: Sequence[TaskReport]) -> str:
    """Why there is no number at all."""
    where = ", ".join(map(str, logs))
    if not tasks:
        return f"{where}: no documents"
    names = ", ".join(task.name for task in tasks)
    return f"{where}: none of the scores that {names} had are there; name what to measure (--metric NAME, --score NAME)"


def tell_idle(given: argparse.Namespace, tabular: bool) -> list[str]:
    """Flags that had no effect."""
    named = [name for name in COLUMNS if getattr(given, name)]
    idle = [
        ("--weights", given.weights and given.group_by is None, "only weighs the tasks of --group_by"),
        (", ".join(f"--{name}" for name in named), named and not tabular, "is for plain tables only"),
        ("--metric", given.metric and given.score, "scores nothing where --score takes what was recorded"),
        ("--filter", given.filter and given.score, "filters nothing where --score takes what was recorded"),
        ("--filters", given.filters and given.score, "scores nothing where --score takes what was recorded"),
        ("--filter_name", given.filter_name != "none" and not given.filter, "only names the steps of --filter"),
        ("--parquet", given.parquet and not given.output_path, "only goes with --output_path"),
        ("--overwrite", given.overwrite and not given.output_path, "only goes with --output_path"),
    ]
    return [f"{flag} had no effect: it {why}" for flag, unused, why in idle if unused]


def tell_problems(problems: Sequence[Problem], *, most: int = 20) -> list[str]:
    """Records that could not be read, each with its place; the count first."""
    if not problems:
        return []
    each = [f"{one.place}: {one.message}" + f" (byte {one.byte:,})" * bool(one.byte) for one in problems[:most]]
    left = len(problems) - most
    many = "1 record" if len(problems) == 1 else f"{len(problems):,} records"
    return [f"{many} could not be read:", *each, *([f"... and {left:,} more"] if left > 0 else [])]
