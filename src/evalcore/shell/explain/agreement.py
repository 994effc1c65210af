"""A logged document traced through the filters of its task, and held against what its log says came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.explain.trace import DocumentTrace, trace_document
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import GENERATE_UNTIL, Generate
from evalcore.core.records.task import MetricKey, Pipeline, Task
from evalcore.core.tables import Tables, pipelines_of
from evalcore.shell.explain.lookup import build_answers, build_sample
from evalcore.shell.logs.log import Logged
from evalcore.shell.safety.timer import TimeUp, get_budget, run_document, tell_budget

UNKNOWN = "no config says which filters these are: give the task by --task_file to see them step by step"


class Traced(Struct, frozen=True):
    """A filter of a log: what tracing found, what the log says was kept, and whether that is the same.

    ``trace`` is None, with the reason, where the filter cannot be run again; ``rules`` names the policy it was run by.
    """

    filter: str
    trace: DocumentTrace | None
    said: tuple[str, ...] | None
    agrees: bool | None = None
    rules: str = ""
    reason: str = ""

    @property
    def kept(self) -> tuple[str, ...]:
        """What is left of the replies, as text: by the trace, else by the log."""
        if self.trace is not None and self.trace.problem is None:
            return flatten_texts(self.trace.kept) if len(self.trace.steps) == 1 else tuple(map(str, self.trace.kept))
        return self.said or ()


def trace_logged(task: Task | None, logged: Logged, policies: Sequence[Tables]) -> tuple[Traced, ...]:
    """Every filter of a document: those of its task, and those that only its log names."""
    known = {one.name: one for one in pipelines_of(task, policies[0])} if task is not None else {}
    names = dict.fromkeys([*known, *logged.kept, *(key.filter for key in list_score_keys(logged))])
    return tuple(_trace_filter(task, known.get(name), name, logged, policies) for name in names)


def list_score_keys(logged: Logged) -> tuple[MetricKey, ...]:
    """The metrics that a log has a score for.

    >>> list_score_keys(Logged(doc_id=0, doc=b"{}", gold=None, scores={"acc,none": 1.0}))
    (MetricKey(metric='acc', filter='none'),)
    """
    return tuple(key for text in logged.scores if (key := MetricKey.parse(text)) is not None)


def list_said_texts(logged: Logged, name: str) -> tuple[str, ...] | None:
    """What a log says a filter left, as texts; several replies of a document may stand in a list of their own.

    >>> logged = Logged(doc_id=0, doc=b"{}", gold=None, requests=(Generate("?"),), kept={"p": [["4", "5"]]})
    >>> list_said_texts(logged, "p")
    ('4', '5')
    """
    if name not in logged.kept:
        return None
    given = logged.kept[name]
    listed = given if isinstance(given, list | tuple) else [given]
    generated = all(isinstance(one, Generate) for one in logged.requests)
    return flatten_texts(listed) if generated else tuple(map(str, listed))


def flatten_texts(values: Iterable[object]) -> tuple[str, ...]:
    """List texts as they are, those inside lists one by one.

    >>> flatten_texts(["a", ("b", "c")])
    ('a', 'b', 'c')
    """
    nested = (one if isinstance(one, list | tuple) else (one,) for one in values)
    return tuple(str(one) for some in nested for one in some)


def _trace_filter(
    task: Task | None, pipeline: Pipeline | None, name: str, logged: Logged, policies: Sequence[Tables]
) -> Traced:
    said = list_said_texts(logged, name)
    if task is None or pipeline is None:
        return Traced(name, None, said, reason=UNKNOWN)
    best: Traced | None = None
    for tables in policies:
        try:
            trace = run_document(_trace_pipeline, task, pipeline, logged, tables)
        except TimeUp:
            return best or Traced(name, None, said, reason=f"it was stopped again: it {tell_budget(get_budget())}")
        except EvalError as wrong:
            return best or Traced(name, None, said, reason=f"it cannot be run again: {wrong}")
        traced = Traced(name, trace, said, _agrees(task, trace, said), tables.name)
        if traced.agrees is not False:
            return traced
        best = best or traced
    return best or Traced(name, None, said, reason=UNKNOWN)


def _trace_pipeline(task: Task, pipeline: Pipeline, logged: Logged, tables: Tables) -> DocumentTrace:
    """The document under one pipeline. Code of the task is never run: where it makes the scores, the log has them."""
    only = replace(task, filters=(pipeline,))
    [trace] = trace_document(only, build_sample(logged), build_answers(task.name, logged), tables=tables)
    if task.process_results is None:
        return trace
    return replace(trace, repeats=(), outcomes=())


def _agrees(task: Task, trace: DocumentTrace, said: tuple[str, ...] | None) -> bool | None:
    """Whether a trace ends where the log does; None where that cannot be told."""
    if said is None or task.output_type != GENERATE_UNTIL or trace.problem is not None:
        return None
    return flatten_texts(trace.kept) == said
