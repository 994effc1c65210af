"""Partials put together into a run: those of each log merged, none missing, then closed like any scores."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Unpack

from msgspec.structs import replace

from evalcore.core.partials.codec import pack, unpack
from evalcore.core.partials.partial import (
    KNOWN,
    Partial,
    decode_partial,
    number_documents,
    tell_unevenness,
    unite_partials,
)
from evalcore.core.partials.span import find_gaps, find_overlaps
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict, freeze_dict, thaw_dict
from evalcore.core.records.score import Scored, adopt_scores
from evalcore.core.records.task import MetricSpec, Task
from evalcore.core.tables import Tables
from evalcore.shell.config.values import RunPath
from evalcore.shell.files.given import parse_path
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.logs.log import NOTHING
from evalcore.shell.logs.paths import list_paths, show_names
from evalcore.shell.output.terminal.progress import UNSEEN, Progress
from evalcore.shell.run.run_result import RunResult
from evalcore.shell.score.recipes import choose_config
from evalcore.shell.score.score import close_run
from evalcore.shell.score.scored_log import ScoredLog, describe_scored
from evalcore.shell.score.units.gather import tally_partial
from evalcore.shell.score.units.kept import SUFFIX, list_makers
from evalcore.shell.score.units.log_head import check_head, read_head
from evalcore.shell.score.units.log_plan import ScorePlan, plan_log, select_chosen
from evalcore.shell.score.units.score_keys import MergeKeys, plan_engine, plan_scoring
from evalcore.shell.score.units.typed_command import spell_command

Plain = Mapping[str, object]
NAMED = 5
WANTED = f"partial scores, which `score --partial_only` writes (*{SUFFIX})"


def merge(partials: RunPath | Sequence[RunPath], *, shown: Progress = UNSEEN, **keys: Unpack[MergeKeys]) -> RunResult:
    """Merge partial scores, in any order, into the numbers that scoring the whole logs gives, to the last bit.

    ``partials`` are files, folders or globs. Equal ones collapse; contradictory ones, missing ranges, and those that
    another evalcore or numpy made are refused. The keys are those of ``score``; those that the partials were made by
    are known already.

    >>> merge("no/such/partial")
    Traceback (most recent call last):
    evalcore.EvalError: no/such/partial: no such file or folder
    """
    start, paths = time.time(), list(map(parse_path, [partials] if isinstance(partials, str | Path) else partials))
    told = [str(path) for path in paths]
    source = {"merged": told, "command": spell_command("merge", told, keys)}
    files = list_files(paths)
    shown.stage("merging", len(files))
    parts = list(_read_all(files, keys, shown))
    try:
        return merge_parts(parts, source=source, start=start, **keys)
    except EvalError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as wrong:
        flaw = f"what they say of their logs cannot be read ({type(wrong).__name__}: {str(wrong)[:80]})"
        raise EvalError(f"{', '.join(told)}: {flaw}; score these again") from wrong


def list_files(paths: Sequence[RunPath]) -> list[Path]:
    """List the partials among these files, folders and globs."""
    found: list[Path] = []
    for path in paths:
        named = list_paths([path], WANTED)
        own = [one.path for one in named if one.directly or one.path.name.endswith(SUFFIX)]
        if not own:
            others = show_names([one.path.name for one in named], 3)
            raise EvalError(f"{path}: expected {WANTED}, found none among {len(named):,} files there ({others})")
        found += own
    return list({path.resolve(): path for path in found}.values())


def _read_all(files: Sequence[Path], keys: MergeKeys, shown: Progress) -> Iterator[Partial]:
    """Read partials; an engine merges neighbours on the way."""
    engine, means = plan_engine(keys)
    shares = [tuple(files[at : at + FAN]) for at in range(0, len(files), FAN)]
    for at, result in enumerate(engine.spread(merge_files, shares, merge_packed, means)):
        yield from _unpack(result)
        shown.advance(len(shares[min(at, len(shares) - 1)]))


FAN = 64
"""How many partials one unit of work merges."""


def merge_files(files: object) -> bytes:
    """Merge the partials of some files, log by log: the work of an engine."""
    paths = files if isinstance(files, tuple) else ()
    return _pack_merged(map(_read_file, paths))


def _read_file(path: Path) -> Partial:
    part = decode_partial(path.read_bytes(), str(path))
    refuse_others(part)
    check_head(part.head, str(path))
    return part


def merge_packed(results: Sequence[bytes]) -> bytes:
    """Merge what several units of work returned."""
    return _pack_merged(part for result in results for part in _unpack(result))


def _pack_merged(parts: Iterable[Partial]) -> bytes:
    logs: dict[bytes, list[Partial]] = {}
    for part in parts:
        refuse_others(part)
        logs.setdefault(pack(part.head), []).append(part)
    return pack([unite_partials(own) for own in logs.values()], KNOWN)


def _unpack(result: bytes) -> list[Partial]:
    found = unpack(result, KNOWN)
    return [one for one in found if isinstance(one, Partial)] if isinstance(found, list) else []


def merge_parts(
    parts: Iterable[Partial],
    *,
    source: Mapping[str, list[str]],
    start: float,
    own: Mapping[str, Task] = FrozenDict(),
    **keys: Unpack[MergeKeys],
) -> RunResult:
    """Merge partials that are in memory. ``own`` are tasks by name that have functions which partials do not hold."""
    logs: dict[bytes, list[Partial]] = {}
    for part in parts:
        refuse_others(part)
        logs.setdefault(pack(part.head), []).append(part)
    merged = sorted(map(_merge_log, logs.values()), key=lambda one: (str(one.head.get("order")), str(one.head["name"])))
    given = _read_keys(merged, keys)
    asked = plan_scoring(given)
    _refuse_tables(merged, asked.tables)
    selected = select_chosen(asked) if asked.tasks else None
    configs = selected.configs if selected else {}
    scored = [_describe_log(tally_partial(one, asked), asked, configs, own) for one in _share_results(merged)]
    return close_run(scored, asked, selected, source=source, start=start, keys=given)


def refuse_others(part: Partial) -> None:
    """Refuse a partial that other programs made: their bits may differ."""
    if part.made != list_makers():
        theirs, ours = (", ".join(made) or "unknown programs" for made in (part.made, list_makers()))
        place = f" - at {part.spans[0]}" if part.spans else ""
        raise EvalError(f"expected partials made by {ours}, got one made by {theirs}; score its log again{place}")


def _merge_log(parts: Sequence[Partial]) -> Partial:
    merged = unite_partials(parts)
    gaps = list(map(str, find_gaps(merged.spans)))
    if gaps:
        more = f" and {len(gaps) - NAMED} more" if len(gaps) > NAMED else ""
        raise EvalError(f"expected partials of whole logs, missing are {', '.join(gaps[:NAMED])}{more}; score them")
    uneven = tell_unevenness(merged)
    if uneven and (twice := next(find_overlaps(merged.spans), None)) is not None:
        told = f"expected ranges that do not overlap, got {twice[0]} and {twice[1]}"
        raise EvalError(f"{told}; merge partials of one --unit only")
    if uneven:
        raise EvalError(f"{merged.head['path']}: {uneven}; `evalcore score` on the log says where")
    return number_documents(merged)


def _read_keys(merged: Sequence[Partial], keys: MergeKeys) -> MergeKeys:
    """The keys that the partials were made by, with those given here over them."""
    known = [find_part(one.head, "keys") for one in merged]
    other = next((one for one in known if one != known[0]), None)
    if other is not None:
        different = sorted(key for key in {*known[0], *other} if known[0].get(key) != other.get(key))
        raise EvalError(f"expected partials made by the same flags, got others for {', '.join(different)}")
    return {**thaw_dict(known[0]), **{key: value for key, value in keys.items() if value not in IDLE}}  # type: ignore[typeddict-item]


IDLE: tuple[object, ...] = (None, (), [], False)


def _refuse_tables(merged: Sequence[Partial], tables: Tables) -> None:
    for one in merged:
        if (name := one.head.get("policy")) != tables.name:
            raise EvalError(f"these partials were made with tables {name!r}; pass them (tables=), got {tables.name!r}")


def _share_results(merged: Sequence[Partial]) -> list[Partial]:
    """Give the logs of one run the same results, with the configs of all its tasks, as they were beside them."""
    configs: dict[bytes, dict[str, object]] = {}
    names = []
    for one in merged:
        results = find_part(one.head, "results")
        name = pack({**results, "configs": sorted(find_part(results, "configs"))})
        own = {task: config for task, config in find_part(results, "configs").items() if config}
        configs.setdefault(name, dict(find_part(results, "configs"))).update(own)
        names.append(name)
    whole: dict[bytes, Plain] = {}
    out = []
    for name, one in zip(names, merged, strict=True):
        results = find_part(one.head, "results")
        kept = {**results, "configs": configs[name]} if "configs" in results else results
        shared = whole.setdefault(name, freeze_dict(kept) if results else NOTHING)
        out.append(replace(one, head=FrozenDict({**one.head, "results": shared})))
    return out


def _describe_log(
    merged: Partial, asked: ScorePlan, configs: Mapping[str, Plain], own: Mapping[str, Task]
) -> ScoredLog:
    head = read_head(merged.head, asked.readers)
    config, given = choose_config(head.log, configs), own.get(head.log.name)
    if config is None and given is None:
        return describe_scored(head, merged)
    task = plan_log(head.log, asked, config, given).recipe.task
    return describe_scored(head, replace(merged, scored=tuple(_restore(one, task) for one in merged.scored)))


def _restore(scored: Scored, known: Task) -> Scored:
    """Give a task the functions that partials do not hold, from its file."""
    below = {one.name: one.metrics for one in known.filters}
    filters = (
        replace(one, metrics=one.metrics and _restore_specs(one.metrics, below.get(one.name) or ()))
        for one in scored.task.filters
    )
    metrics = _restore_specs(scored.task.metrics, known.metrics)
    task = replace(scored.task, metrics=metrics, filters=tuple(filters), process_results=known.process_results)
    return adopt_scores(scored, task)


def _restore_specs(specs: Iterable[MetricSpec], known: Iterable[MetricSpec]) -> tuple[MetricSpec, ...]:
    own = {spec.name: spec for spec in known}
    found = ((spec, own.get(spec.name, spec)) for spec in specs)
    return tuple(
        replace(spec, aggregation=one.aggregation, reducers=one.reducers, function=one.function) for spec, one in found
    )
