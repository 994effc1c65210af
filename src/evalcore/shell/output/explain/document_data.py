"""One document for programs: the JSON of ``explain --json``, its keys those of docs/explain.md."""

from __future__ import annotations

from collections.abc import Mapping

from evalcore.core.explain.contribution import Contribution
from evalcore.core.lm_eval.sample_log import thaw
from evalcore.core.records.document import decode_doc
from evalcore.core.records.outcome import Failed, Ok, Outcome, Unscorable
from evalcore.core.records.request import Failure, Generate, LogLikelihood, Reply, Request
from evalcore.core.records.task import MetricKey
from evalcore.shell.explain.agreement import Traced
from evalcore.shell.explain.explain import Explained
from evalcore.shell.explain.lookup import build_sample, list_own_ids

Plain = dict[str, object]


def describe_document(explained: Explained) -> Plain:
    """A document as plain data."""
    logged = explained.logged
    return {
        "run": str(explained.path),
        "task": explained.log.name,
        "output_type": explained.log.output_type,
        "doc_id": logged.doc_id,
        "ids": list(list_own_ids(logged)),
        "found_by": explained.found_by,
        "hash": explained.content,
        "file": str(explained.file),
        "line": logged.line,
        "doc": decode_doc(build_sample(logged)),
        "prompts": [_describe_request(one) for one in logged.requests],
        "answers": [[_describe_reply(one) for one in replies] for replies in logged.replies],
        "gold": thaw(logged.gold),
        "choices": list(logged.choices),
        "filters": [describe_filter(one) for one in explained.traces],
        "scores": [_describe_score(explained, key) for key in explained.keys],
        "contributions": [_describe_part(part) for part in explained.contributions],
        "warnings": list(explained.warnings),
    }


def _describe_request(request: Request) -> Plain:
    if isinstance(request, Generate):
        return {"prompt": request.prompt, "options": thaw(request.options)}
    if isinstance(request, LogLikelihood):
        return {"context": request.context, "continuation": request.continuation}
    return {"text": request.text}


def _describe_reply(reply: Reply | None) -> object:
    return {"failure": reply.reason} if isinstance(reply, Failure) else thaw(reply)


def describe_filter(traced: Traced) -> Plain:
    """A traced filter as plain data.

    >>> describe_filter(Traced("none", None, ("4",), reason="no config"))["logged"]
    ['4']
    """
    trace = traced.trace
    steps = trace.steps if trace is not None else ()
    return {
        "filter": traced.filter,
        "kept": None if trace is None else [thaw(one) for one in trace.kept],
        "logged": None if traced.said is None else list(traced.said),
        "agrees": traced.agrees,
        "rules": traced.rules or None,
        "reason": traced.reason or (trace.problem if trace is not None else None),
        "steps": [
            [
                {
                    "step": one.name,
                    "before": [thaw(value) for value in one.before],
                    "after": [thaw(value) for value in one.after],
                    "rules": list(one.rules),
                    "notes": list(one.notes),
                }
                for one in unit
            ]
            for unit in steps
        ],
        "replies": [
            [{"metric": one.metric, **describe_outcome(one.outcome), "how": one.how} for one in some]
            for some in (trace.repeats if trace is not None else ())
        ],
    }


def describe_outcome(outcome: Outcome | None) -> Plain:
    return {
        "score": thaw(outcome.score) if isinstance(outcome, Ok) else None,
        "reason": outcome.reason if isinstance(outcome, Unscorable | Failed) else None,
    }


def _describe_score(explained: Explained, key: MetricKey) -> Plain:
    traces: Mapping[str, Traced] = {one.filter: one for one in explained.traces}
    trace = traces[key.filter].trace if key.filter in traces else None
    again = describe_outcome(dict(trace.outcomes).get(key) if trace is not None else None)
    logged = explained.logged.scores.get(str(key))
    return {
        "metric": key.metric,
        "filter": key.filter,
        "score": again["score"] if logged is None else logged,
        "traced": again["score"],
        "reason": again["reason"],
    }


def _describe_part(part: Contribution) -> Plain:
    return {
        "name": part.name,
        "kind": "group" if part.group else "task",
        "metric": part.key.metric,
        "filter": part.key.filter,
        "n": part.n,
        "value": part.value,
        "without": part.without,
        "moved": part.moved,
        "influence": part.influence,
        "weight": part.weight,
        "reason": part.reason,
    }
