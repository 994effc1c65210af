"""A unit scored: what a worker does. It gets a plan and a range of a file, and returns packed scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import NamedTuple
from uuid import uuid4

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.partials.codec import pack, unpack
from evalcore.core.partials.partial import KNOWN, Partial, unite_partials
from evalcore.core.partials.span import Span
from evalcore.core.records.array import Array
from evalcore.core.records.errors import EvalError
from evalcore.shell.engines.interface import SERIAL
from evalcore.shell.logs.json_records import refuse_problems
from evalcore.shell.logs.log import Logged, LogTask
from evalcore.shell.logs.readers import READERS
from evalcore.shell.logs.units.unit import Unit, UnitNotes
from evalcore.shell.run.collector import without_collector
from evalcore.shell.safety.timer import allow_seconds
from evalcore.shell.score.recipes import choose_config
from evalcore.shell.score.stream import LogPass
from evalcore.shell.score.units.kept import Keep, list_makers
from evalcore.shell.score.units.log_plan import LogPlan, ScorePlan, plan_log, select_chosen
from evalcore.shell.score.units.log_scores import score_tasks


class WorkItem(NamedTuple):
    """A unit of a log, by its number among those that are scored; without a unit, all of the log."""

    log: int
    unit: Unit | None
    spans: tuple[Span, ...]


class SharedPlan(Struct, frozen=True, eq=False):
    """What all units share: the plan and the logs. Workers keep what they make of it under its ``token``."""

    asked: ScorePlan
    logs: tuple[LogTask, ...]
    scores: tuple[tuple[str, ...], ...]
    made: tuple[str, ...]
    token: str

    def __hash__(self) -> int:
        return hash(self.token)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedPlan) and other.token == self.token


class UnitWork(Struct, frozen=True):
    """Scores the unit it is given; importable, so that it can be sent to any worker."""

    shared: SharedPlan
    keep: Keep | None = None

    def __call__(self, item: object) -> bytes:
        if not isinstance(item, WorkItem):
            raise TypeError(f"expected a unit of work, got {item!r}")
        made = score_unit(_plan(self.shared, item.log), item)
        if self.keep is not None:
            self.keep.write(item.log, made)
        return pack([(item.log, made)], KNOWN)


def share(plans: Sequence[LogPlan], asked: ScorePlan) -> SharedPlan:
    """Gather what all units share."""
    scores = tuple(planned.asked.rules.scores for planned in plans)
    plain = replace(asked, engine=SERIAL, readers=READERS)  # of which a worker needs neither
    return SharedPlan(plain, tuple(planned.log for planned in plans), scores, list_makers(), uuid4().hex)


@lru_cache(maxsize=4)
def _select_configs(shared: SharedPlan) -> dict[str, dict[str, object]]:
    chosen = select_chosen(shared.asked).configs if shared.asked.tasks else {}
    return {name: dict(config) for name, config in chosen.items()}


@lru_cache(maxsize=4096)
def _plan(shared: SharedPlan, at: int) -> LogPlan:
    if (made := list_makers()) != shared.made:
        told = f"expected workers with {', '.join(shared.made)}, got {', '.join(made)}"
        raise EvalError(f"{told}, whose bits may differ; install the same there")
    log, asked = shared.logs[at], shared.asked
    own = replace(asked, rules=replace(asked.rules, scores=shared.scores[at]))
    return plan_log(log, own, choose_config(log, _select_configs(shared)))


def score_unit(planned: LogPlan, item: WorkItem) -> Partial:
    """Score the documents of a unit. A record that cannot be read is an error."""
    log, seen, unit = planned.log, UnitNotes(), item.unit
    if unit is not None:
        log = replace(log, rows=partial(_read_unit, planned.log, unit, seen))
    with allow_seconds(planned.asked.plan.doc_timeout), without_collector():
        going = LogPass(log, planned.recipe, planned.asked.plan.limit)
        scored, hashes = score_tasks(going, planned.asked)
    return Partial(
        scored=tuple(replace(one, provenance=()) for one in scored.values()),
        spans=item.spans,
        places=_numbers(seen.places),
        ids=_numbers(seen.ids),
        row_counts=seen.row_counts(),
        beyond=tuple(sorted(going.beyond)),
        lost=tuple(sorted(going.lost.items())),
        hashes=tuple(hashes.items()),
        problems=tuple((str(one.path), one.line, one.byte, one.message, one.item) for one in going.problems),
        stopped=going.guard.stopped,
    )


def _read_unit(log: LogTask, unit: Unit, seen: UnitNotes) -> Iterator[Logged]:
    if log.cut.read is None:
        raise EvalError(f"{log.path}: cannot be read in parts")
    return refuse_problems(log.cut.read(unit, seen), f"{log.name} in this part")


def _numbers(given: Sequence[int]) -> Array | None:
    return Array(np.array(given, np.int64)) if given else None


def read_results(data: bytes) -> list[tuple[int, Partial]]:
    """Read what units of work returned: the number of each log and a partial of it."""
    found = unpack(data, KNOWN)
    return [tuple(one) for one in found] if isinstance(found, list) else []


def merge_results(results: Sequence[bytes]) -> bytes:
    """Merge what units of work returned, log by log."""
    logs: dict[int, list[Partial]] = {}
    for at, one in (pair for data in results for pair in read_results(data)):
        logs.setdefault(at, []).append(one)
    return pack([(at, unite_partials(parts)) for at, parts in logs.items()], KNOWN)
