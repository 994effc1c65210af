"""``evalcore compare``: two or more runs on the same documents."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from evalcore.core.records.errors import EvalError
from evalcore.shell.cli.inputs import (
    add_choice,
    add_columns,
    add_forms,
    add_reading,
    add_resampling,
    new_parser,
    spell_reading,
)

EXAMPLES = """examples:
  evalcore compare runs/new runs/old               A is runs/new, B is runs/old; A − B is what the table shows
  evalcore compare runs/new runs/old --flips 5     and the first documents that one gets right and the other does not
  evalcore compare runs/new runs/old --margin 0.01 better, worse, the same within 0.01, or not enough documents
  evalcore compare runs/a runs/b runs/c            for every number a matrix of differences, row minus column
  evalcore compare lm_eval_out/ samples_x.jsonl    lm-eval's outputs and sample logs as they are

Documents are the same if their ids are; without ids if their prompt is, or all of their content; or the fields of
--match. Those that only one run has are counted and listed, never just dropped.
exit codes: 0 done, 2 bad input, or no document is in two runs
"""


def build_parser() -> argparse.ArgumentParser:
    out = new_parser(
        "compare", "Differences of runs in every task, metric and group, with intervals and tests.", EXAMPLES
    )
    out.add_argument("runs", nargs="+", metavar="RUN", help="run folders, lm-eval outputs or sample logs; two or more")
    add_forms(out, json="everything as JSON", csv="a row per number", markdown="a Markdown table")
    out.add_argument("--names", metavar="A,B", help="what to call the runs (their folders' names)")
    add_choice(out)
    out.add_argument(
        "--flips", type=read_count, default=0, metavar="N", help="flipped documents to list per number; or all"
    )
    out.add_argument(
        "--unmatched", type=read_count, default=3, metavar="N", help="unmatched ones to list per task; or all"
    )
    out.add_argument("--confidence", type=float, default=0.95, metavar="X", help="of the intervals (0.95)")
    out.add_argument(
        "--correction", default="holm", metavar="NAME", help="for many tests: holm (no false finding), bh (few), none"
    )
    out.add_argument(
        "--margin", type=float, metavar="X", help="a difference that does not matter: say what is the same within it"
    )
    add_reading(out)
    add_columns(out)
    add_resampling(out)
    return out


def read_count(text: str) -> int | None:
    """How many to list; None for all.

    >>> read_count("3"), read_count("all")
    (3, None)
    """
    if text == "all":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected an integer or all, got {text!r}")
    return int(text)


def main(argv: Sequence[str]) -> int:
    """Compare every two runs and print it."""
    keys = vars(build_parser().parse_args(argv))
    runs, form = keys.pop("runs"), keys.pop("form")
    if len(runs) < 2:
        raise EvalError("expected two or more runs: evalcore compare RUN RUN ...")
    from evalcore.shell.compare.compare import compare
    from evalcore.shell.output.compare.renderers import RENDERERS
    from evalcore.shell.output.terminal.screen import print_form, suggest_command

    print_form(RENDERERS, form, compare(*runs, **keys))
    if RENDERERS[form].read:
        suggest_command("Next, as a page for a browser", "evalcore", "report", *runs, *spell_reading(keys))
    return 0
