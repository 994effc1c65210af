"""lm-eval's sample log as it is on disk, from scores, documents, requests and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import sha256
from math import isnan

import numpy as np

from evalcore.core.answers.table import AnswerTable
from evalcore.core.lm_eval.sample_log import sample_rows, thaw
from evalcore.core.records.array import Array
from evalcore.core.records.column import Stats, list_outcomes
from evalcore.core.records.document import decode_doc
from evalcore.core.records.outcome import Failed, Outcome, Unscorable
from evalcore.core.records.request import (
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    Failure,
    Generate,
    LogLikelihood,
    Request,
    Sample,
)
from evalcore.core.records.score import Provenance, Scored, merge_scored
from evalcore.core.records.task import Task
from evalcore.shell.logs.lm_eval.golds import Targets, choices_of, learn_targets
from evalcore.shell.logs.lm_eval.targets import reads_back
from evalcore.shell.prompts.ready_task import Built

__all__ = ["sample_lines", "targets_of"]

Plain = dict[str, object]

ORDERS: Mapping[str, tuple[str, ...]] = {
    MULTIPLE_CHOICE: ("acc", "f1", "mcc", "acc_norm", "acc_bytes", "exact_match", "brier_score", "likelihood"),
    LOGLIKELIHOOD: ("perplexity", "acc"),
    LOGLIKELIHOOD_ROLLING: ("word_perplexity", "byte_perplexity", "bits_per_byte"),
}
"""The order in which lm-eval's ``process_results`` gives metrics, whatever the order they were asked for in."""

NOBODY = Sample(0)

PAIRS = ("bleu", "chrf", "ter")
"""Corpus metrics: lm-eval logs the reference and the prediction, where our rows are counts."""


def sample_lines(
    scored: Scored,
    built: Built,
    answers: AnswerTable,
    targets: Mapping[int, object] | None = None,
    known: Targets | None = None,
) -> list[Plain]:
    """A row per filter and document, every document included: those without an answer say why under ``evalcore``.

    There, too, stand a document's declared id, its cluster and the noise of scores that rest on several replies.
    ``targets`` are lm-eval's ``doc_to_target`` where they are not what scoring took as gold. ``known`` is how a reader
    of the log will take targets (see ``targets_of``), where these documents are not all of it.
    """
    if not built.samples:
        return []
    whole = _with_lost(scored, built.samples)
    arguments: dict[int, list[object]] = {}
    thawed: dict[int, object] = {}
    for doc, request in zip(built.asked.docs.ints.tolist(), built.requests, strict=True):
        arguments.setdefault(doc, []).append(_arguments(request, thawed))
    own = _extras(scored, built, _unclear(built, known, targets or {}))
    rows = sample_rows(whole, built.samples, answers, arguments)
    return [_on_disk(row, built.task, own(str(row["filter"]), row["doc_id"]), targets or {}) for row in rows]


def targets_of(built: Built) -> Targets:
    """How the targets of a log are read that begins with these documents."""
    first = built.samples[0]
    config = {key: thaw(one) for key, one in (built.config or built.task.config).items() if not callable(one)}
    pairs = zip(built.asked.docs.ints.tolist(), built.requests, strict=True)
    requests = [request for doc, request in pairs if doc == first.doc_id]
    return learn_targets(built.task.output_type, config, _fields(first), requests)


# --- documents that have no score -------------------------------------------------------------------------------------


def _with_lost(scored: Scored, samples: Iterable[Sample]) -> Scored:
    """The scores with a place, and no replies, for the documents that no pipeline saw."""
    keys = {sample.doc_id for sample in samples}
    lost = tuple(_nothing(one.filter, sorted(keys - set(one.keys.ints.tolist()))) for one in scored.provenance)
    return merge_scored([scored, Scored(scored.task, (), lost, scored.tables)])


def _nothing(name: str, keys: list[int]) -> Provenance:
    ints = Array(np.array(keys, np.int64))
    return Provenance(name, ints, Array(np.zeros(len(keys) + 1, np.int64)), (), Array(np.zeros(0, np.int8)))


def _reasons(scored: Scored) -> dict[tuple[str, int], dict[str, str]]:
    """(filter, document) -> metric -> why it has no score."""
    out: dict[tuple[str, int], dict[str, str]] = {}
    for one in scored.columns:
        for key, outcome in list_outcomes(one.column) if not one.column.scored.all() else ():
            if isinstance(outcome, Failed | Unscorable):
                out.setdefault((one.key.filter, key), {})[one.key.metric] = _told(outcome)
    return out


def _extras(scored: Scored, built: Built, unclear: Mapping[int, Plain]) -> Callable[[str, object], Plain]:
    """What lm-eval's schema has no place for, by filter and document; mostly nothing."""
    why, noise = _reasons(scored), _noise(scored)
    samples = {one.doc_id: one for one in built.samples if one.id is not None or one.cluster is not None}

    def own(name: str, doc: object) -> Plain:
        if not isinstance(doc, int):
            return {}
        known = samples.get(doc, NOBODY)
        found = {
            "unscored": why.get((name, doc)),
            "id": known.id,
            "cluster": known.cluster,
            "noise": noise.get((name, doc)),
        }
        return {key: value for key, value in found.items() if value is not None} | unclear.get(doc, {})

    return own


def _unclear(built: Built, given: Targets | None, targets: Mapping[int, object]) -> dict[int, Plain]:
    """The golds and choices of documents whose rows would else be read back as others."""
    known = targets_of(built) if given is None else given
    lists = given is None and all(isinstance(one.gold, tuple) for one in built.samples)  # what is not here may differ
    asked: dict[int, list[Request]] = {}
    for doc, request in zip(built.asked.docs.ints.tolist(), built.requests, strict=True):
        asked.setdefault(doc, []).append(request)
    out: dict[int, Plain] = {}
    for one in built.samples:
        requests, text = asked.get(one.doc_id, ()), str(targets.get(one.doc_id, thaw(one.gold)))
        read = choices_of(known, requests, len(requests), partial(_fields, one)) if requests else one.choices
        if known.picked is not None:
            clear = known.picked(_fields(one)) == one.gold
        else:
            clear = reads_back(known, text, one.choices, one.gold, lists=lists)
        if not clear:
            out[one.doc_id] = {"gold": thaw(one.gold)}
        if read != one.choices:
            out[one.doc_id] = out.get(one.doc_id, {}) | {"choices": list(one.choices)}
    return out


def _fields(one: Sample) -> Plain:
    found = decode_doc(one)
    return found if isinstance(found, dict) else {}


def _noise(scored: Scored) -> dict[tuple[str, int], Plain]:
    """(filter, document) -> metric -> the variance of its score over other replies, and how many it rests on."""
    out: dict[tuple[str, int], Plain] = {}
    for one in scored.columns:
        if one.noise is None or not isinstance(one.noise.rows, Stats):
            continue
        pairs = zip(one.noise.keys.ints.tolist(), one.noise.rows.values.floats.tolist(), strict=True)
        for key, (variance, replies) in pairs:
            if not isnan(replies):  # as it is of a document that has no score
                spread = [None if isnan(variance) else variance, int(replies)]
                out.setdefault((one.key.filter, key), {})[one.key.metric] = spread
    return out


def _told(outcome: Outcome) -> str:
    kind = "failed" if isinstance(outcome, Failed) else "unscorable"
    return f"{kind}: {outcome.reason}" if isinstance(outcome, Failed | Unscorable) else ""


# --- rows as lm-eval writes them -------------------------------------------------------------------------------------


def _arguments(request: Request, thawed: dict[int, object]) -> tuple[object, ...]:
    """A request in lm-eval's form. The options that a task's requests share are thawed once."""
    if isinstance(request, Generate):
        if id(request.options) not in thawed:
            thawed[id(request.options)] = thaw(request.options)
        return request.prompt, thawed[id(request.options)]
    return (request.context, request.continuation) if isinstance(request, LogLikelihood) else (request.text,)


def _on_disk(row: Plain, task: Task, own: Plain, targets: Mapping[int, object]) -> Plain:
    """The row as lm-eval's tracker rewrites it: arguments named, replies and the target as text."""
    doc, metrics, given = row["doc_id"], _listed(row["metrics"]), _listed(row["arguments"])
    order = ORDERS.get(task.output_type, ()) if task.process_results is None else ()
    names = sorted(map(str, metrics), key=lambda name: order.index(name) if name in order else len(order))
    target = targets[doc] if isinstance(doc, int) and doc in targets else row["target"]
    values = {name: row[name] for name in names}
    out: Plain = {key: value for key, value in row.items() if key not in values}
    rolling = task.output_type == LOGLIKELIHOOD_ROLLING
    filtered = _as_text(row["filtered_resps"], rolling)
    out |= {
        "target": str(target),
        "arguments": {
            f"gen_args_{i}": {f"arg_{j}": part for j, part in enumerate(_listed(one))} for i, one in enumerate(given)
        },
        "resps": _as_text(row["resps"], rolling),
        "filtered_resps": filtered,
        "metrics": names,
        "target_hash": sha256(str(target).encode("utf-8", "surrogatepass")).hexdigest(),
    }
    if task.process_results is None and isinstance(target, str):
        values |= {name: [target, _listed(filtered)[0]] for name in names if name in PAIRS}
    return {**out, **values, **({"evalcore": own} if own else {})}


def _as_text(reply: object, rolling: bool) -> object:
    """Every part of a reply as text; a failure is null, and a likelihood is without what lm-eval does not know of."""
    if isinstance(reply, Failure):
        return None
    if isinstance(reply, list) and _is_likelihood(reply):
        return str(reply[0]) if rolling else [str(reply[0]), str(reply[1])]
    return [_as_text(one, rolling) for one in reply] if isinstance(reply, list) else str(reply)


def _is_likelihood(reply: list[object]) -> bool:
    return len(reply) == 3 and isinstance(reply[0], float) and isinstance(reply[1], bool) and type(reply[2]) is int


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []
