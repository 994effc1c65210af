"""A run held against its baseline: a gate for every number, and for every task of which too little can be paired."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.aggregate.inference import Inference
from evalcore.core.compare.gates import Gate, Number, choose_numbers, level_of_limits, numbers_of
from evalcore.core.compare.lines import Comparison, ComparisonSide, Correction, Shared, adjust_comparisons
from evalcore.core.compare.sides import compare_sides
from evalcore.core.compare.verdicts.pair_gates import find_hidden, find_unpaired, find_unscored
from evalcore.core.compare.verdicts.points import refuse_margin
from evalcore.core.compare.verdicts.regressions import fail_missing, find_regressions, numbers_of_side, warn_of_draws
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Estimate
from evalcore.core.tables import EVALCORE, Tables
from evalcore.shell.compare.alike import align_sides
from evalcore.shell.compare.conditions import explain_pairing, tell_pairs, tell_settings
from evalcore.shell.compare.rule_changes import (
    OTHER_RULES,
    find_rule_gates,
    select_rules,
    tell_rules,
    tell_unknown_rules,
)
from evalcore.shell.logs.runs.run_record import Recorded, close_recorded
from evalcore.shell.logs.runs.totals import list_total_estimates
from evalcore.shell.output.terminal.losses import find_losses, tell_losses

SIDES = ("the run", "the baseline")
LIMITS = "exact"
"""The kind of interval that limits are judged by."""


class CheckKeys(Struct, frozen=True, kw_only=True):
    """What a check asks of a run, in the words of its flags."""

    strict: bool
    margin: float | None
    shown: bool
    allow_missing: bool
    rules_may_differ: bool
    max_unscored: float | None
    tasks: tuple[str, ...]
    metrics: tuple[str, ...]
    alpha: float
    correction: Correction
    draws: int
    seed: int


class HeldGates(Struct, frozen=True):
    """Gates, the confidence of the intervals they were judged by, what a reader must know first, and what else."""

    gates: tuple[Gate, ...] = ()
    level: float | None = None
    lead: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def close_run(run: Recorded, confidence: float) -> tuple[dict[Number, Estimate], tuple[str, ...]]:
    """A run's numbers, with the intervals that limits are judged by, of this confidence, and what it lost.

    The intervals are exact, whatever kind the run has: a Wilson interval of 90 % is below the truth in up to 14 % of
    cases. Numbers without samples are taken from its results.
    """
    report = close_recorded(run, confidence, LIMITS)
    known = numbers_of(report)
    totals = list_total_estimates(run.results, Inference(confidence=confidence, interval=LIMITS))
    others = {at: total for at, total in totals.items() if at not in known}
    return {**known, **others}, tell_losses(find_losses(report))


def hold_against(runs: Sequence[Recorded], sides: Sequence[ComparisonSide], keys: CheckKeys) -> HeldGates:
    """A gate for every number of the baseline; the second of two runs."""
    level = level_of_limits(keys.alpha, 1)
    *sides, alike = align_sides((runs[0], runs[1]), (sides[0], sides[1]))
    tables = runs[0].tables or EVALCORE
    chosen, comparison = _compare_chosen(sides, keys, level, tables)
    refuse_undirected(comparison)
    refuse_margin(comparison.lines, keys.margin)
    judge = partial(
        find_regressions, alpha=keys.alpha, correction=keys.correction, margin=keys.margin, shown=keys.shown
    )
    gates = judge(comparison)
    judged = sum(gate.passed is not None for gate in gates)
    if keys.margin is not None and keys.correction.corrects and judged > 1 and not keys.shown:
        level = level_of_limits(keys.alpha, judged)
        gates = judge(_compare_chosen(sides, keys, level, tables)[1])
    gates = fail_missing(gates, sides[0], sides[1], chosen, allow=keys.allow_missing)
    if keys.max_unscored is not None:
        as_scored = [replace(run.side, documents=side.documents) for run, side in zip(runs, sides, strict=True)]
        lost = find_unscored(as_scored[0], as_scored[1], keys.max_unscored)
        gates = (*gates, *(gate for gate in lost if chosen((gate.name, gate.key))))
    names, groups = {gate.name for gate in gates}, any(line.group for line in comparison.lines)
    asked = [shared for shared in comparison.documents if groups or shared.task in names]  # a group rests on its tasks
    gates = _judge_pairs(gates, runs, comparison, asked, keys)
    rules = tell_rules(SIDES, comparison.rules)
    may = keys.rules_may_differ
    gates = (*gates, *(() if may else find_rule_gates(SIDES, comparison.rules)))
    lead = ((*rules, OTHER_RULES) if rules and not may else ()) + explain_pairing(
        SIDES, (runs[0], runs[1]), asked, alike
    )
    unlike = (*(rules if may else ()), *tell_settings(SIDES, runs), *tell_pairs(comparison.documents))
    notes = (*unlike, *tell_missing(comparison), *tell_unknown_rules(SIDES, comparison))
    if not any(shared.both for shared in comparison.documents) or all(gate.passed is None for gate in gates):
        why = [*lead, *notes, *dict.fromkeys(gate.verdict for gate in gates)]
        raise EvalError(
            f"nothing of the run can be held against the baseline: {'; '.join(why) or 'no task is in both'}"
        )
    # A one-sided p-value is half of a two-sided one, so that twice alpha is what the flips must reach.
    flips = warn_of_draws(adjust_comparisons([comparison], keys.correction), keys.draws, 2 * keys.alpha)
    return HeldGates(gates, level, lead, (*notes, *flips, *(f"baseline: {warning}" for warning in runs[1].warnings)))


def refuse_undirected(comparison: Comparison) -> None:
    """Ask for the direction of metrics that have none: a gate that nobody can judge must not pass.

    Where both runs have the same scores, none is needed.

    >>> from evalcore.core.compare.lines import ComparisonLine
    >>> from evalcore.core.records.task import MetricKey
    >>> line = ComparisonLine(name="t", key=MetricKey("loss"), difference=0.5)
    >>> refuse_undirected(Comparison(names=("new", "old"), lines=(line,)))
    Traceback (most recent call last):
    evalcore.EvalError: whether loss got worse cannot be judged, because its direction is unknown; add ...
    """
    moved = [line for line in comparison.lines if line.difference or line.better or line.worse]
    names = list(dict.fromkeys(line.key.metric for line in moved if line.higher_is_better is None))
    if names:
        say = ", ".join(f"--lower_is_better {name} or --higher_is_better {name}" for name in names)
        known = "its direction is" if len(names) == 1 else "their directions are"
        raise EvalError(
            f"whether {', '.join(names)} got worse cannot be judged, because {known} unknown; add {say}, or name the "
            "metrics to check (--metric NAME)"
        )


def _judge_pairs(
    gates: tuple[Gate, ...],
    runs: Sequence[Recorded],
    comparison: Comparison,
    asked: Sequence[Shared],
    keys: CheckKeys,
) -> tuple[Gate, ...]:
    """The gates, with one for every task of which too few documents are paired, or whose pairs may hide what failed."""
    gates = (*gates, *find_unpaired(asked, allow=keys.allow_missing))
    if not any(shared.unclear for shared in asked):
        return gates
    whole = (close_run(runs[0], 1 - keys.alpha)[0], close_run(runs[1], 1 - keys.alpha)[0])
    hidden = find_hidden(comparison, asked, whole, alpha=keys.alpha, margin=keys.margin or 0.0)
    failed = {gate.name for gate in gates if gate.passed is False}
    return (*gates, *(gate for gate in hidden if gate.name not in failed))


def _compare_chosen(
    sides: Sequence[ComparisonSide], keys: CheckKeys, confidence: float, tables: Tables
) -> tuple[Callable[[Number], bool], Comparison]:
    """Which numbers are asked about, and the run minus the baseline in these."""
    every = compare_sides(sides[0], sides[1], confidence=confidence, draws=keys.draws, seed=keys.seed, tables=tables)
    known = [*((line.name, line.key) for line in every.lines), *numbers_of_side(sides[1])]
    chosen = choose_numbers(keys.tasks, keys.metrics, (name for name, _ in known), (key for _, key in known))
    kept = replace(every, lines=tuple(line for line in every.lines if chosen((line.name, line.key))))
    return chosen, select_rules(kept, chosen)


def tell_missing(comparison: Comparison) -> tuple[str, ...]:
    """What of a run and its baseline could not be held against each other.

    >>> tell_missing(Comparison(names=("new", "old"), lines=(), tasks_only_a=("gsm8k",)))
    ('not compared, only in the run: gsm8k',)
    """
    extra = comparison.tasks_only_a
    tasks = (f"not compared, only in the run: {', '.join(extra)}",) if extra else ()
    documents = (
        f"{shared.task}: not compared, {len(shared.only_a):,} documents only in the run and {len(shared.only_b):,} only"
        f" in the baseline; {shared.both:,} are in both"
        for shared in comparison.documents
        if shared.only_a or shared.only_b
    )
    unscored = (
        f"{line.name} {line.key}: not compared, {line.unscored:,} documents without a score in one of the two"
        for line in comparison.lines
        if line.unscored and not line.group
    )
    return (*tasks, *documents, *unscored, *comparison.warnings)
