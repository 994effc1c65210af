"""What each filter of a task made of its documents' replies, step by step, many documents at a time.

The filters are the functions that scoring uses. What they leave is held against what the log says was left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from evalcore.core.explain.trace import fill_options
from evalcore.core.filters.chain import make_filter, scope_of
from evalcore.core.filters.reply import FELL_BACK, Fired, Replies, Span, replies
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import freeze_dict
from evalcore.core.records.request import GENERATE_UNTIL
from evalcore.core.records.task import Pipeline, Task
from evalcore.core.tables import Tables, pipelines_of
from evalcore.shell.explain.agreement import flatten_texts, list_said_texts
from evalcore.shell.explain.lookup import build_sample
from evalcore.shell.logs.log import Logged
from evalcore.shell.safety.timer import TimeUp, allow_seconds, run_document

BATCH = 256
PATIENCE = 10.0
"""Seconds for the documents of a batch; a filter that takes longer is stuck, and shown without its steps."""


class FilterTrace(Struct, frozen=True):
    """A document under one filter: what each step left and by which rule, and where in the replies that was found.

    A step that changed nothing left None. ``rule`` is that of the first value left, -1 a fallback.
    """

    steps: tuple[tuple[tuple[str, ...] | None, tuple[str, ...]], ...]
    rule: int
    spans: tuple[Span, ...]
    kept: tuple[str, ...]


Traces = Mapping[str, Sequence[FilterTrace | None]]


def list_pipelines(task: Task | None, tables: Tables) -> tuple[Pipeline, ...]:
    """The filters of a task of generated texts that can be run again document by document."""
    if task is None or task.output_type != GENERATE_UNTIL:
        return ()
    return tuple(one for one in pipelines_of(task, tables) if scope_of(one, tables.filters) == "document")


def trace_replies(pipelines: Iterable[Pipeline], rows: Sequence[Logged], policies: Sequence[Tables]) -> Traces:
    """Trace documents under filters; None where a filter cannot be run, or ends elsewhere than the log says."""
    return {one.name: _trace_filter(one, rows, policies) for one in pipelines}


def _trace_filter(
    pipeline: Pipeline, rows: Sequence[Logged], policies: Sequence[Tables]
) -> Sequence[FilterTrace | None]:
    out: list[FilterTrace | None] = []
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        try:
            with allow_seconds(PATIENCE):
                out += _trace_batch(pipeline, batch, policies)
        except TimeUp:
            break
    return out + [None] * (len(rows) - len(out))


def _trace_batch(
    pipeline: Pipeline, rows: Sequence[Logged], policies: Sequence[Tables]
) -> Sequence[FilterTrace | None]:
    """Trace by the first rules that end where the log does; document by document where one of them is refused."""
    best: Sequence[FilterTrace | None] | None = None
    for tables in policies:
        try:
            traced = run_document(_run_steps, pipeline, rows, tables)
        except EvalError:
            if len(rows) > 1:
                return [one for row in rows for one in _trace_batch(pipeline, [row], policies)]
            continue
        checked = [_check_trace(one, row, pipeline.name) for one, row in zip(traced, rows, strict=True)]
        if checked == traced:
            return traced
        best = best or checked
    return best or [None] * len(rows)


def _check_trace(trace: FilterTrace | None, row: Logged, name: str) -> FilterTrace | None:
    said = list_said_texts(row, name)
    return trace if trace is None or said is None or said == trace.kept else None


def _run_steps(pipeline: Pipeline, rows: Sequence[Logged], tables: Tables) -> list[FilterTrace | None]:
    texts = [list_texts(row) for row in rows]
    there = [at for at, own in enumerate(texts) if own]
    docs = [build_sample(rows[at]) for at in there]
    stages: list[Replies] = [replies([texts[at] for at in there])]
    for step in pipeline.steps:
        stages.append(make_filter(step, tables.filters)(stages[-1], docs))
    options = [freeze_dict(fill_options(step, tables.filters)) for step in pipeline.steps]
    out: list[FilterTrace | None] = [None] * len(rows)
    for place, at in enumerate(there):
        cut = [_cut_unit(stage, place) for stage in stages]
        out[at] = _follow_steps(pipeline, cut, options, tables)
    return out


Unit = tuple[tuple[object, ...], tuple[int, ...]]


def _cut_unit(stage: Replies, at: int) -> Unit:
    start, end = int(stage.offsets[at]), int(stage.offsets[at + 1])
    return tuple(stage.values[start:end]), tuple(stage.rules[start:end].tolist())


def _follow_steps(
    pipeline: Pipeline, stages: Sequence[Unit], options: Sequence[Mapping[str, object]], tables: Tables
) -> FilterTrace:
    """Say what each step did to one document, and follow the spans of what is left back to its replies."""
    spans: list[Span | None] = [(at, 0, len(str(text))) for at, text in enumerate(stages[0][0])]
    steps: list[tuple[tuple[str, ...] | None, tuple[str, ...]]] = []
    for step, own, (before, given), (after, rules) in zip(pipeline.steps, options, stages, stages[1:], strict=False):
        entry, fired = tables.filters[step.name], Fired(own, before, given, after, rules)
        spans = [_follow_span(spans, found, fired, at) for at, found in enumerate(entry.locate(fired))]
        steps.append((None if after == before else tuple(map(str, after)), entry.explain(fired)))
    last, rules = stages[-1]
    whole = [len(str(text).strip()) for text in stages[0][0]]
    narrow = tuple(one for one in spans if one is not None and one[2] - one[1] < whole[one[0]])
    return FilterTrace(tuple(steps), min(rules, default=0), tuple(dict.fromkeys(narrow)), flatten_texts(last))


def _follow_span(spans: Sequence[Span | None], found: Span | None, fired: Fired, at: int) -> Span | None:
    """A text that was rewritten stands where it was found; a fallback stands nowhere."""
    if fired.rules[at] == FELL_BACK:
        return None
    if found is None:
        return spans[at] if len(fired.after) == len(fired.before) else None
    origin = spans[found[0]]
    return None if origin is None else (origin[0], origin[1] + found[1], origin[1] + found[2])


def list_texts(row: Logged) -> list[str]:
    """The replies of a document as filters take them; none where one is missing."""
    given = [reply for some in row.replies for reply in some]
    return [one for one in given if isinstance(one, str)] if all(isinstance(one, str) for one in given) else []
