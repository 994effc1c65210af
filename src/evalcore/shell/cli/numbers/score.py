"""``evalcore score``: recorded answers of any harness, scored again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from evalcore.shell.cli.flags import read_flags, spell_keys
from evalcore.shell.cli.inputs import COLUMNS, add_declarations, add_engine, add_forms, add_output, new_parser
from evalcore.shell.config.keys import KEYS
from evalcore.shell.safety.exit_codes import Exit

EXAMPLES = """examples:
  evalcore score runs/mine                                   by its own rules: the same numbers again
  evalcore score lm_eval_out/ --task my_gsm8k.yaml           by the filters and metrics of a task file
  evalcore score samples_gsm8k.jsonl --filter 'regex={"regex_pattern": "answer is (-?[0-9]+)"}'
  evalcore score logs/*.eval                                 Inspect's logs, by the scores they have
  evalcore score answers.csv --answer reply --gold target --metric exact_match --group_by subject --weights equal

Which rules: --task if it is given, else those of the results beside a log, else the usual ones of its kind of answers;
--filter, --metric and --reducer go over them. No code of a log is ever run; that of a task file only with --trust.
exit codes: 0 done, 1 documents have no score or could not be read (more than --allow_failures), 2 bad input
"""

SHARED = (
    *("cluster", "policy", "confidence", "ci", "stderr"),
    *("on_unscorable", "bootstrap_iters", "limit", "include_path", "trust", "allow_failures", "doc_timeout"),
)


def build_parser() -> argparse.ArgumentParser:
    out = new_parser(
        "score",
        "Score recorded answers again, by the task's own or by new filters, metrics, reducers and groups.",
        EXAMPLES,
        usage="evalcore score LOG ... [--task FILE | --filter NAME ... --metric NAME ...] [--output_path FOLDER]",
    )
    out.allow_abbrev = False
    out.add_argument("logs", nargs="+", metavar="LOG", help="run folders, results, sample logs, .eval files, tables")
    rules = out.add_argument_group("rules")
    rules.add_argument("--task", nargs="+", action="extend", default=[], metavar="TASK", help="task files or names")
    named = "NAME or 'NAME={\"option\": value}'; given again"
    rules.add_argument("--filter", action="append", default=[], metavar="NAME", help=f"{named}, the next step")
    rules.add_argument("--filter_name", metavar="NAME", help="what to call these filters (as the log's, if it had one)")
    rules.add_argument("--metric", action="append", default=[], metavar="NAME", help=f"{named}, another metric")
    rules.add_argument("--reducer", action="append", default=[], metavar="NAME", help="of repeats: mean, pass@5, maj@8")
    rules.add_argument("--filters", metavar="FILE", help="YAML with a filter_list and a metric_list")
    rules.add_argument("--score", action="append", default=[], metavar="NAME", help="a recorded score, as it is")
    add_declarations(rules)
    rules.add_argument("--unparsed", choices=("wrong", "unscorable"), help="answers no filter finds (wrong)")
    groups = out.add_argument_group("groups")
    groups.add_argument(
        "--group_by", metavar="FIELD", help="a task for each value of this field, path (a.b) or {{template}}"
    )
    groups.add_argument("--weights", choices=("size", "equal"), help="of these tasks (size)")
    groups.add_argument(
        "--only", nargs="+", action="extend", default=[], metavar="GLOB", help="only tasks of such names"
    )
    groups.add_argument("--groups", metavar="FILE", help="YAML with groups over the tasks of the logs")
    tables = out.add_argument_group("columns of plain tables (JSONL, CSV, Parquet)")
    for name, what in COLUMNS.items():
        tables.add_argument(f"--{name}", metavar="COLUMN", help=what)
    out.add_argument("--tally", action="store_true", help="count equal scores instead of keeping one per document")
    closing = out.add_argument_group("as in run")
    for name in SHARED:
        many = {"nargs": "+", "action": "extend"} if KEYS[name].kind == "names" else {}
        closing.add_argument(f"--{name}", metavar="X", help=KEYS[name].help.replace("%", "%%"), **many)  # type: ignore[arg-type]
    work = out.add_argument_group("who does the work")
    add_engine(work)
    work.add_argument("--partials", metavar="FOLDER", help="keep partial scores there, so that none is made twice")
    work.add_argument("--partial_only", action="store_true", help="only these, for `evalcore merge`; no numbers")
    work.add_argument("--part", metavar="K/N", help="only the K-th of N shares of the work (with --partial_only)")
    _add_output(out)
    return out


def _add_output(out: argparse.ArgumentParser) -> None:
    files = out.add_argument_group("output")
    add_forms(files, json="the results as JSON", csv="a row per number", markdown="a Markdown table")
    add_output(files, "write results.json and samples_<task>.jsonl there")
    files.add_argument(
        "--log_samples", choices=("true", "false"), default="true", help="also the samples_<task>.jsonl (true)"
    )
    files.add_argument("--parquet", action="store_true", help="also results.parquet and samples_<task>.parquet there")
    files.add_argument("--overwrite", action="store_true", help="replace results that are there")
    files.add_argument("--keep_going", action="store_true", help="list records that cannot be read, and go on")
    files.add_argument("--quiet", "-q", action="store_true", help="no progress")


def main(argv: Sequence[str]) -> int:
    """Score, print; the exit code says whether anything was left out."""
    parser = build_parser()
    keys = vars(parser.parse_args([_spell_own_key(one) for one in spell_keys(argv)]))
    from evalcore.core.records.errors import EvalError
    from evalcore.shell.engines.engines import BY_SIZE
    from evalcore.shell.output.terminal.progress import progress
    from evalcore.shell.output.terminal.show import show
    from evalcore.shell.safety.safe_text import visible
    from evalcore.shell.score.score import score, tell_problems

    logs, form, quiet = keys.pop("logs"), keys.pop("form"), keys.pop("quiet")
    keys |= read_flags(argparse.Namespace(**{name: keys.get(name) if name in SHARED else None for name in KEYS}))
    keys |= {"log_samples": keys["log_samples"] == "true", "engine": keys["engine"] or BY_SIZE}
    only, part = keys.pop("partial_only"), keys.pop("part")
    if only and form != parser.get_default("form"):
        raise EvalError(
            f"--{form}: --partial_only prints the files it wrote, and no numbers; give it to `evalcore merge`"
        )
    if only:
        return _keep_partials(logs, keys, part, quiet)
    if part:
        raise EvalError("--part goes with --partial_only")
    with progress(quiet) as shown:
        result = score(logs, shown=shown, **keys)
    show(result.shown(), form)
    sys.stderr.write("".join(f"{visible(one)}\n" for one in tell_problems(result.problems)))
    return Exit.DONE if result.complete else Exit.INCOMPLETE


def _keep_partials(logs: Sequence[str], keys: dict[str, Any], part: str | None, quiet: bool) -> int:
    """Score and keep partial scores; print the files."""
    from evalcore.shell.output.terminal.progress import progress
    from evalcore.shell.score.units.partial_scores import score_partials

    with progress(quiet) as shown:
        files = score_partials(logs, part=part, shown=shown, **keys)
    sys.stdout.write("".join(f"{path}\n" for path in files))
    return 0


def _spell_own_key(typed: str) -> str:
    """``--keep-going`` is ``--keep_going``."""
    flag, equals, value = typed.partition("=")
    return flag[:2] + flag[2:].replace("-", "_") + equals + value if flag.startswith("--") else typed
