"""Two or more runs on the same documents, every pair of them compared and all p-values corrected together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Unpack

from msgspec.structs import replace

from evalcore.core.compare.gates import Number, choose_numbers
from evalcore.core.compare.lines import Comparison, Correction, adjust_comparisons
from evalcore.core.compare.sides import compare_sides
from evalcore.core.compare.verdicts.margins import hold_to_margin
from evalcore.core.compare.verdicts.points import refuse_margin
from evalcore.core.compare.verdicts.regressions import warn_of_draws
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenRecord
from evalcore.core.records.task import MetricKey
from evalcore.core.tables import EVALCORE
from evalcore.shell.compare.alike import Alike, align_pairs
from evalcore.shell.compare.conditions import explain_pairing, tell_pairs, tell_settings, tell_twins
from evalcore.shell.compare.rule_changes import OTHER_RULES, select_rules, tell_rules, tell_unknown_rules
from evalcore.shell.compare.run_names import Aliases, agree_aliases, choose_names, find_aliased, label_runs
from evalcore.shell.compare.run_sides import ReadKeys, read_sides
from evalcore.shell.config.values import Names, RunPath, list_names, split_names
from evalcore.shell.files.given import parse_path
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.output.terminal.screen import DisplayedResult

MOST = 5
ANY = MetricKey("")


class Compared(DisplayedResult, FrozenRecord, frozen=True, kw_only=True):
    """Runs side by side: a comparison of every pair of them, corrected together.

    ``flips`` and ``unmatched`` say how many documents of each kind to list (None: all). ``lead`` is what a reader must
    know before any number, ``notes`` what else there is to know.
    """

    runs: tuple[Recorded, ...]
    names: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    comparisons: tuple[Comparison, ...]
    flips: int | None = 0
    unmatched: int | None = 3
    warnings: tuple[str, ...] = ()
    lead: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        return label_runs(len(self.runs))

    @property
    def aliases(self) -> Aliases:
        return agree_aliases(run.results for run in self.runs)

    @property
    def alpha(self) -> float:
        return self.comparisons[0].alpha

    @property
    def margin(self) -> float | None:
        return self.comparisons[0].margin


def compare(
    a: RunPath,
    b: RunPath,
    *more: RunPath,
    names: Names | None = None,
    task: Names = (),
    metric: Names = (),
    flips: int | None = 0,
    unmatched: int | None = 3,
    confidence: float = 0.95,
    correction: str | Correction = "holm",
    margin: float | None = None,
    draws: int = 10_000,
    seed: int = 0,
    rules_may_differ: bool = False,
    **reading: Unpack[ReadKeys],
) -> Compared:
    """Compare every pair of runs; the keys are the flags of ``evalcore compare``.

    >>> compare("runs/new", "runs/old", confidence=95)
    Traceback (most recent call last):
    evalcore.EvalError: expected --confidence between 0 and 1, got 95
    """
    if not 0 < confidence < 1:
        raise EvalError(f"expected --confidence between 0 and 1, got {confidence:g}")
    if margin is not None and not 0 < margin < float("inf"):
        raise EvalError(f"expected --margin above 0, such as 0.01, got {margin:g}")
    if draws < 1:
        raise EvalError(f"expected --draws of at least 1, got {draws}")
    paths = (a, b, *more)
    named = choose_names(names, paths)
    runs, read = read_sides(paths, **reading)
    sides = [replace(side, name=name) for side, name in zip(read, named, strict=True)]
    pairs = tuple(combinations(range(len(runs)), 2))
    aligned = align_pairs(runs, sides, pairs)
    versus = partial(compare_sides, confidence=confidence, draws=draws, seed=seed, tables=runs[0].tables or EVALCORE)
    compared = [versus(one, two) for one, two, _ in aligned]
    reasons = [warning for run in runs for warning in run.warnings]
    tasks = find_aliased(split_names(task), agree_aliases(run.results for run in runs))
    adjusted = adjust_comparisons(select_lines(compared, tasks, list_names(metric), reasons), correction)
    if margin is not None:
        refuse_margin((line for one in adjusted for line in one.lines), margin)
        adjusted = hold_to_margin(adjusted, margin)
    bare = Compared(runs=runs, names=named, pairs=pairs, comparisons=adjusted, flips=flips, unmatched=unmatched)
    told = (
        *warn_of_draws(adjusted, draws, bare.alpha),
        *tell_twins(bare.labels, [parse_path(path) for path in paths]),
    )
    return _add_words(replace(bare, warnings=told), [alike for *_, alike in aligned], rules_may_differ)


def _add_words(compared: Compared, likeness: Sequence[Mapping[str, Alike]], rules_may_differ: bool) -> Compared:
    """Add what to know besides the numbers: what was paired, and in what else the runs differ."""
    labels, comparisons = compared.labels, compared.comparisons
    pairs = [((labels[a], labels[b]), one) for (a, b), one in zip(compared.pairs, comparisons, strict=True)]
    alike = dict.fromkeys(line for one in comparisons for line in tell_pairs(one.documents))
    unlike = dict.fromkeys(line for pair, one in pairs for line in tell_rules(pair, one.rules))
    unsure = dict.fromkeys(line for pair, one in pairs for line in tell_unknown_rules(pair, one))
    lead = () if rules_may_differ or not unlike else (*unlike, OTHER_RULES)
    return replace(
        compared,
        warnings=(*compared.warnings, *tell_settings(labels, compared.runs), *alike),
        lead=(*lead, *_explain_pairs(compared, likeness)),
        notes=tuple(dict.fromkeys([*(unlike if rules_may_differ else ()), *unsure])),
    )


def _explain_pairs(compared: Compared, alike: Sequence[Mapping[str, Alike]]) -> tuple[str, ...]:
    """Why few documents of some tasks are in two runs; an error if none of any is."""
    lines = [
        line
        for (a, b), comparison, likeness in zip(compared.pairs, compared.comparisons, alike, strict=True)
        for line in explain_pairing(
            (compared.labels[a], compared.labels[b]),
            (compared.runs[a], compared.runs[b]),
            comparison.documents,
            likeness,
            most=compared.unmatched,
        )
    ]
    if not any(shared.both for comparison in compared.comparisons for shared in comparison.documents):
        renamed = [warning for run in compared.runs for warning in run.warnings if run.renamed is not None]
        why = " ".join(dict.fromkeys((*lines, *renamed))) or "they share no task"
        raise EvalError(f"no document is in two runs: {why}")
    return tuple(dict.fromkeys(lines))


# --- selection ------------------------------------------------------------------------------------------------------


def select_lines(
    comparisons: Sequence[Comparison],
    tasks: Sequence[str] = (),
    metrics: Sequence[str] = (),
    warnings: Iterable[str] = (),
) -> tuple[Comparison, ...]:
    """Only the tasks and groups that match a glob, only these metrics (``acc`` or ``acc,none``), if any are named.

    What is said of documents is kept for the tasks that match; for all of them where a group does. ``warnings`` are
    those of the runs, which say why a number is in none.

    >>> from evalcore.core.compare.lines import ComparisonLine
    >>> both = Comparison(names=("a", "b"), lines=(ComparisonLine(name="t", key=MetricKey("acc")),))
    >>> select_lines([both], metrics=["ac"])
    Traceback (most recent call last):
    evalcore.EvalError: unknown metric 'ac'; did you mean 'acc'? Known: acc, acc,none
    """
    lines = [line for comparison in comparisons for line in comparison.lines]
    reasons = dict.fromkeys([*warnings, *(warning for comparison in comparisons for warning in comparison.warnings)])
    alone = [name for comparison in comparisons for name in (*comparison.tasks_only_a, *comparison.tasks_only_b)]
    names, keys = {*(line.name for line in lines), *alone}, {line.key for line in lines}
    if not lines and not alone and reasons:  # no name that was asked for is unknown: there are no numbers at all
        raise EvalError(f"nothing to compare: no number is in two runs; {_shorten(reasons)}")
    chosen, named = choose_numbers(tasks, metrics, names, keys), choose_numbers(tasks, (), names, ())
    selected = tuple(_select(comparison, chosen, lambda name: named((name, ANY))) for comparison in comparisons)
    if not any(comparison.lines for comparison in selected):
        sides = "; ".join(f"{' and '.join(comparison.names)}: {_tell_alone(comparison)}" for comparison in selected)
        why = f"; {_shorten(reasons)}" if reasons else ""
        raise EvalError(f"nothing to compare: no number that was asked for is in two runs ({sides}){why}")
    return selected


def _select(comparison: Comparison, chosen: Callable[[Number], bool], named: Callable[[str], bool]) -> Comparison:
    lines = tuple(line for line in comparison.lines if chosen((line.name, line.key)))
    every = any(line.group for line in lines)
    return replace(
        select_rules(replace(comparison, lines=lines), chosen),
        documents=tuple(shared for shared in comparison.documents if every or named(shared.task)),
        tasks_only_a=tuple(filter(named, comparison.tasks_only_a)),
        tasks_only_b=tuple(filter(named, comparison.tasks_only_b)),
    )


def _shorten(reasons: Collection[str]) -> str:
    left = len(reasons) - MOST
    return "; ".join(list(reasons)[:MOST]) + (f"; and {left:,} more" if left > 0 else "")


def _tell_alone(comparison: Comparison) -> str:
    """Which tasks each of two runs has alone."""
    sides = zip(("first", "second"), (comparison.tasks_only_a, comparison.tasks_only_b), strict=True)
    alone = [f"only the {which} has {', '.join(names)}" for which, names in sides if names]
    return ", ".join(alone) or "they have the same tasks"
