"""``evalcore power``: how many documents and repeats a difference or an interval takes, from a run's own spread."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from evalcore.shell.cli.inputs import (
    add_choice,
    add_columns,
    add_forms,
    add_match_filter,
    add_reducer,
    new_parser,
)

EXAMPLES = """examples:
  evalcore power out/run                             the smallest difference that this run can show
  evalcore power out/run --difference 0.02           documents it takes to find a difference of 2 points
  evalcore power out/run --half-width 0.01           documents it takes for ± 1 point
  evalcore power out/run out/other --difference .02  the same, from how much the two runs differ by document
  evalcore power results_2026-01-31T12-00-00.json    of a results file of lm-eval
  evalcore power samples_gsm8k.jsonl                 of a sample log alone
"""


def build_parser() -> argparse.ArgumentParser:
    above_0 = partial(_read_number, 0.0, float("inf"), "a number above 0, such as 0.02")
    share = partial(_read_number, 0.0, 1.0, "a share between 0 and 1, such as 0.05")
    correlation = partial(_read_number, -1.0, 1.0, "a correlation between -1 and 1")
    out = new_parser(
        "power", "How many documents and repeats a difference or an interval takes, from a run's own spread.", EXAMPLES
    )
    out.add_argument(
        "run",
        metavar="RUN",
        help="a run folder, a results file of evalcore or lm-eval, a folder of one, or a sample log",
    )
    out.add_argument("other", metavar="RUN2", nargs="?", help="a second run, with samples, on the same documents")
    goal = out.add_mutually_exclusive_group()
    goal.add_argument("--difference", type=above_0, metavar="D", help="the true difference to be found")
    goal.add_argument("--half-width", "--half_width", type=above_0, metavar="W", help="the wanted ± of an interval")
    out.add_argument("--power", type=share, default=0.8, metavar="P", help="how often it is to be found (0.8)")
    out.add_argument("--alpha", type=share, default=0.05, metavar="A", help="how often nothing may look like it (0.05)")
    out.add_argument(
        "--repeats", type=_read_counts, default=(1, 2, 4, 8), metavar="K,K", help="replies to plan for (1,2,4,8)"
    )
    out.add_argument(
        "--correlation",
        type=correlation,
        metavar="R",
        help="of the questions' scores with those of the other model, for one run (0.4)",
    )
    add_choice(out)
    out.add_argument("--cluster", metavar="FIELD", help="documents with the same value there count together")
    add_match_filter(out)
    add_reducer(out)
    add_columns(out)
    add_forms(out, json="plain data", csv="a row per number", markdown="a Markdown table")
    return out


def main(argv: Sequence[str]) -> int:
    """Read one run or two, plan, print."""
    keys = vars(build_parser().parse_args(argv))
    form = keys.pop("form")
    from evalcore.shell.compare.power import plan_power
    from evalcore.shell.output.power.renderers import RENDERERS
    from evalcore.shell.output.terminal.screen import print_form

    print_form(RENDERERS, form, plan_power(**keys))
    return 0


# --- flags ---------------------------------------------------------------------------------------------------------


def _read_number(low: float, high: float, expected: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = low
    if not low < value < high:
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
    return value


def _read_counts(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and 0 < int(part) < 10**6 for part in parts):
        raise argparse.ArgumentTypeError(f"expected integers of at least 1, such as 1,2,4, got {text!r}")
    return tuple(sorted(set(map(int, parts))))
