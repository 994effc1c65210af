"""The units of all logs given to an engine; what comes back is put together log by log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from msgspec.structs import replace

from evalcore.core.partials.partial import Partial, number_documents, tell_unevenness, unite_partials
from evalcore.core.records.score import adopt_scores
from evalcore.core.tally import tally_scored
from evalcore.shell.logs.units.unit import UNIT, Unit, span_of
from evalcore.shell.output.terminal.progress import Progress
from evalcore.shell.run.close import inference_of
from evalcore.shell.score.units.kept import open_keep
from evalcore.shell.score.units.log_plan import LogPlan, ScorePlan
from evalcore.shell.score.units.unit_score import UnitWork, WorkItem, merge_results, read_results, score_unit, share


def gather_scores(plans: Sequence[LogPlan], asked: ScorePlan, shown: Progress) -> Iterator[Partial]:
    """Score logs by the engine that was asked for; yield the scores of each, all documents under their numbers."""
    parts, _ = score_in_units(plans, asked, shown)
    for at, planned in enumerate(plans):
        yield finish_log(at, planned, parts.pop(at, []))


def score_whole(at: int, planned: LogPlan) -> Partial:
    """Score a log here, from its first document to its last."""
    return tally_partial(score_unit(planned, WorkItem(at, None, ())), planned.asked)


def score_in_units(
    plans: Sequence[LogPlan], asked: ScorePlan, shown: Progress, share_of: tuple[int, int] = (1, 1)
) -> tuple[dict[int, list[Partial]], tuple[Path, ...]]:
    """Score logs unit by unit, or one of several shares of all units; also return the files that keep them.

    What is kept of an earlier time is not scored again.
    """
    keep = open_keep(asked.kept, plans) if asked.kept is not None else None
    items = [item for at, planned in enumerate(plans) for item in list_units(at, planned, digest=keep is not None)]
    items = seal_units(items) if keep is not None else items
    for told in tell_whole(plans, items):
        shown.warn(told)
    own, count = share_of
    items = items[own - 1 :: count]
    parts: dict[int, list[Partial]] = {}
    rest: list[WorkItem] = []
    for item in items:
        found = keep.find(item.log, item.spans) if keep is not None and asked.written is None else None
        if found is None:
            rest.append(item)
        else:
            parts.setdefault(item.log, []).append(found)
    shown.stage("scoring", len(items), known=len(items) - len(rest))
    work = UnitWork(share(plans, asked), keep)
    means = replace(asked.means, here=not asked.code)  # own code may take its process with it
    stopped = 0
    for result in asked.engine.spread(work, rest, merge_results, means) if rest else ():
        for at, part in read_results(result):
            parts.setdefault(at, []).append(part)
            shown.advance(len(part.spans))
            stopped += part.stopped
    if keep is not None and stopped:
        told = f"{stopped:,} score{'s' * (stopped != 1)} took longer than {asked.plan.doc_timeout:g} s (doc_timeout)"
        shown.warn(f"{told}; these documents are unscorable, and are scored again next time")
    if keep is not None:
        for at in range(len(plans)):
            keep.drop_older(at, [item.spans for item in items if item.log == at])
    return parts, tuple(keep.name(item.log, item.spans) for item in items) if keep is not None else ()


def list_units(at: int, planned: LogPlan, *, digest: bool = False) -> list[WorkItem]:
    """List the units of a log: all of it if it cannot be cut, or if its samples are written."""
    cut = planned.log.cut
    if planned.whole or cut.units is None or planned.asked.written is not None:
        return [WorkItem(at, None, tuple(span_of(Unit(path), digest=digest) for path in planned.log.paths))]
    return [WorkItem(at, unit, (span_of(unit, digest=digest),)) for unit in cut.units(planned.asked.means.unit or UNIT)]


def seal_units(items: Sequence[WorkItem]) -> list[WorkItem]:
    """Give each unit a hash of all units of its source, of which other machines may score some."""
    hashes: dict[tuple[int, str], blake2b] = {}
    for log, span in ((item.log, span) for item in items for span in item.spans):
        hashed = hashes.setdefault((log, span.source), blake2b(digest_size=16))
        hashed.update(f"{span.start} {span.stop} {span.digest}\n".encode())

    def seal(item: WorkItem) -> WorkItem:
        spans = (replace(span, whole=hashes[item.log, span.source].hexdigest()) for span in item.spans)
        return item._replace(spans=tuple(spans))

    return list(map(seal, items))


def tell_whole(plans: Sequence[LogPlan], items: Sequence[WorkItem]) -> Iterator[str]:
    """Say which large logs are one unit of work, and why."""
    for item in items:
        planned = plans[item.log]
        if item.unit is None and planned.whole and sum(span.stop for span in item.spans) > UNIT:
            yield f"{planned.log.name} is one unit of work: {planned.whole}"


def finish_log(at: int, planned: LogPlan, parts: Sequence[Partial]) -> Partial:
    """Put the parts of a log together. One whose rows disagree is read once more, to say where."""
    merged = unite_partials(parts)
    if tell_unevenness(merged):
        return score_whole(at, planned)
    merged = number_documents(merged)
    recipe = planned.recipe
    own = recipe.kept.task if recipe.kept is not None else recipe.task

    scored = []
    for one in merged.scored:  # functions came back as their names
        known = replace(own, name=one.task.name, metrics=own.metrics or one.task.metrics)
        scored.append(adopt_scores(one, known))
    return tally_partial(replace(merged, scored=tuple(scored)), planned.asked)


def tally_partial(merged: Partial, asked: ScorePlan) -> Partial:
    """Tally the scores of a whole log where that was asked for, whoever tallied parts of it."""
    if not asked.tally:
        return merged
    closing = inference_of(asked.plan, asked.tables)
    return replace(merged, scored=tuple(tally_scored(o, inference=closing, tables=asked.tables) for o in merged.scored))
