"""A gate for CI: a run held to limits and against another run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from msgspec.structs import replace

from evalcore.core.compare.gates import (
    Gate,
    Limit,
    judge_limits,
    level_of_limits,
    match_limits,
    parse_limit,
)
from evalcore.core.compare.lines import CORRECTIONS, Correction, find_correction
from evalcore.core.compare.verdicts.points import refuse_points
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord
from evalcore.shell.compare.baseline import CheckKeys, HeldGates, close_run, hold_against
from evalcore.shell.compare.conditions import find_model
from evalcore.shell.compare.run_names import Aliases, agree_aliases, find_aliased
from evalcore.shell.compare.run_sides import ReadKeys, read_run, read_sides
from evalcore.shell.config.values import Names, RunPath, list_names, split_names
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.output.terminal.screen import DisplayedResult


class Checked(DisplayedResult, FrozenRecord, frozen=True, kw_only=True):
    """A run's gates, and what else to know. ``runs`` are path and model of what was read.

    ``aliases`` are what tables call tasks and groups; ``lead`` is what a reader must know before any gate.
    """

    run: str
    gates: tuple[Gate, ...]
    runs: tuple[tuple[str, str], ...] = ()
    aliases: Aliases = FrozenDict()
    baseline: str | None = None
    alpha: float = 0.05
    correction: Correction = CORRECTIONS["holm"]
    confidence: float = 0.9
    difference_confidence: float | None = None
    strict: bool = False
    margin: float | None = None
    shown: bool = False
    lead: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not any(gate.passed is False for gate in self.gates)


def check_run(
    run: RunPath,
    *,
    min: Names = (),
    max: Names = (),
    strict: bool = False,
    baseline: RunPath | None = None,
    margin: float | None = None,
    shown: bool = False,
    allow_missing: bool = False,
    rules_may_differ: bool = False,
    max_unscored: float | None = None,
    task: Names = (),
    metric: Names = (),
    alpha: float = 0.05,
    correction: str | Correction = "holm",
    draws: int = 10_000,
    seed: int = 0,
    **reading: Unpack[ReadKeys],
) -> Checked:
    """Judge every gate that is asked for; the keys are the flags of ``evalcore check``.

    >>> check_run("runs/new")
    Traceback (most recent call last):
    evalcore.EvalError: expected a gate: --min KEY=VALUE, --max KEY=VALUE or --baseline RUN
    """
    if not (min or max or baseline is not None):
        raise EvalError("expected a gate: --min KEY=VALUE, --max KEY=VALUE or --baseline RUN")
    keys = CheckKeys(
        strict=strict,
        margin=margin,
        shown=shown,
        allow_missing=allow_missing,
        rules_may_differ=rules_may_differ,
        max_unscored=max_unscored,
        tasks=split_names(task),
        metrics=list_names(metric),
        alpha=alpha,
        correction=find_correction(correction),
        draws=draws,
        seed=seed,
    )
    _refuse_keys(keys, baseline is not None, reading)
    limits = [
        *(parse_limit("min", text) for text in list_names(min)),
        *(parse_limit("max", text) for text in list_names(max)),
    ]
    return _judge_run(run, baseline, limits, keys, reading)


def _judge_run(
    run: RunPath, baseline: RunPath | None, limits: Sequence[Limit], keys: CheckKeys, reading: ReadKeys
) -> Checked:
    """Judge a run by its limits, and against its baseline if there is one."""
    runs, sides = ((read_run(run, **reading),), ()) if baseline is None else read_sides((run, baseline), **reading)
    aliases = agree_aliases(one.results for one in runs)
    keys = replace(keys, tasks=find_aliased(keys.tasks, aliases))
    level, gates, notes = _hold_to_limits([_name_limit(limit, aliases) for limit in limits], runs[0], keys)
    against = hold_against(runs, sides, keys) if sides else HeldGates()
    idle = ("--strict is about limits, and there are none",) if keys.strict and not limits else ()
    return Checked(
        runs=tuple((str(one.path if one.path.name else one.path.resolve()), find_model(one.results)) for one in runs),
        run=str(run),
        aliases=aliases,
        gates=(*gates, *against.gates),
        baseline=None if baseline is None else str(baseline),
        alpha=keys.alpha,
        correction=keys.correction,
        strict=keys.strict,
        margin=keys.margin,
        shown=keys.shown,
        confidence=level,
        difference_confidence=against.level,
        lead=against.lead,
        notes=tuple(dict.fromkeys((*idle, *notes, *against.notes))),
    )


def _name_limit(limit: Limit, aliases: Aliases) -> Limit:
    """A limit that may name its task by its alias.

    >>> _name_limit(Limit("min", "nature/acc", 0.5), {"my_nature": "nature"}).key
    'my_nature/acc'
    """
    name, mark, metric = limit.key.rpartition("/")
    return replace(limit, key=f"{find_aliased([name], aliases)[0]}{mark}{metric}")


def _refuse_keys(keys: CheckKeys, baseline: bool, reading: ReadKeys) -> None:
    """Keys that make no sense, alone or together."""
    if not 0 < keys.alpha < 0.5:
        raise EvalError(f"expected --alpha between 0 and 0.5, got {keys.alpha:g}")
    if keys.draws < 1:
        raise EvalError(f"expected --draws of at least 1, got {keys.draws}")
    if keys.margin is not None and not 0 <= keys.margin < float("inf"):
        raise EvalError(f"expected --margin of at least 0, such as 0.01, got {keys.margin:g}")
    if keys.shown and keys.margin is None:
        raise EvalError("expected --margin X with --shown: the drop that is shown not to be there, such as 0.01")
    if keys.max_unscored is not None and not 0 <= keys.max_unscored <= 1:
        raise EvalError(f"expected --max_unscored between 0 and 1, such as 0.01, got {keys.max_unscored:g}")
    needing = {
        "task": keys.tasks,
        "metric": keys.metrics,
        "margin": keys.margin,
        "allow_missing": keys.allow_missing,
        "rules_may_differ": keys.rules_may_differ,
        "max_unscored": keys.max_unscored,
        "match_filter": reading.get("match_filter"),
        "higher_is_better": reading.get("higher_is_better"),
        "lower_is_better": reading.get("lower_is_better"),
    }
    lone = next((name for name, value in needing.items() if value), None)
    if lone is not None and not baseline:
        raise EvalError(f"--{lone} is about --baseline RUN, and there is none; a limit names its numbers itself")


def _hold_to_limits(
    limits: Sequence[Limit], run: Recorded, keys: CheckKeys
) -> tuple[float, tuple[Gate, ...], tuple[str, ...]]:
    """The confidence of the intervals that limits are judged by, a gate for each number, and what to know."""
    estimates, losses = close_run(run, level_of_limits(keys.alpha, 1))
    refuse_points(limits, estimates)
    count = len(match_limits(limits, estimates)) if keys.correction.corrects else 1
    level = level_of_limits(keys.alpha, count)
    estimates = close_run(run, level)[0] if count > 1 else estimates
    gates = judge_limits(limits, estimates, strict=keys.strict)
    bare = [f"{gate.name} {gate.key}" for gate in gates if gate.ci is None and gate.value is not None]
    judged = f"without an interval, judged by the number itself: {', '.join(bare)}"
    return level, gates, (*([judged] if bare and not keys.strict else []), *losses, *run.warnings)
