"""``evalcore show``: the tables of finished runs, again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from evalcore.shell.cli.inputs import add_forms, new_parser
from evalcore.shell.safety.exit_codes import Exit

EXAMPLES = """examples:
  evalcore show runs/a                             the table that run printed at its end
  evalcore show runs/a runs/b --csv                a line per number, with the run
  evalcore show results_2025-01-01T00-00-00.json   lm-eval's results, with the intervals that their errors give

exit codes: 0 done, 1 a run is unfinished, 2 bad input
"""


def build_parser() -> argparse.ArgumentParser:
    out = new_parser("show", "The table of a finished run again, from its results: no model is asked.", EXAMPLES)
    out.add_argument("runs", nargs="+", metavar="RUN", help="run folders, lm-eval outputs, or results files alone")
    add_forms(out, json="the results as JSON", csv="a row per number", markdown="a Markdown table")
    return out


def main(argv: Sequence[str]) -> int:
    """Read, print; the exit code says whether all runs are finished."""
    given = build_parser().parse_args(argv)
    from evalcore.shell.output.terminal.screen import print_form
    from evalcore.shell.output.terminal.show import SEVERAL
    from evalcore.shell.report.shown_run import show_run

    runs = [show_run(run) for run in given.runs]
    print_form(SEVERAL, given.form, tuple(run.shown() for run in runs))
    return Exit.INCOMPLETE if any(run.unfinished for run in runs) else Exit.DONE
