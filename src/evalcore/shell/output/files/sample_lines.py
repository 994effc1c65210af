"""lm-eval's sample log as it is on disk, from scores, documents, requests and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cached_property, partial
from itertools import chain
from math import isnan

from evalcore.core.answers.table import AnswerTable
from evalcore.core.lm_eval.sample_log import DOC_ID, METRIC_ORDERS, DocumentRows, RowMaker, thaw, write_reply
from evalcore.core.records.column import list_outcomes
from evalcore.core.records.document import decode_doc, is_alike
from evalcore.core.records.outcome import Failed, Outcome, Unscorable
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    Generate,
    LogLikelihood,
    Request,
    Sample,
)
from evalcore.core.records.row import Stats
from evalcore.core.records.score import Scored, merge_scored
from evalcore.shell.logs.lm_eval.golds import Targets
from evalcore.shell.logs.lm_eval.targets import find_choices, learn_targets, reads_back
from evalcore.shell.prompts.ready_task import Built
from evalcore.shell.safety.secrets import hide_keys

Plain = dict[str, object]

NOBODY = Sample(0)


def list_documents(
    scored: Scored,
    built: Built,
    answers: AnswerTable,
    targets: Mapping[int, object] | None = None,
    known: Targets | None = None,
) -> Iterator[DocumentRows]:
    """A row per document and filter, every document included: those without an answer say why under ``evalcore``.

    There, too, stand a document's declared id, its cluster and the noise of scores that rest on several replies.
    ``targets`` are lm-eval's ``doc_to_target`` where they are not what scoring took as gold. ``known`` is how a reader
    of the log will take targets (see ``find_targets``), where these documents are not all of it.
    """
    if built.samples:
        yield from map(SampleRows(scored, built, answers, targets, known).make_rows, sorted(built.samples, key=DOC_ID))


class SampleRows:
    """Makes the rows of one document after another (see ``list_documents``).

    ``touched`` are the documents that may have more than lm-eval's rows have.
    """

    def __init__(
        self,
        scored: Scored,
        built: Built,
        answers: AnswerTable,
        targets: Mapping[int, object] | None = None,
        known: Targets | None = None,
    ) -> None:
        self.scored, self.built, self.answers = merge_scored([scored]), built, answers
        self.targets = {one.doc_id: thaw(one.gold) for one in built.samples} if targets is None else targets
        self.touched, self.own = _list_extras(scored, built, _list_unclear(built, known, self.targets))
        self.counted = _find_counted_texts(scored, self.targets)
        self.order = METRIC_ORDERS.get(built.task.output_type, ()) if built.task.process_results is None else ()
        self.write = None if _are_texts(scored, answers) else write_reply
        if self.write is not None and built.task.output_type == LOGLIKELIHOOD_ROLLING:
            self.write = partial(write_reply, rolling=True)

    @cached_property
    def made(self) -> tuple[RowMaker, bool]:
        """What lm-eval's rows are made by, and whether all that was asked is alike."""
        arguments, prompts, alike = _list_arguments(self.built)
        return RowMaker(self.scored, self.answers, arguments, prompts, self.targets, lost=True), alike

    def make_rows(self, sample: Sample) -> DocumentRows:
        """Make the rows of a document."""
        doc, write, touched = sample.doc_id, self.write, sample.doc_id in self.touched
        maker, asked_alike = self.made
        head, rests, alike = maker.make_rows(sample)
        head["target"] = target = str(head["target"])
        if write is not None:
            head["resps"] = write(head["resps"])
        for rest in rests:
            if write is not None:
                rest["filtered_resps"] = write(rest["filtered_resps"])
            if self.order:
                _sort_metrics(rest, self.order)
            if doc in self.counted:
                _write_references(rest, target, self.counted[doc])
            if touched and (extras := self.own(str(rest["filter"]), doc)):
                rest["evalcore"] = extras
        return DocumentRows(head, rests, alike and asked_alike and not touched)


def _are_texts(scored: Scored, answers: AnswerTable) -> bool:
    """Whether all replies, as they came and as filters left them, are texts, as they are written."""
    return {str}.issuperset(map(type, chain(answers.values, *(one.replies for one in scored.provenance))))


def _list_arguments(built: Built) -> tuple[dict[int, Plain], dict[int, str], bool]:
    """The requests of each document as lm-eval's tracker names them, its first prompt, and whether all are alike."""
    arguments: dict[int, Plain] = {}
    prompts: dict[int, str] = {}
    thawed: dict[int, object] = {}  # the options that a task's requests share are thawed once
    for doc, request in zip(built.asked.docs.ints.tolist(), built.requests, strict=True):
        asked = arguments.setdefault(doc, {})
        if isinstance(request, Generate):
            options = request.options
            if id(options) not in thawed:
                thawed[id(options)] = hide_keys(thaw(options))
            parts = {"arg_0": (prompt := request.prompt), "arg_1": thawed[id(options)]}
        elif isinstance(request, LogLikelihood):
            parts = {"arg_0": (prompt := request.context), "arg_1": request.continuation}
        else:
            parts = {"arg_0": (prompt := request.text)}
        prompts.setdefault(doc, prompt)
        asked[f"gen_args_{len(asked)}"] = parts
    return arguments, prompts, is_alike(list(thawed.values()))


def _find_counted_texts(scored: Scored, targets: Mapping[int, object]) -> dict[int, frozenset[str]]:
    """Metrics whose rows are counts of a text: lm-eval logs the reference and the prediction instead, if it is one."""
    plain = scored.task.output_type != GENERATE_UNTIL or scored.task.process_results is not None
    named = frozenset(one.key.metric for one in scored.columns if isinstance(one.column.rows, Stats) and not plain)
    return {doc: named for doc, gold in targets.items() if isinstance(gold, str)} if named else {}


def find_targets(built: Built) -> Targets:
    """How the targets of a log are read that begins with these documents."""
    first = built.samples[0]
    config = {key: thaw(one) for key, one in (built.config or built.task.config).items() if not callable(one)}
    pairs = zip(built.asked.docs.ints.tolist(), built.requests, strict=True)
    requests = [request for doc, request in pairs if doc == first.doc_id]
    return learn_targets(built.task.output_type, config, _read_fields(first), requests)


# --- what lm-eval's schema has no place for ---------------------------------------------------------------------------


def _list_reasons(scored: Scored) -> dict[tuple[str, int], dict[str, str]]:
    """(filter, document) -> metric -> why it has no score."""
    out: dict[tuple[str, int], dict[str, str]] = {}
    for scores in scored.columns:
        for key, outcome in list_outcomes(scores.column) if not scores.column.scored.all() else ():
            if isinstance(outcome, Failed | Unscorable):
                out.setdefault((scores.key.filter, key), {})[scores.key.metric] = _tell_loss(outcome)
    return out


def _list_extras(
    scored: Scored, built: Built, unclear: Mapping[int, Plain]
) -> tuple[Set[int], Callable[[str, int], Plain]]:
    """What lm-eval's schema has no place for, by filter and document, and the documents that may have it."""
    why, noise = _list_reasons(scored), _list_noise(scored)
    samples = {one.doc_id: one for one in built.samples if one.id is not None or one.cluster is not None}
    touched = samples.keys() | unclear.keys() | {doc for _, doc in (*why, *noise)}

    def own(name: str, doc: int) -> Plain:
        known = samples.get(doc, NOBODY)
        extras = {
            "unscored": why.get((name, doc)),
            "id": known.id,
            "cluster": known.cluster,
            "noise": noise.get((name, doc)),
        }
        return {key: value for key, value in extras.items() if value is not None} | unclear.get(doc, {})

    return touched, own


def _list_unclear(built: Built, given: Targets | None, targets: Mapping[int, object]) -> dict[int, Plain]:
    """The golds and choices of documents whose rows would otherwise be read back differently."""
    known = find_targets(built) if given is None else given
    lists = given is None and all(isinstance(one.gold, tuple) for one in built.samples)  # what is not here may differ
    asked: dict[int, Sequence[Request]] = {}
    docs = built.asked.docs.ints.tolist()
    if known.output_type == MULTIPLE_CHOICE:
        for doc, request in zip(docs, built.requests, strict=True):
            asked[doc] = (*asked.get(doc, ()), request)
    else:  # of others only the documents count
        asked = dict.fromkeys(docs, built.requests[:1])
    out: dict[int, Plain] = {}
    never = known.output_type != MULTIPLE_CHOICE and known.choices is None  # has a document choices
    for sample in built.samples:
        requests, text = asked.get(sample.doc_id, ()), str(targets[sample.doc_id])
        read = () if requests else sample.choices
        if requests and not never:
            read = find_choices(known, requests, len(requests), partial(_read_fields, sample))
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


def _sort_metrics(rest: Plain, order: Sequence[str]) -> None:
    """Sort the metrics of a row in lm-eval's order."""
    names = rest["metrics"]
    if isinstance(names, list):
        names.sort(key=lambda name: order.index(name) if name in order else len(order))
        rest |= {name: rest.pop(name) for name in names}


def _write_references(rest: Plain, target: object, names: Set[str]) -> None:
    """Write the reference and the prediction in place of counts."""
    filtered = rest["filtered_resps"]
    for name in names & rest.keys():
        rest[name] = [target, filtered[0] if isinstance(filtered, list) else filtered]
