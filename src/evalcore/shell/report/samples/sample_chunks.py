"""The samples of all tasks of runs, packed into chunks that a page opens when they are looked at."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from evalcore.core.records.task import MetricKey
from evalcore.shell.compare.alike import rename_alone
from evalcore.shell.output.report.page_chunk import PageChunk, pack_chunk
from evalcore.shell.report.gathered_run import GatheredRun
from evalcore.shell.report.run_numbers import Chosen
from evalcore.shell.report.samples.document_pairs import Item, match_runs
from evalcore.shell.report.samples.task_samples import (
    TaskSamples,
    describe_task,
    read_samples,
    write_index,
    write_texts,
)

Plain = dict[str, object]


def pack_samples(
    runs: Sequence[GatheredRun], shown: Collection[str], chosen: Chosen, *, redact: bool
) -> tuple[Plain, list[PageChunk]]:
    """What the page must know of the samples of tasks that are shown, and the chunks with all else.

    A task has one chunk with its index and, unless they are to be kept out of the page, chunks with its texts: of each
    document only what was asked, replied, kept and how, never its other fields.
    """
    named = _rename_alone(runs)
    matched = match_runs([run.recorded for run in named])
    tasks: list[Plain] = []
    chunks: list[PageChunk] = []
    for name, items in matched.items():
        known = {name, *(run.recorded.renamed for run in named)}
        if known.isdisjoint(shown) or not items:
            continue
        made, told = _pack_task(_read_task(named, name, items, chosen, redact=redact), redact=redact)
        tasks.append(told)
        chunks += made
    return {"count": sum(len(matched[str(one["name"])]) for one in tasks), "redacted": redact, "tasks": tasks}, chunks


def _rename_alone(runs: Sequence[GatheredRun]) -> tuple[GatheredRun, ...]:
    """Runs as they are compared: with one task each, they are about the same task."""
    renamed = rename_alone([run.recorded for run in runs])
    return tuple(replace(run, recorded=recorded) for run, recorded in zip(runs, renamed, strict=True))


def _read_task(
    runs: Sequence[GatheredRun], name: str, items: tuple[Item, ...], chosen: Chosen, *, redact: bool
) -> TaskSamples:
    def is_chosen(key: MetricKey) -> bool:
        return chosen((name, key))

    return TaskSamples(name, items, tuple(read_samples(run, name, is_chosen, texts=not redact) for run in runs))


def _pack_task(task: TaskSamples, *, redact: bool) -> tuple[list[PageChunk], Plain]:
    index = pack_chunk(write_index(task, redact=redact))
    texts = [] if redact else [(start, pack_chunk(part)) for start, part in write_texts(task)]
    told = {**describe_task(task), "index": index.id, "texts": [[start, one.id] for start, one in texts]}
    return [index, *(one for _, one in texts)], told
