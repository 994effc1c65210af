"""How many documents and repeats a difference or an interval takes, planned from a run's own spread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Unpack

from evalcore.core.compare.gates import choose_numbers
from evalcore.core.compare.power import Known, PowerGoal, PowerPlan, pair_known, plan_next
from evalcore.core.compare.sides import compare_sides
from evalcore.core.compare.verdicts.points import explain_points
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord
from evalcore.core.tables import EVALCORE
from evalcore.shell.compare.alike import align_sides
from evalcore.shell.compare.conditions import explain_pairing, tell_pairs
from evalcore.shell.compare.filter_names import parse_filters, rename_filter
from evalcore.shell.compare.rule_changes import tell_rules
from evalcore.shell.compare.run_names import Aliases, agree_aliases, find_aliased
from evalcore.shell.compare.run_sides import LogKeys, ReadKeys, read_known, read_sides
from evalcore.shell.config.values import Names, RunPath, list_names, split_names
from evalcore.shell.output.terminal.screen import DisplayedResult


class Planned(DisplayedResult, FrozenRecord, frozen=True, kw_only=True):
    """Plans for the next run, what was asked, the files that were read, what a reader must know first, and warnings.

    ``aliases`` are what tables call tasks and groups.
    """

    plans: tuple[PowerPlan, ...]
    asked: PowerGoal
    read: tuple[str, ...]
    aliases: Aliases = FrozenDict()
    lead: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def plan_power(
    run: RunPath,
    other: RunPath | None = None,
    *,
    difference: float | None = None,
    half_width: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    repeats: Sequence[int] = (1, 2, 4, 8),
    correlation: float | None = None,
    task: Names = (),
    metric: Names = (),
    match_filter: Names = (),
    **reading: Unpack[LogKeys],
) -> Planned:
    """Plan the next run from the spread of one run, or of two; the keys are the flags of ``evalcore power``.

    >>> plan_power("runs/new", "runs/old", correlation=0.3)
    Traceback (most recent call last):
    evalcore.EvalError: --correlation stands in for a second run; with RUN2 it is measured, leave it out
    """
    if other is not None and correlation is not None:
        raise EvalError("--correlation stands in for a second run; with RUN2 it is measured, leave it out")
    if other is None and match_filter:
        raise EvalError("--match-filter is about the filters of RUN2, and there is none")
    asked = PowerGoal(
        difference=difference,
        half_width=half_width,
        alpha=alpha,
        power=power,
        repeats=tuple(repeats),
        **({} if correlation is None else {"correlation": correlation}),
    )
    read = [read_known(path, **reading) for path in (run, other) if path is not None]
    known, notes = read[0].numbers, [one for each in read for one in each.warnings]
    lead: tuple[str, ...] = ()
    if other is not None:
        pair: ReadKeys = {**reading, "match_filter": match_filter}  # type: ignore[typeddict-item]
        known, lead, warnings = _pair_runs((str(run), str(other)), known, read[1].numbers, pair)
        notes += warnings
    aliases = agree_aliases(one.results for one in read)
    chosen = _select_known(known, find_aliased(split_names(task), aliases), list_names(metric))
    _refuse_points(chosen, difference or half_width or 0.0)
    return Planned(
        plans=tuple(plan_next(number, asked) for number in chosen),
        asked=asked,
        read=tuple(one.file for one in read),
        aliases=aliases,
        lead=lead,
        notes=tuple(notes),
    )


def _pair_runs(
    paths: tuple[str, str], known_a: Iterable[Known], known_b: Iterable[Known], reading: ReadKeys
) -> tuple[tuple[Known, ...], tuple[str, ...], tuple[str, ...]]:
    """What is known of the difference between two runs, document by document; what leads all else, and warnings."""
    (a, b), sides = read_sides(paths, **reading)
    *aligned, alike = align_sides((a, b), (sides[0], sides[1]))
    compared = compare_sides(aligned[0], aligned[1], draws=1, tables=a.tables or EVALCORE)
    lead = explain_pairing(paths, (a, b), compared.documents, alike)
    if not any(shared.both for shared in compared.documents):
        raise EvalError(f"no document is in both runs: {' '.join(lead) or 'they share no task'}")
    names = parse_filters(list_names(reading.get("match_filter", ())))
    of_a = {(known.name, known.key): known for known in known_a}
    renamed = ((known, rename_filter(known.key, names)) for known in known_b)
    of_b = {(known.name, key): known for known, key in renamed if key is not None}
    own: tuple[str, ...] = ()
    if b.renamed is not None:  # under the name of the first run's task
        own, of_b = b.warnings, {(a.side.scored[0].task.name, key): known for (_, key), known in of_b.items()}
    paired = {
        (line.name, line.key): pair_known(line, of_a.get((line.name, line.key)), of_b.get((line.name, line.key)))
        for line in compared.lines
    }
    order = [*(number for number in of_a if number in paired), *(number for number in paired if number not in of_a)]
    warnings = (*own, *tell_rules(paths, compared.rules), *tell_pairs(compared.documents), *compared.warnings)
    return tuple(paired[number] for number in order), lead, warnings


def _select_known(known: Sequence[Known], tasks: Sequence[str], metrics: Sequence[str]) -> list[Known]:
    """Only the tasks and groups that match a glob, only these metrics (``acc`` or ``acc,none``), if any are named.

    >>> _select_known([], ["t*"], [])
    Traceback (most recent call last):
    evalcore.EvalError: unknown task or group 't*'...
    """
    chosen = choose_numbers(tasks, metrics, (number.name for number in known), (number.key for number in known))
    return [number for number in known if chosen((number.name, number.key))]


def _refuse_points(known: Iterable[Known], goal: float) -> None:
    """Points where shares are meant: no two scores between 0 and 1 are 1 or more apart.

    >>> _refuse_points([], 5)
    """
    share = next((number for number in known if number.share), None) if goal >= 1 else None
    if share is not None:
        instead = "choose other numbers with --task or --metric if that is not what you mean"
        raise explain_points((share.name, share.key), goal, instead)
