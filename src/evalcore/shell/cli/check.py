"""``evalcore check``: a gate for CI."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from evalcore.core.records.errors import EvalError
from evalcore.shell.cli.inputs import add_choice, add_reading, read_runs, split_names

if TYPE_CHECKING:
    from evalcore.core.compare.gates import Gate, Limit, Number
    from evalcore.core.compare.lines import Comparison, Shared, Side
    from evalcore.core.records.estimate import Estimate
    from evalcore.shell.logs.runs.run_record import Recorded
    from evalcore.shell.output.check.gate_text import Checked

EXAMPLES = """examples:
  evalcore check runs/new --min acc=0.62                 every acc of the run
  evalcore check runs/new --min 'mmlu_*/acc=0.5' --max wikitext/word_perplexity=12
  evalcore check runs/new --baseline runs/released --alpha 0.01 --junit report.xml
  evalcore check runs/new --baseline runs/released --margin 0.01 --max_unscored 0.005

A limit fails if the number is on its wrong side by more than luck explains; with --strict, if it is there at all. A
baseline fails if some number is worse than the baseline's by more than luck explains, or is missing, or if less than
half of either run's documents can be paired; without ids and prompts, also if both have others that cannot be paired
and a number is worse over all documents. Corrected for the number of gates: if every number is exactly at its
limit, some limit fails by luck in at most a share alpha of all checks; if nothing got worse, some number fails against
the baseline in about as many at most.
exit codes: 0 all passed, 1 some failed, 2 bad input, or nothing could be checked
"""


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        "evalcore check",
        description="Hold a run against limits and against another run; fail on evidence, not on noise.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
    out.add_argument(
        "--draws", type=int, default=10_000, metavar="N", help="sign flips where a test needs them (10000)"
    )
    out.add_argument("--seed", type=int, default=0, metavar="N", help="of the sign flips (0)")
    out.add_argument("--junit", metavar="FILE", help="write JUnit XML there")
    form = out.add_mutually_exclusive_group()
    for name, what in (("json", "JSON"), ("markdown", "Markdown tables")):
        form.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=f"print {what}")
    return out


def main(argv: Sequence[str]) -> int:
    """Judge every gate, print all of them; the exit code says whether one failed."""
    given, started = parser().parse_args(argv), perf_counter()
    refuse_flags(given)
    from evalcore.shell.output.check.gate_text import write_gates, write_gates_json
    from evalcore.shell.output.terminal.show import terminal_width, wants_colour, write_text

    checked = check(given)
    if given.junit:
        from evalcore.shell.output.check.junit import write_junit

        write_junit(Path(given.junit), checked, seconds=perf_counter() - started)
    out = sys.stdout
    marked, width, colour = given.form == "markdown", terminal_width(out), wants_colour(out)
    text = write_gates(checked, width=width, colour=colour, markdown=marked)
    write_text(out, write_gates_json(checked) if given.form == "json" else text)
    return 0 if checked.passed else 1


def refuse_flags(given: argparse.Namespace) -> None:
    """Flags that make no sense, alone or together."""
    if not (given.min or given.max or given.baseline is not None):
        raise EvalError("expected a gate: --min KEY=VALUE, --max KEY=VALUE or --baseline RUN")
    if not 0 < given.alpha < 0.5:
        raise EvalError(f"expected --alpha between 0 and 0.5, got {given.alpha:g}")
    if given.draws < 1:
        raise EvalError(f"expected --draws of at least 1, got {given.draws}")
    if given.margin is not None and not 0 <= given.margin < float("inf"):
        raise EvalError(f"expected --margin of at least 0, such as 0.01, got {given.margin:g}")
    if given.max_unscored is not None and not 0 <= given.max_unscored <= 1:
        raise EvalError(f"expected --max_unscored between 0 and 1, such as 0.01, got {given.max_unscored:g}")
    needing = ("task", "metric", "margin", "allow_missing", "max_unscored", "higher_is_better", "lower_is_better")
    lone = next((name for name in needing if getattr(given, name) not in (None, False, [])), None)
    if lone is not None and given.baseline is None:
        raise EvalError(f"--{lone} is about --baseline RUN, and there is none; a limit names its numbers itself")


def check(given: argparse.Namespace) -> Checked:
    """Every gate that was asked for."""
    from evalcore.core.compare.gates import parse_limit
    from evalcore.core.compare.lines import CORRECTIONS
    from evalcore.core.records.errors import unknown
    from evalcore.shell.logs.runs.run_record import run_path
    from evalcore.shell.logs.runs.totals import read_with_totals
    from evalcore.shell.output.check.gate_text import Checked, name_run

    if given.correction not in CORRECTIONS:
        raise unknown("correction", given.correction, CORRECTIONS)
    limits = [*(parse_limit("min", one) for one in given.min), *(parse_limit("max", one) for one in given.max)]
    runs: tuple[Recorded, ...]
    sides: tuple[Side, ...]
    if given.baseline is None:
        match = split_names([given.match or ""])
        runs, sides = (read_with_totals(run_path(given.run), cluster=given.cluster, match=match),), ()
    else:
        runs, sides = read_runs(given, [given.run, given.baseline])
    level, gates, notes = hold_to_limits(limits, runs[0], given)
    apart, more, lead, told = hold_against(runs, sides, given) if sides else (None, (), (), ())
    strict = ("--strict is about limits, and there are none",) if given.strict and not limits else ()
    return Checked(
        runs=tuple(map(name_run, runs)),
        run=given.run,
        gates=(*gates, *more),
        baseline=given.baseline,
        alpha=given.alpha,
        correction=given.correction,
        strict=given.strict,
        margin=given.margin,
        confidence=level,
        difference_confidence=apart,
        lead=lead,
        notes=tuple(dict.fromkeys((*strict, *notes, *told))),
    )


def hold_to_limits(
    limits: Sequence[Limit], run: Recorded, given: argparse.Namespace
) -> tuple[float, tuple[Gate, ...], tuple[str, ...]]:
    """The confidence of the intervals that limits are judged by, a gate for each number, and what to know."""
    from evalcore.core.compare.gates import judge_limits, level_of_limits, match_limits

    estimates, losses = close_run(run, level_of_limits(given.alpha, 1))
    count = len(match_limits(limits, estimates)) if given.correction != "none" else 1
    level = level_of_limits(given.alpha, count)
    estimates = close_run(run, level)[0] if count > 1 else estimates
    gates = judge_limits(limits, estimates, strict=given.strict)
    bare = [f"{gate.name} {gate.key}" for gate in gates if gate.ci is None and gate.value is not None]
    told = f"without an interval, judged by the number itself: {', '.join(bare)}"
    return level, gates, (*([told] if bare and not given.strict else []), *losses, *run.warnings)


def close_run(run: Recorded, confidence: float) -> tuple[dict[Number, Estimate], tuple[str, ...]]:
    """A run's numbers, with intervals of its own kind and of this confidence, and what it lost.

    Numbers that no samples stand for are taken from its results.
    """
    from evalcore.core.compare.gates import numbers_of
    from evalcore.shell.logs.runs.run_record import close_recorded
    from evalcore.shell.logs.runs.totals import total_estimates
    from evalcore.shell.output.terminal.losses import lost_of, told_losses

    report = close_recorded(run, confidence)
    known = numbers_of(report)
    others = {at: one for at, one in total_estimates(run.results, confidence).items() if at not in known}
    return {**known, **others}, told_losses(lost_of(report))


def hold_against(
    runs: Sequence[Recorded], sides: Sequence[Side], given: argparse.Namespace
) -> tuple[float, tuple[Gate, ...], tuple[str, ...], tuple[str, ...]]:
    """The confidence of the differences' intervals, a gate for every number of the baseline, what leads all else, and
    what to know.
    """
    from msgspec.structs import replace

    from evalcore.core.compare.gates import level_of_limits
    from evalcore.core.compare.lines import adjust
    from evalcore.core.compare.regressions import fail_missing, find_regressions, find_unscored, warn_of_draws
    from evalcore.shell.compare.alike import align_sides
    from evalcore.shell.output.check.gate_text import tell_missing, tell_pairing, tell_unlike

    level = level_of_limits(given.alpha, 1)
    *sides, alike = align_sides((runs[0], runs[1]), (sides[0], sides[1]))
    chosen, comparison = compare_chosen(sides, given, level)
    judge = {"alpha": given.alpha, "correction": given.correction, "margin": given.margin}
    gates = find_regressions(comparison, **judge)
    judged = sum(gate.passed is not None for gate in gates)
    if given.margin is not None and given.correction != "none" and judged > 1:
        level = level_of_limits(given.alpha, judged)
        gates = find_regressions(compare_chosen(sides, given, level)[1], **judge)
    gates = fail_missing(gates, sides[0], sides[1], chosen, allow=given.allow_missing)
    if given.max_unscored is not None:
        as_scored = [replace(run.side, documents=side.documents) for run, side in zip(runs, sides, strict=True)]
        lost = find_unscored(as_scored[0], as_scored[1], given.max_unscored)
        gates = (*gates, *(gate for gate in lost if chosen((gate.name, gate.key))))
    names, groups = {gate.name for gate in gates}, any(line.group for line in comparison.lines)
    asked = [one for one in comparison.documents if groups or one.task in names]  # a group rests on its tasks'
    gates = judge_pairs(gates, runs, comparison, asked, given)
    lead = tell_pairing(runs[0], runs[1], asked, alike)
    unlike, missing = tell_unlike(runs[0], runs[1], comparison), tell_missing(comparison)
    paired = any(shared.both for shared in comparison.documents)
    if not paired or all(gate.passed is None for gate in gates):
        why = [*lead, *unlike, *missing, *dict.fromkeys(gate.verdict for gate in gates)]
        raise EvalError(
            f"nothing of the run can be held against the baseline: {'; '.join(why) or 'no task is in both'}"
        )
    # A one-sided p-value is half of a two-sided one, so that twice alpha is what the flips must reach.
    flips = warn_of_draws(adjust([comparison], given.correction), given.draws, 2 * given.alpha)
    return level, gates, lead, (*unlike, *missing, *flips, *(f"baseline: {one}" for one in runs[1].warnings))


def judge_pairs(
    gates: tuple[Gate, ...],
    runs: Sequence[Recorded],
    comparison: Comparison,
    asked: Sequence[Shared],
    given: argparse.Namespace,
) -> tuple[Gate, ...]:
    """The gates, with one for every task of which too few documents are paired, or whose pairs may hide what failed."""
    from evalcore.core.compare.counterparts import find_hidden, find_unpaired

    gates = (*gates, *find_unpaired(asked, allow=given.allow_missing))
    if not any(one.unclear for one in asked):
        return gates
    whole = (close_run(runs[0], 1 - given.alpha)[0], close_run(runs[1], 1 - given.alpha)[0])
    hidden = find_hidden(comparison, asked, whole, alpha=given.alpha, margin=given.margin or 0.0)
    failed = {gate.name for gate in gates if gate.passed is False}
    return (*gates, *(gate for gate in hidden if gate.name not in failed))


def compare_chosen(
    sides: Sequence[Side], given: argparse.Namespace, confidence: float
) -> tuple[Callable[[Number], bool], Comparison]:
    """Which numbers are asked about, and the run minus the baseline in these."""
    from msgspec.structs import replace

    from evalcore.core.compare.gates import choose_numbers
    from evalcore.core.compare.regressions import numbers_of_side
    from evalcore.core.compare.sides import compare_sides

    found = compare_sides(sides[0], sides[1], confidence=confidence, draws=given.draws, seed=given.seed)
    known = [*((line.name, line.key) for line in found.lines), *numbers_of_side(sides[1])]
    tasks = split_names(given.task)
    chosen = choose_numbers(tasks, given.metric, (name for name, _ in known), (key for _, key in known))
    return chosen, replace(found, lines=tuple(line for line in found.lines if chosen((line.name, line.key))))
