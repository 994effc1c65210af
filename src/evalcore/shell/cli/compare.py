"""``evalcore compare``: two or more runs on the same documents."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from evalcore.core.records.errors import EvalError
from evalcore.shell.cli.inputs import add_choice, add_reading, read_runs, split_names

if TYPE_CHECKING:
    from evalcore.shell.compare.alike import Alike
    from evalcore.shell.output.compare.line_order import Compared

EXAMPLES = """examples:
  evalcore compare runs/new runs/old               A is runs/new, B is runs/old; A − B is what the table shows
  evalcore compare runs/new runs/old --flips 5     and the first documents that one gets right and the other does not
  evalcore compare runs/a runs/b runs/c            for every number a matrix of differences, row minus column
  evalcore compare lm_eval_out/ samples_x.jsonl    lm-eval's outputs and sample logs as they are

Documents are the same if their ids are; without ids if their prompt is, or all of their content; or the fields of
--match. Those that only one run has are counted and listed, never just dropped.
exit codes: 0 done, 2 bad input, or no document is in two runs
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
    add_choice(out)
    out.add_argument("--flips", type=count, default=0, metavar="N", help="flipped documents to list per number; or all")
    out.add_argument("--unmatched", type=count, default=3, metavar="N", help="unmatched ones to list per task; or all")
    out.add_argument("--confidence", type=float, default=0.95, metavar="X", help="of the intervals (0.95)")
    out.add_argument(
        "--correction", default="holm", metavar="NAME", help="for many tests: holm (no false finding), bh (few), none"
    )
    add_reading(out)
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
    from evalcore.shell.output.compare.renderers import show_comparison

    show_comparison(compare(given), given.form or "table")
    return 0


def compare(given: argparse.Namespace) -> Compared:
    """Every pair of the runs, each run read once, all p-values of what is shown corrected together."""
    from msgspec.structs import replace

    from evalcore.core.compare.lines import adjust
    from evalcore.core.compare.regressions import warn_of_draws
    from evalcore.core.compare.sides import compare_sides
    from evalcore.shell.compare.alike import align_sides, read_fields
    from evalcore.shell.compare.conditions import tell_pairs, tell_settings
    from evalcore.shell.output.compare.line_order import Compared, label_runs, select_lines

    names = chosen_names(given.names, given.runs)
    runs, read = read_runs(given, given.runs)
    sides = [replace(side, name=name) for side, name in zip(read, names, strict=True)]
    chosen = {"confidence": given.confidence, "draws": given.draws, "seed": given.seed}
    pairs = tuple(combinations(range(len(runs)), 2))
    read_once = lru_cache(maxsize=None)(read_fields)
    aligned = [align_sides((runs[a], runs[b]), (sides[a], sides[b]), read_once) for a, b in pairs]
    compared = [compare_sides(a, b, **chosen) for a, b, _ in aligned]
    told = [warning for run in runs for warning in run.warnings]
    chosen_lines = select_lines(compared, split_names(given.task), given.metric, told)
    adjusted = adjust(chosen_lines, given.correction)
    found = Compared(
        runs=runs,
        names=names,
        pairs=pairs,
        comparisons=adjusted,
        flips=given.flips,
        unmatched=given.unmatched,
    )
    warned = warn_of_draws(adjusted, given.draws, 1 - given.confidence)
    alike = dict.fromkeys(told for one in adjusted for told in tell_pairs(one.documents))
    warnings = (*warned, *tell_settings(label_runs(len(runs)), runs), *alike)
    return replace(found, lead=explain_pairs(found, [alike for *_, alike in aligned]), warnings=warnings)


def explain_pairs(compared: Compared, alike: Sequence[Mapping[str, Alike]]) -> tuple[str, ...]:
    """Why few documents of some tasks are in two runs; an error if none of any is."""
    from evalcore.shell.compare.conditions import explain_pairing

    told = [
        line
        for (a, b), one, found in zip(compared.pairs, compared.comparisons, alike, strict=True)
        for line in explain_pairing(
            (compared.labels[a], compared.labels[b]), (compared.runs[a], compared.runs[b]), one.documents, found
        )
    ]
    if not any(shared.both for one in compared.comparisons for shared in one.documents):
        renamed = [warning for run in compared.runs for warning in run.warnings if run.renamed is not None]
        why = " ".join(dict.fromkeys((*told, *renamed))) or "they share no task"
        raise EvalError(f"no document is in two runs: {why}")
    return tuple(dict.fromkeys(told))


def chosen_names(typed: str | None, paths: Sequence[str]) -> tuple[str, ...]:
    """What the runs are called.

    >>> chosen_names("new,old", ["a", "b"]), chosen_names(None, ["runs/a", "runs/b/"])
    (('new', 'old'), ('a', 'b'))
    """
    if typed is None:
        from evalcore.shell.output.compare.line_order import name_runs

        return name_runs([Path(path).parts or (path,) for path in paths])
    names = tuple(name.strip() for name in typed.split(","))
    if len(names) != len(paths) or not all(names):
        raise EvalError(f"expected --names with a name for each of the {len(paths)} runs, got {typed!r}")
    return names
