"""The samples of one task in all runs, in columns: an index of every document, and texts in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from evalcore.core.records.task import MetricKey, Pipeline
from evalcore.shell.explain.agreement import list_said_texts
from evalcore.shell.explain.run_source import find_tables, find_task
from evalcore.shell.logs.log import Logged
from evalcore.shell.output.report.page_chunk import list_keys
from evalcore.shell.report.gathered_run import GatheredRun
from evalcore.shell.report.samples.document_pairs import Item
from evalcore.shell.report.samples.filter_steps import FilterTrace, list_pipelines, list_texts, trace_replies
from evalcore.shell.report.samples.sample_scores import Reasons, TaskColumns, read_columns, write_columns
from evalcore.shell.report.samples.sample_texts import (
    clean_text,
    shorten,
    write_answer,
    write_gold,
    write_prompt,
    write_replies,
    write_spans,
)

Plain = dict[str, object]
PART = 1_000_000
"""About how many characters of texts are unpacked to show one document."""
MOST = 4000
UNKNOWN = " "


class RunSamples(Struct, frozen=True):
    """A task in one run: its scores, its documents and what its filters made of them, both by key."""

    columns: TaskColumns
    rows: Mapping[int, Logged]
    pipelines: tuple[Pipeline, ...]
    traces: Mapping[str, Mapping[int, FilterTrace]]
    lines: Mapping[int, str]


def read_samples(run: GatheredRun, name: str, chosen: Callable[[MetricKey], bool], *, texts: bool) -> RunSamples:
    """Read a task of a run; ``texts`` is whether more is wanted than its scores and which rules fired."""
    columns = read_columns(run, name, chosen)
    own = run.recorded.renamed or name
    log = next((one for one in run.source.logs if one.name == own), None)
    if log is None:
        return RunSamples(columns, {}, (), {}, {})
    policies = find_tables(run.source)
    pipelines = list_pipelines(find_task(run.source, log), policies[0])
    rows = {one.doc_id: one for one in log.rows() if isinstance(one, Logged)}
    listed = list(rows.values())
    traces = {
        filtered: {row.doc_id: one for row, one in zip(listed, found, strict=True) if one is not None}
        for filtered, found in trace_replies(pipelines, listed, policies).items()
    }
    return RunSamples(columns, rows if texts else {}, pipelines, traces, run.recorded.texts.get(name, {}))


class TaskSamples(Struct, frozen=True):
    """A task in all runs: its documents, its metrics, and its filters with the names of their steps."""

    name: str
    items: tuple[Item, ...]
    runs: tuple[RunSamples, ...]

    @property
    def keys(self) -> tuple[MetricKey, ...]:
        return tuple(dict.fromkeys(key for run in self.runs for key in run.columns.outcomes))

    @property
    def filters(self) -> dict[str, tuple[str, ...]]:
        known = {one.name: tuple(step.name for step in one.steps) for run in self.runs for one in run.pipelines}
        return {**known, **{key.filter: () for key in self.keys if key.filter not in known}}


def describe_task(task: TaskSamples) -> Plain:
    """What the page must know of a task before any of its samples."""
    ways = {key: way for run in reversed(task.runs) for key, way in run.columns.ways.items()}
    columns = [{"metric": key.metric, "filter": key.filter, "way": ways[key]} for key in task.keys]
    filters = [{"name": name, "steps": steps} for name, steps in task.filters.items()]
    return {"name": task.name, "count": len(task.items), "columns": columns, "filters": filters}


def write_index(task: TaskSamples, *, redact: bool) -> Plain:
    """The index: every document's keys, scores and rules, and without ``redact`` a line and its answers."""
    reasons: Reasons = {}
    runs = [_index_run(task, at, reasons, redact=redact) for at in range(len(task.runs))]
    out: Plain = {"keys": [list_keys(item[at] for item in task.items) for at in range(len(task.runs))], "runs": runs}
    out["reasons"] = [[kind, "" if redact else clean_text(why)] for kind, why in reasons]
    if redact:
        return out
    ids = [_find_id(task, item) for item in task.items]
    lines = [shorten(_find_line(task, item)) for item in task.items]
    return {**out, "ids": ids if any(one is not None for one in ids) else None, "lines": lines}


def _index_run(task: TaskSamples, at: int, reasons: Reasons, *, redact: bool) -> Plain:
    run = task.runs[at]
    own = [item[at] for item in task.items]
    out = write_columns(task.keys, task.items, at, run.columns, reasons)
    out["rules"] = ["".join(_write_rule(run, name, key) for key in own) for name in task.filters]
    if not redact:
        first = task.keys[0].filter if task.keys else ""
        out["answers"] = [
            "" if row is None else write_answer(row, _find_kept(run, row, first)) for row in _list_rows(run, own)
        ]
    return out


def _list_rows(run: RunSamples, keys: Sequence[int | None]) -> list[Logged | None]:
    return [None if key is None else run.rows.get(key) for key in keys]


def _write_rule(run: RunSamples, name: str, key: int | None) -> str:
    """The rule that fired, as a letter: - a fallback, a the first rule, and so on."""
    trace = run.traces.get(name, {}).get(-1 if key is None else key)
    return UNKNOWN if trace is None or key is None else "-" if trace.rule < 0 else chr(ord("a") + min(trace.rule, 25))


def _find_kept(run: RunSamples, row: Logged, name: str) -> tuple[str, ...] | None:
    said = list_said_texts(row, name)
    trace = run.traces.get(name, {}).get(row.doc_id)
    return said if said is not None else trace.kept if trace is not None else None


def _find_first(task: TaskSamples, item: Item) -> tuple[RunSamples, int, Logged | None]:
    """The first run that has a document, and the document there."""
    run, key = next((run, key) for run, key in zip(task.runs, item, strict=True) if key is not None)
    return run, key, run.rows.get(key)


def _find_id(task: TaskSamples, item: Item) -> str | None:
    _, _, row = _find_first(task, item)
    return None if row is None or row.id is None else clean_text(str(row.id))


def _find_line(task: TaskSamples, item: Item) -> str:
    run, key, row = _find_first(task, item)
    return run.lines.get(key) or (write_prompt(row)[-500:] if row is not None else "")


def write_texts(task: TaskSamples) -> Iterator[tuple[int, Plain]]:
    """The texts in parts, each with the place of its first document."""
    start, size = 0, 0
    for at, item in enumerate(task.items):
        pairs = zip(task.runs, item, strict=True)
        size += sum(_measure(run.rows[key]) for run, key in pairs if key is not None and key in run.rows)
        if size > PART or at + 1 - start >= MOST or at + 1 == len(task.items):
            yield start, _write_part(task, task.items[start : at + 1])
            start, size = at + 1, 0


def _measure(row: Logged) -> int:
    return len(write_prompt(row)) + sum(len(one) for some in row.replies for one in some if isinstance(one, str)) + 100


def _write_part(task: TaskSamples, items: Sequence[Item]) -> Plain:
    firsts = [_find_first(task, item)[2] for item in items]
    prompts = ["" if row is None else write_prompt(row) for row in firsts]
    golds = ["" if row is None else write_gold(row) for row in firsts]
    runs = [_write_run(task, run, [item[at] for item in items], prompts) for at, run in enumerate(task.runs)]
    return {"prompts": prompts, "golds": golds, "runs": runs}


def _write_run(task: TaskSamples, run: RunSamples, keys: Sequence[int | None], prompts: Sequence[str]) -> Plain:
    """The replies of a run, its prompts where they are others, and by filter what was kept, the steps and the spans."""
    rows = _list_rows(run, keys)
    other = [
        None if row is None or (own := write_prompt(row)) == asked else own
        for row, asked in zip(rows, prompts, strict=True)
    ]
    return {
        "prompts": other if any(one is not None for one in other) else None,
        "replies": [None if row is None else write_replies(row) for row in rows],
        "filters": [[_write_filter(run, row, name) for row in rows] for name in task.filters],
    }


def _write_filter(run: RunSamples, row: Logged | None, name: str) -> list[object] | None:
    if row is None:
        return None
    trace, kept = run.traces.get(name, {}).get(row.doc_id), _find_kept(run, row, name)
    plain = None if kept is None else [clean_text(one) for one in kept]
    if trace is None:
        return None if plain is None else [plain]
    steps = [[_clean(after), _clean(notes)] for after, notes in trace.steps]
    return [plain, steps, write_spans(trace.spans, list_texts(row))]


def _clean(texts: Sequence[str] | None) -> list[str] | None:
    return None if texts is None else [clean_text(one) for one in texts]
