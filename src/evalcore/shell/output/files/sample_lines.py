"""lm-eval's sample log as it is on disk, from scores, documents, requests and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import isnan

import numpy as np

from evalcore.core.answers.table import AnswerTable
from evalcore.core.lm_eval.sample_log import METRIC_ORDERS, hash_text, iterate_rows, thaw
from evalcore.core.records.array import Array
from evalcore.core.records.column import list_outcomes
from evalcore.core.records.document import decode_doc
from evalcore.core.records.outcome import Failed, Outcome, Unscorable
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD_ROLLING,
    Failure,
    Generate,
    LogLikelihood,
    Request,
    Sample,
)
from evalcore.core.records.row import Stats
from evalcore.core.records.score import Provenance, Scored, merge_scored
from evalcore.shell.logs.lm_eval.golds import Targets
from evalcore.shell.logs.lm_eval.targets import find_choices, learn_targets, reads_back
from evalcore.shell.prompts.ready_task import Built

Plain = dict[str, object]

NOBODY = Sample(0)


def list_sample_lines(
    scored: Scored,
    built: Built,
    answers: AnswerTable,
    targets: Mapping[int, object] | None = None,
    known: Targets | None = None,
) -> Iterator[Plain]:
    """A row per filter and document, every document included: those without an answer say why under ``evalcore``.

    There, too, stand a document's declared id, its cluster and the noise of scores that rest on several replies.
    ``targets`` are lm-eval's ``doc_to_target`` where they are not what scoring took as gold. ``known`` is how a reader
    of the log will take targets (see ``targets_of``), where these documents are not all of it.
    """
    if not built.samples:
        return
    whole = _add_lost(scored, built.samples)
    arguments: dict[int, list[object]] = {}
    thawed: dict[int, object] = {}
    for doc, request in zip(built.asked.docs.ints.tolist(), built.requests, strict=True):
        arguments.setdefault(doc, []).append(_write_arguments(request, thawed))
    own = _list_extras(scored, built, _list_unclear(built, known, targets or {}))
    rolling, counted = (
        built.task.output_type == LOGLIKELIHOOD_ROLLING,
        _find_counted_texts(scored, built.samples, targets or {}),
    )
    order = METRIC_ORDERS.get(built.task.output_type, ()) if built.task.process_results is None else ()
    shared = partial(_write_shared, rolling=rolling, targets=targets or {})
    for row in iterate_rows(whole, built.samples, answers, arguments, shared):
        yield _write_row(row, order, own(str(row["filter"]), row["doc_id"]), rolling, counted(row["doc_id"]))


def _find_counted_texts(
    scored: Scored, samples: Iterable[Sample], targets: Mapping[int, object]
) -> Callable[[object], frozenset[str]]:
    """Metrics whose rows are counts of a text: lm-eval logs the reference and the prediction instead, if it is one."""
    plain = scored.task.output_type != GENERATE_UNTIL or scored.task.process_results is not None
    named = frozenset(one.key.metric for one in scored.columns if isinstance(one.column.rows, Stats) and not plain)
    golds = ((one.doc_id, targets.get(one.doc_id, one.gold)) for one in samples) if named else ()
    texts = {doc for doc, gold in golds if isinstance(gold, str)}
    return lambda doc: named if doc in texts else frozenset()


def find_targets(built: Built) -> Targets:
    """How the targets of a log are read that begins with these documents."""
    first = built.samples[0]
    config = {key: thaw(one) for key, one in (built.config or built.task.config).items() if not callable(one)}
    pairs = zip(built.asked.docs.ints.tolist(), built.requests, strict=True)
    requests = [request for doc, request in pairs if doc == first.doc_id]
    return learn_targets(built.task.output_type, config, _read_fields(first), requests)


# --- documents that have no score -------------------------------------------------------------------------------------


def _add_lost(scored: Scored, samples: Iterable[Sample]) -> Scored:
    """The scores with a place, and no replies, for the documents that no pipeline saw."""
    keys = {sample.doc_id for sample in samples}
    lost = tuple(_fill_lost(one.filter, sorted(keys - set(one.keys.ints.tolist()))) for one in scored.provenance)
    return merge_scored([scored, Scored(scored.task, (), lost, scored.tables)])


def _fill_lost(name: str, keys: list[int]) -> Provenance:
    ints = Array(np.array(keys, np.int64))
    return Provenance(name, ints, Array(np.zeros(len(keys) + 1, np.int64)), (), Array(np.zeros(0, np.int8)))


def _list_reasons(scored: Scored) -> dict[tuple[str, int], dict[str, str]]:
    """(filter, document) -> metric -> why it has no score."""
    out: dict[tuple[str, int], dict[str, str]] = {}
    for scores in scored.columns:
        for key, outcome in list_outcomes(scores.column) if not scores.column.scored.all() else ():
            if isinstance(outcome, Failed | Unscorable):
                out.setdefault((scores.key.filter, key), {})[scores.key.metric] = _tell_loss(outcome)
    return out


def _list_extras(scored: Scored, built: Built, unclear: Mapping[int, Plain]) -> Callable[[str, object], Plain]:
    """What lm-eval's schema has no place for, by filter and document; mostly nothing."""
    why, noise = _list_reasons(scored), _list_noise(scored)
    samples = {one.doc_id: one for one in built.samples if one.id is not None or one.cluster is not None}

    def own(name: str, doc: object) -> Plain:
        if not isinstance(doc, int):
            return {}
        known = samples.get(doc, NOBODY)
        extras = {
            "unscored": why.get((name, doc)),
            "id": known.id,
            "cluster": known.cluster,
            "noise": noise.get((name, doc)),
        }
        return {key: value for key, value in extras.items() if value is not None} | unclear.get(doc, {})

    return own


def _list_unclear(built: Built, given: Targets | None, targets: Mapping[int, object]) -> dict[int, Plain]:
    """The golds and choices of documents whose rows would otherwise be read back differently."""
    known = find_targets(built) if given is None else given
    lists = given is None and all(isinstance(one.gold, tuple) for one in built.samples)  # what is not here may differ
    asked: dict[int, list[Request]] = {}
    for doc, request in zip(built.asked.docs.ints.tolist(), built.requests, strict=True):
        asked.setdefault(doc, []).append(request)
    out: dict[int, Plain] = {}
    for sample in built.samples:
        requests, text = asked.get(sample.doc_id, ()), str(targets.get(sample.doc_id, thaw(sample.gold)))
        read = (
            find_choices(known, requests, len(requests), partial(_read_fields, sample)) if requests else sample.choices
        )
        if known.picked is not None:
            clear = known.picked(_read_fields(sample)) == sample.gold
        else:
            clear = reads_back(known, text, sample.choices, sample.gold, lists=lists)
        if not clear:
            out[sample.doc_id] = {"gold": thaw(sample.gold)}
        if read != sample.choices:
            out[sample.doc_id] = out.get(sample.doc_id, {}) | {"choices": list(sample.choices)}
    return out


def _read_fields(sample: Sample) -> Plain:
    doc = decode_doc(sample)
    return doc if isinstance(doc, dict) else {}


def _list_noise(scored: Scored) -> dict[tuple[str, int], Plain]:
    """(filter, document) -> metric -> the variance of its score over other replies, and how many it rests on."""
    out: dict[tuple[str, int], Plain] = {}
    for scores in scored.columns:
        if scores.noise is None or not isinstance(scores.noise.rows, Stats):
            continue
        pairs = zip(scores.noise.keys.ints.tolist(), scores.noise.rows.values.floats.tolist(), strict=True)
        for key, (variance, replies) in pairs:
            if not isnan(replies):  # as it is of a document that has no score
                spread = [None if isnan(variance) else variance, int(replies)]
                out.setdefault((scores.key.filter, key), {})[scores.key.metric] = spread
    return out


def _tell_loss(outcome: Outcome) -> str:
    kind = "failed" if isinstance(outcome, Failed) else "unscorable"
    return f"{kind}: {outcome.reason}" if isinstance(outcome, Failed | Unscorable) else ""


# --- rows as lm-eval writes them -------------------------------------------------------------------------------------


def _write_arguments(request: Request, thawed: dict[int, object]) -> tuple[object, ...]:
    """A request in lm-eval's form. The options that a task's requests share are thawed once."""
    if isinstance(request, Generate):
        if id(request.options) not in thawed:
            thawed[id(request.options)] = thaw(request.options)
        return request.prompt, thawed[id(request.options)]
    return (request.context, request.continuation) if isinstance(request, LogLikelihood) else (request.text,)


def _write_shared(shared: Plain, *, rolling: bool, targets: Mapping[int, object]) -> Plain:
    """What the rows of a document have in common, as lm-eval's tracker rewrites it: arguments named, others as text."""
    doc, given = shared["doc_id"], _as_list(shared["arguments"])
    if isinstance(doc, int) and doc in targets:
        shared["target"], shared["target_hash"] = targets[doc], hash_text(str(targets[doc]))
    shared["target"] = str(shared["target"])
    shared["arguments"] = {
        f"gen_args_{i}": {f"arg_{j}": part for j, part in enumerate(_as_list(one))} for i, one in enumerate(given)
    }
    shared["resps"] = _write_reply(shared["resps"], rolling)
    return shared


def _write_row(row: Plain, order: Sequence[str], own: Plain, rolling: bool, counted: frozenset[str]) -> Plain:
    """The row as lm-eval's tracker rewrites it: replies as text, metrics in its order, and evalcore's own key."""
    names = [str(name) for name in _as_list(row["metrics"])]
    names.sort(key=lambda name: order.index(name) if name in order else len(order))
    values = {name: row.pop(name) for name in names}
    row["filtered_resps"] = filtered = _write_reply(row["filtered_resps"], rolling)
    row["metrics"] = names
    if counted:
        values |= {name: [row["target"], _as_list(filtered)[0]] for name in names if name in counted}
    row |= values
    if own:
        row["evalcore"] = own
    return row


def _write_reply(reply: object, rolling: bool) -> object:
    """Every part of a reply as text; a failure is null, and a likelihood is without what lm-eval does not know of."""
    if isinstance(reply, Failure):
        return None
    if isinstance(reply, list) and _is_likelihood(reply):
        return str(reply[0]) if rolling else [str(reply[0]), str(reply[1])]
    return [_write_reply(one, rolling) for one in reply] if isinstance(reply, list) else str(reply)


def _is_likelihood(reply: list[object]) -> bool:
    return len(reply) == 3 and isinstance(reply[0], float) and isinstance(reply[1], bool) and type(reply[2]) is int


def _as_list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []
