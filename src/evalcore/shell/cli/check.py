"""``evalcore check``: a gate for CI."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from evalcore.core.errors import EvalError

if TYPE_CHECKING:
    from evalcore.core.gates import Gate
    from evalcore.core.outcome import Rule
    from evalcore.core.reports import Report
    from evalcore.core.sides import Side
    from evalcore.shell.output.gates import Checked

EXAMPLES = """examples:
  evalcore check runs/new --min acc=0.62                 every acc of the run
  evalcore check runs/new --min gsm8k/exact_match,strict-match=0.7 --max wikitext/word_perplexity=12
  evalcore check runs/new --baseline runs/released --alpha 0.01 --junit report.xml

A limit fails if the number is on its wrong side by more than luck explains (its one-sided bound is); with --strict,
if it is there at all. A baseline fails if some number is worse than the baseline's by more than luck explains.
exit codes: 0 all passed, 1 some failed, 2 bad input
"""


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        "evalcore check",
        description="Hold a run against limits and against another run; fail on evidence, not on noise.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    out.add_argument("run", metavar="RUN", help="run folder, lm-eval output or sample log")
    keys = "KEY: metric, task/metric, either with ,filter; a group is named like a task"
    out.add_argument("--min", action="append", default=[], metavar="KEY=VALUE", help=f"the least value. {keys}")
    out.add_argument("--max", action="append", default=[], metavar="KEY=VALUE", help="the greatest value")
    out.add_argument("--strict", action="store_true", help="limits hold for the numbers themselves, evidence or not")
    out.add_argument("--baseline", metavar="RUN", help="no number may be worse than this run's")
    out.add_argument("--alpha", type=float, default=0.05, metavar="X", help="how often luck alone may fail it (0.05)")
    out.add_argument("--correction", default="holm", metavar="NAME", help="for the tests of --baseline: holm, bh, none")
    out.add_argument("--cluster", metavar="FIELD", help="documents with the same value there count together")
    out.add_argument(
        "--draws", type=int, default=10_000, metavar="N", help="sign flips where a test needs them (10000)"
    )
    out.add_argument("--junit", metavar="FILE", help="write JUnit XML there")
    out.add_argument("--json", action="store_true", help="print JSON")
    return out


def main(argv: Sequence[str]) -> int:
    """Judge every gate, print all of them; the exit code says whether one failed."""
    given, started = parser().parse_args(argv), perf_counter()
    if not (given.min or given.max or given.baseline):
        raise EvalError("expected a gate: --min KEY=VALUE, --max KEY=VALUE or --baseline RUN")
    if not 0 < given.alpha < 0.5:
        raise EvalError(f"expected --alpha between 0 and 0.5, got {given.alpha:g}")
    if given.draws < 1:
        raise EvalError(f"expected --draws of at least 1, got {given.draws}")
    from evalcore.shell.output.gates import write_gates, write_gates_json
    from evalcore.shell.output.show import terminal_width, wants_colour, write_text

    checked = check(given)
    if given.junit:
        from evalcore.shell.output.junit import write_junit

        write_junit(Path(given.junit), checked, seconds=perf_counter() - started)
    out = sys.stdout
    text = (
        write_gates_json(checked)
        if given.json
        else write_gates(checked, width=terminal_width(out), colour=wants_colour(out))
    )
    write_text(out, text)
    return 0 if checked.passed else 1


def check(given: argparse.Namespace) -> Checked:
    """Every gate that was asked for."""
    from evalcore.core.gates import judge_limits, parse_limit
    from evalcore.shell.output.gates import Checked
    from evalcore.shell.output.losses import lost_of, told_losses
    from evalcore.shell.recorded import read_recorded
    from evalcore.shell.recorded.reading import rule_of

    limits = [*(parse_limit("min", one) for one in given.min), *(parse_limit("max", one) for one in given.max)]
    run = read_recorded(Path(given.run), cluster=given.cluster)
    report = close_side(run.side, 1 - 2 * given.alpha, rule_of(run.results))
    gates = judge_limits(limits, report, strict=given.strict)
    notes = (*told_losses(lost_of(report)), *run.warnings)
    if given.baseline:
        baseline = read_recorded(Path(given.baseline), cluster=given.cluster)
        more, told = hold_against(run.side, baseline.side, given.alpha, given.correction, given.draws)
        gates, notes = (*gates, *more), (*notes, *told, *(f"baseline: {one}" for one in baseline.warnings))
    return Checked(
        run=given.run,
        gates=gates,
        baseline=given.baseline,
        alpha=given.alpha,
        correction=given.correction,
        strict=given.strict,
        notes=tuple(dict.fromkeys(notes)),
    )


def close_side(side: Side, confidence: float, rule: Rule) -> Report:
    """A run's numbers, with intervals of this confidence."""
    from evalcore.core.aggregate import Inference
    from evalcore.core.pipeline import build_report, report_task

    inference = Inference(confidence=confidence, on_unscorable=rule)
    return build_report([report_task(one, inference=inference) for one in side.scored], side.trees, inference=inference)


def hold_against(
    run: Side, baseline: Side, alpha: float, correction: str, draws: int
) -> tuple[tuple[Gate, ...], tuple[str, ...]]:
    """A gate for every number that both runs have, and what they do not share."""
    from evalcore.core.comparing import compare_sides
    from evalcore.core.comparison import adjust
    from evalcore.core.gates import find_regressions, warn_of_draws
    from evalcore.shell.output.gates import tell_missing

    comparison = compare_sides(run, baseline, draws=draws)
    gates, missing = find_regressions(comparison, alpha=alpha, correction=correction), tell_missing(comparison)
    if all(gate.passed is None for gate in gates):
        why = [*dict.fromkeys(gate.verdict for gate in gates), *missing]
        raise EvalError(
            f"nothing of the run can be held against the baseline: {'; '.join(why) or 'they share no task'}"
        )
    # A one-sided p-value is half of a two-sided one, so that twice alpha is what the flips must reach.
    return gates, (*missing, *warn_of_draws(adjust([comparison], correction), draws, 2 * alpha))
