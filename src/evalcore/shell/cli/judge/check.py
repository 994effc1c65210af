"""``evalcore check``: a gate for CI."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import perf_counter

from evalcore.shell.cli.inputs import add_choice, add_columns, add_forms, add_reading, add_resampling, new_parser
from evalcore.shell.safety.exit_codes import Exit

EXAMPLES = """examples:
  evalcore check runs/new --min acc=0.62                 every acc of the run
  evalcore check runs/new --min 'mmlu_*/acc=0.5' --max wikitext/word_perplexity=12
  evalcore check runs/new --baseline runs/released --alpha 0.01 --junit report.xml
  evalcore check runs/new --baseline runs/released --margin 0.01 --max_unscored 0.005
  evalcore check runs/new --baseline runs/released --margin 0.01 --shown      not worse by more than 0.01, shown

A limit fails if the number is on its wrong side by more than luck explains; with --strict, if it is there at all. A
baseline fails if some number is worse than the baseline's by more than luck explains, or is missing, or if less than
half of either run's documents can be paired; without ids and prompts, also if both have others that cannot be paired
and a number is worse over all documents. Corrected for the number of gates: if every number is exactly at its
limit, some limit fails by luck in at most a share alpha of all checks; if nothing got worse, some number fails against
the baseline in about as many at most.
exit codes: 0 all passed, 1 some failed, 2 bad input, or nothing could be checked
"""


def build_parser() -> argparse.ArgumentParser:
    out = new_parser(
        "check", "Hold a run against limits and against another run; fail on evidence, not on noise.", EXAMPLES
    )
    out.add_argument(
        "run", metavar="RUN", help="run folder, lm-eval output or sample log; for limits, results alone do"
    )
    keys = "KEY: metric, task/metric, either with ,filter; globs; a group is named like a task"
    out.add_argument("--min", action="append", default=[], metavar="KEY=VALUE", help=f"the least value. {keys}")
    out.add_argument("--max", action="append", default=[], metavar="KEY=VALUE", help="the greatest value")
    out.add_argument("--strict", action="store_true", help="limits hold for the numbers themselves, evidence or not")
    out.add_argument("--baseline", metavar="RUN", help="no number may be worse than this run's, or missing")
    out.add_argument("--margin", type=float, metavar="X", help="only evidence of a drop by more than X fails")
    out.add_argument(
        "--shown", action="store_true", help="pass only what is shown not to be worse by more than --margin"
    )
    out.add_argument(
        "--allow_missing", action="store_true", help="skip numbers and documents of the baseline that the run lacks"
    )
    out.add_argument(
        "--max_unscored", type=float, metavar="SHARE", help="of the baseline's documents that may lack a score, by task"
    )
    add_choice(out, "; of --baseline")
    out.add_argument("--alpha", type=float, default=0.05, metavar="X", help="how often luck alone may fail it (0.05)")
    out.add_argument(
        "--correction", default="holm", metavar="NAME", help="for many gates: holm (limits: Bonferroni's), bh, none"
    )
    add_reading(out)
    add_columns(out)
    add_resampling(out)
    out.add_argument("--junit", metavar="FILE", help="write JUnit XML there")
    add_forms(out, json="JSON", markdown="Markdown tables")
    return out


def main(argv: Sequence[str]) -> int:
    """Judge every gate, print all of them; the exit code says whether one failed."""
    keys, started = vars(build_parser().parse_args(argv)), perf_counter()
    junit, form = keys.pop("junit"), keys.pop("form")
    from evalcore.shell.compare.check import check_run
    from evalcore.shell.output.check.renderers import RENDERERS
    from evalcore.shell.output.terminal.screen import print_form

    checked = check_run(**keys)
    if junit:
        from evalcore.shell.files.given import parse_output
        from evalcore.shell.output.check.junit import write_junit

        write_junit(parse_output(junit), checked, seconds=perf_counter() - started)
    print_form(RENDERERS, form, checked)
    return Exit.DONE if checked.passed else Exit.INCOMPLETE
