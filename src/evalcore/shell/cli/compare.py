"""``evalcore compare``: two or more runs on the same documents."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from evalcore.core.errors import EvalError

if TYPE_CHECKING:
    from evalcore.shell.output.compared.rows import Compared

EXAMPLES = """examples:
  evalcore compare runs/new runs/old               A is runs/new, B is runs/old; A − B is what the table shows
  evalcore compare runs/new runs/old --flips 5     and the first documents that one gets right and the other does not
  evalcore compare runs/a runs/b runs/c            for every number a matrix of differences, row minus column
  evalcore compare lm_eval_out/ samples_x.jsonl    lm-eval's outputs and sample logs as they are

Documents are the same if their content is. Those that only one run has are counted and listed, never just dropped.
exit codes: 0 done, 2 bad input
"""


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        "evalcore compare",
        description="Differences of runs in every task, metric and group, with intervals and tests.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    out.add_argument("runs", nargs="+", metavar="RUN", help="run folders, lm-eval outputs or sample logs; two or more")
    shown = out.add_mutually_exclusive_group()
    for name, what in (("json", "everything as JSON"), ("csv", "a row per number"), ("markdown", "a Markdown table")):
        shown.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=f"print {what}")
    out.add_argument("--names", metavar="A,B", help="what to call the runs (their folders' names)")
    out.add_argument("--task", action="append", default=[], metavar="GLOB", help="only these tasks and groups")
    out.add_argument("--metric", action="append", default=[], metavar="NAME", help="only these: acc, or acc,none")
    out.add_argument("--flips", type=count, default=0, metavar="N", help="flipped documents to list per number; or all")
    out.add_argument("--unmatched", type=count, default=3, metavar="N", help="unmatched ones to list per task; or all")
    out.add_argument("--confidence", type=float, default=0.95, metavar="X", help="of the intervals (0.95)")
    out.add_argument(
        "--correction", default="holm", metavar="NAME", help="for many tests: holm (no false finding), bh (few), none"
    )
    out.add_argument("--cluster", metavar="FIELD", help="documents with the same value there count together")
    out.add_argument(
        "--draws", type=int, default=10_000, metavar="N", help="sign flips where a test needs them (10000)"
    )
    out.add_argument("--seed", type=int, default=0, metavar="N", help="of the sign flips (0)")
    return out


def count(text: str) -> int | None:
    """How many to list; None for all.

    >>> count("3"), count("all")
    (3, None)
    """
    if text == "all":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number or all, got {text!r}")
    return int(text)


def main(argv: Sequence[str]) -> int:
    """Compare every two runs and print it."""
    given = parser().parse_args(argv)
    if len(given.runs) < 2:
        raise EvalError("expected two or more runs: evalcore compare RUN RUN ...")
    if not 0 < given.confidence < 1:
        raise EvalError(f"expected --confidence between 0 and 1, got {given.confidence:g}")
    if given.draws < 1:
        raise EvalError(f"expected --draws of at least 1, got {given.draws}")
    from evalcore.shell.output.compared.show import show_comparison

    show_comparison(compare(given), given.form or "table")
    return 0


def compare(given: argparse.Namespace) -> Compared:
    """Every pair of the runs, each run read once, all p-values of what is shown corrected together."""
    from msgspec.structs import replace

    from evalcore.core.comparing import compare_sides
    from evalcore.core.comparison import adjust
    from evalcore.core.gates import warn_of_draws
    from evalcore.shell.output.compared.rows import Compared, select_lines
    from evalcore.shell.recorded import read_recorded

    names = chosen_names(given.names, given.runs)
    read = {path: read_recorded(Path(path), cluster=given.cluster) for path in dict.fromkeys(given.runs)}
    runs = tuple(read[path] for path in given.runs)
    sides = [replace(run.side, name=name) for run, name in zip(runs, names, strict=True)]
    chosen = {"confidence": given.confidence, "draws": given.draws, "seed": given.seed}
    compared = [compare_sides(a, b, **chosen) for a, b in combinations(sides, 2)]
    adjusted = adjust(select_lines(compared, given.task, given.metric), given.correction)
    return Compared(
        runs=runs,
        names=names,
        pairs=tuple(combinations(range(len(runs)), 2)),
        comparisons=adjusted,
        flips=given.flips,
        unmatched=given.unmatched,
        warnings=warn_of_draws(adjusted, given.draws, 1 - given.confidence),
    )


def chosen_names(typed: str | None, paths: Sequence[str]) -> tuple[str, ...]:
    """What the runs are called.

    >>> chosen_names("new,old", ["a", "b"]), chosen_names(None, ["runs/a", "runs/b/"])
    (('new', 'old'), ('a', 'b'))
    """
    if typed is None:
        from evalcore.shell.output.compared.rows import name_runs

        return name_runs([Path(path).parts or (path,) for path in paths])
    names = tuple(name.strip() for name in typed.split(","))
    if len(names) != len(paths) or not all(names):
        raise EvalError(f"expected --names with a name for each of the {len(paths)} runs, got {typed!r}")
    return names
