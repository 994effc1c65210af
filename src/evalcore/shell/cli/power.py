"""``evalcore power``: how many documents and repeats a difference or an interval takes, from a run's own spread."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalcore.core.records.errors import EvalError
from evalcore.shell.cli.inputs import add_choice, split_names

if TYPE_CHECKING:
    from evalcore.core.compare.power import Asked, Known, Plan

EXAMPLES = """examples:
  evalcore power out/run                             the smallest difference that this run can show
  evalcore power out/run --difference 0.02           documents it takes to find a difference of 2 points
  evalcore power out/run --half-width 0.01           documents it takes for ± 1 point
  evalcore power out/run out/other --difference .02  the same, from how much the two runs differ by document
  evalcore power results_2026-01-31T12-00-00.json    of a results file of lm-eval
  evalcore power samples_gsm8k.jsonl                 of a sample log alone
"""


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        "evalcore power",
        description="How many documents and repeats a difference or an interval takes, from a run's own spread.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    out.add_argument(
        "run",
        metavar="RUN",
        help="a run folder, a results file of evalcore or lm-eval, a folder of one, or a sample log",
    )
    out.add_argument("other", metavar="RUN2", nargs="?", help="a second run, with samples, on the same documents")
    goal = out.add_mutually_exclusive_group()
    goal.add_argument("--difference", type=_above_0, metavar="D", help="the true difference to be found")
    goal.add_argument("--half-width", "--half_width", type=_above_0, metavar="W", help="the wanted ± of an interval")
    out.add_argument("--power", type=_share, default=0.8, metavar="P", help="how often it is to be found (0.8)")
    out.add_argument(
        "--alpha", type=_share, default=0.05, metavar="A", help="how often nothing may look like it (0.05)"
    )
    out.add_argument(
        "--repeats", type=_counts, default=(1, 2, 4, 8), metavar="K,K", help="replies to plan for (1,2,4,8)"
    )
    out.add_argument(
        "--correlation",
        type=_correlation,
        default=None,
        metavar="R",
        help="of the questions' scores with those of the other model, for one run (0.4)",
    )
    add_choice(out)
    out.add_argument("--cluster", metavar="FIELD", help="documents with the same value there count together")
    form = out.add_mutually_exclusive_group()
    for name, what in (("json", "plain data"), ("csv", "a row per number"), ("markdown", "a Markdown table")):
        form.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=f"print {what}")
    return out


def main(argv: Sequence[str]) -> int:
    """Read one run or two, plan, print."""
    given = parser().parse_args(argv)
    if given.other is not None and given.correlation is not None:
        raise EvalError("--correlation stands in for a second run; with RUN2 it is measured, leave it out")
    from evalcore.core.compare.power import Asked, plan_next

    asked = Asked(
        difference=given.difference,
        half_width=given.half_width,
        alpha=given.alpha,
        power=given.power,
        repeats=given.repeats,
        **({} if given.correlation is None else {"correlation": given.correlation}),
    )
    known, read, notes = read_known(given.run, given.cluster)
    paths = [read]
    lead: tuple[str, ...] = ()
    if given.other is not None:
        other, read, more = read_known(given.other, given.cluster)
        known, lead, warned = pair_runs(given.run, given.other, known, other, given.cluster)
        paths, notes = [*paths, read], (*notes, *more, *warned)
    chosen = select_known(known, split_names(given.task), given.metric)
    refuse_points(chosen, given.difference or given.half_width or 0.0)
    plans = [plan_next(one, asked) for one in chosen]
    show_plans(plans, asked, paths, lead, notes, given.form or "table")
    return 0


def read_known(text: str, cluster: str | None = None) -> tuple[tuple[Known, ...], str, tuple[str, ...]]:
    """What is known of each number, the file that says so, and warnings."""
    from evalcore.shell.logs.runs.result_errors import known_of
    from evalcore.shell.logs.runs.run_record import run_path

    read, results, warnings = read_results(run_path(text), cluster)
    known = known_of(results)
    if not known:
        raise EvalError(f"{read}: expected metrics under results, found none")
    return known, str(read), warnings


def read_results(path: Path, cluster: str | None) -> tuple[Path, Mapping[str, object], tuple[str, ...]]:
    """The results of a run; where there are none, or other clusters than theirs are meant, those that its samples give.

    A sample log of another tool is refused with what a log needs.
    """
    from evalcore.core.lm_eval.result_file import lm_eval_results
    from evalcore.shell.logs.runs.run_record import close_recorded, read_recorded, refuse_other_rows
    from evalcore.shell.logs.runs.source import find_results

    refuse_other_rows(path)
    if cluster is None:
        try:
            return find_results(path)
        except EvalError:  # perhaps there are samples; if not, the same is said again
            pass
    run = read_recorded(path, cluster=cluster)
    return path, lm_eval_results(close_recorded(run)), run.warnings


def pair_runs(
    a: str, b: str, known_a: Iterable[Known], known_b: Iterable[Known], cluster: str | None = None
) -> tuple[tuple[Known, ...], tuple[str, ...], tuple[str, ...]]:
    """What is known of the difference between two runs, document by document; what leads all else, and warnings."""
    from evalcore.core.compare.power import pair_known
    from evalcore.core.compare.sides import compare_sides
    from evalcore.shell.compare.alike import align_sides, read_together
    from evalcore.shell.compare.conditions import explain_pairing, tell_pairs
    from evalcore.shell.logs.runs.run_record import comparable_side, run_path

    one, two = read_together([run_path(path) for path in (a, b)], cluster=cluster)
    first, second, alike = align_sides((one, two), (comparable_side(one), comparable_side(two)))
    compared = compare_sides(first, second, draws=1)
    lead = explain_pairing((a, b), (one, two), compared.documents, alike)
    if not any(shared.both for shared in compared.documents):
        raise EvalError(f"no document is in both runs: {' '.join(lead) or 'they share no task'}")
    of_a, of_b = ({(one.name, one.key): one for one in side} for side in (known_a, known_b))
    own: tuple[str, ...] = ()
    if two.renamed is not None:  # under the name of the first run's task
        own, of_b = two.warnings, {(one.side.scored[0].task.name, key): known for (_, key), known in of_b.items()}
    found = {
        (line.name, line.key): pair_known(line, of_a.get((line.name, line.key)), of_b.get((line.name, line.key)))
        for line in compared.lines
    }
    order = [*(place for place in of_a if place in found), *(place for place in found if place not in of_a)]
    return tuple(found[place] for place in order), lead, (*own, *tell_pairs(compared.documents), *compared.warnings)


def select_known(known: Sequence[Known], tasks: Sequence[str], metrics: Sequence[str]) -> list[Known]:
    """Only the tasks and groups that match a glob, only these metrics (``acc`` or ``acc,none``), if any are named.

    >>> select_known([], ["t*"], [])
    Traceback (most recent call last):
    evalcore.EvalError: unknown task or group 't*'...
    """
    from evalcore.core.compare.gates import choose_numbers

    chosen = choose_numbers(tasks, metrics, (one.name for one in known), (one.key for one in known))
    return [one for one in known if chosen((one.name, one.key))]


def refuse_points(known: Iterable[Known], goal: float) -> None:
    """Points where shares are meant: no two scores between 0 and 1 are 1 or more apart.

    >>> refuse_points([], 5)
    """
    share = next((one for one in known if one.share), None) if goal >= 1 else None
    if share is not None:
        raise EvalError(
            f"{share.name} {share.key} lies between 0 and 1, where {goal:g} points are {goal / 100:g}; choose other"
            " numbers with --task or --metric if that is not what you mean"
        )


def show_plans(
    plans: Sequence[Plan], asked: Asked, read: Sequence[str], lead: tuple[str, ...], notes: Sequence[str], form: str
) -> None:
    """Print in the form asked for."""
    from msgspec.structs import replace

    from evalcore.shell.output.power.plan_data import write_csv, write_json
    from evalcore.shell.output.power.plan_page import page_of
    from evalcore.shell.output.terminal.show import terminal_width, wants_colour, write_text

    if form in ("json", "csv"):
        told = write_json(plans, asked, read, (*lead, *notes)) if form == "json" else write_csv(plans, asked)
        write_text(sys.stdout, told)
        return
    from evalcore.shell.output.terminal.grid import draw_page, write_markdown

    page = replace(page_of(plans, asked, read, notes), lead=lead)
    drawn = draw_page(page, width=terminal_width(sys.stdout), colour=wants_colour(sys.stdout))
    write_text(sys.stdout, write_markdown(page) if form == "markdown" else drawn)


# --- flags ---------------------------------------------------------------------------------------------------------


def _above_0(text: str) -> float:
    return _number(text, 0.0, float("inf"), "a number above 0, such as 0.02")


def _share(text: str) -> float:
    return _number(text, 0.0, 1.0, "a share between 0 and 1, such as 0.05")


def _correlation(text: str) -> float:
    return _number(text, -1.0, 1.0, "a correlation between -1 and 1")


def _number(text: str, low: float, high: float, expected: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = low
    if not low < value < high:
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
    return value


def _counts(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and 0 < int(part) < 10**6 for part in parts):
        raise argparse.ArgumentTypeError(f"expected whole numbers of at least 1, such as 1,2,4, got {text!r}")
    return tuple(sorted(set(map(int, parts))))
