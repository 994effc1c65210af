"""The lines of a sample log as bytes: those of plain generations without a dict for each, others from their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from evalcore.core.answers.table import AnswerTable
from evalcore.core.lm_eval.sample_log import DOC_ID, DocumentRows, FilterRows, hash_doc, hash_text, thaw
from evalcore.core.records.document import encode_alike, recode_docs
from evalcore.core.records.request import Generate, Options, Sample
from evalcore.core.records.score import Scored
from evalcore.shell.logs.lm_eval.golds import Targets
from evalcore.shell.output.files.run_files import DocumentLines
from evalcore.shell.output.files.sample_lines import SampleRows
from evalcore.shell.prompts.ready_task import Built
from evalcore.shell.safety.secrets import hide_keys
from evalcore.shell.safety.strict_json import make_all_ascii, space_json

_encode = msgspec.json.Encoder().encode
AT_ONCE = 64
"""Documents written together: most of what there is to gain, and still little of what memory holds of a task."""
BEGIN = (
    b'{"doc_id": %d, "doc": %b, "target": %b, "arguments": {"gen_args_0": {"arg_0": %b, "arg_1": %b}}, "resps": [[%b]]'
)


def list_lines(
    scored: Scored,
    built: Built,
    answers: AnswerTable,
    targets: Mapping[int, object] | None = None,
    known: Targets | None = None,
) -> Iterator[DocumentLines | DocumentRows]:
    """The lines of documents in order or, of one that is not plain, its rows (see ``list_documents``)."""
    if not built.samples:
        return
    rows = SampleRows(scored, built, answers, targets, known)
    plain, samples = make_plain_lines(rows), sorted(built.samples, key=DOC_ID)
    if plain is None:
        yield from map(rows.make_rows, samples)
    else:
        for at in range(0, len(samples), AT_ONCE):
            yield from plain.list_lines(samples[at : at + AT_ONCE])


def make_plain_lines(rows: SampleRows) -> PlainLines | None:
    """Make the writer of documents that were asked for one text each, once; None if they were not."""
    asked, requests = rows.built.asked, rows.built.requests
    docs = asked.docs.ints
    single = bool((docs[1:] > docs[:-1]).all() and (asked.repeats.ints == 1).all())
    if not single or rows.order or rows.counted or {Generate} != set(map(type, requests)):
        return None
    filters = [FilterRows(rows.scored, where) for where in rows.scored.provenance]
    return PlainLines(rows, docs.tolist(), filters) if all(one.alike for one in filters) else None


class PlainLines:
    """Writes the bytes that Python's json would write of the rows of documents, many at once."""

    def __init__(self, rows: SampleRows, docs: Sequence[int], filters: Iterable[FilterRows]) -> None:
        self.rows, self.filters = rows, list(map(_FilterLines, filters))
        self.asked = dict(zip(docs, zip(rows.built.requests, rows.answers.values, strict=True), strict=True))
        self.options: dict[int, bytes] = {}  # the options that a task's requests share are written once

    def list_lines(self, samples: Sequence[Sample]) -> Iterator[DocumentLines | DocumentRows]:
        """List the lines of documents; where one takes more than is done here, those of each half, down to its rows."""
        try:
            yield self._write_lines(samples)
        except (ValueError, KeyError):  # a lone surrogate, a number that json writes otherwise, a document unscored
            half = len(samples) // 2
            if not half:
                yield self.rows.make_rows(samples[0])
            else:
                yield from self.list_lines(samples[:half])
                yield from self.list_lines(samples[half:])

    def _write_lines(self, samples: Sequence[Sample]) -> DocumentLines:
        keys = list(map(DOC_ID, samples))
        requests, replies = zip(*[self.asked[key] for key in keys], strict=True)
        if not self.rows.touched.isdisjoint(keys) or {str} != set(map(type, replies)):
            raise ValueError
        docs, prompts = recode_docs(samples), [one.prompt for one in requests]
        targets = [str(self.rows.targets[key]) for key in keys]
        of_docs = (hash_doc(None, doc) for doc in docs)
        hashes = list(zip(of_docs, map(hash_text, prompts), map(hash_text, targets), strict=True))
        options = [self.options.get(id(one.options)) or self._write_options(one.options) for one in requests]
        target, prompt, reply = (map(_encode, texts) for texts in (targets, prompts, replies))
        parts = zip(keys, map(space_json, docs), target, prompt, options, reply, strict=True)
        begun = [BEGIN % one for one in parts]
        told = [f', "doc_hash": "{a}", "prompt_hash": "{b}", "target_hash": "{c}"'.encode() for a, b, c in hashes]
        ends = [make_all_ascii(one.go_on(keys, told)) for one in self.filters]
        return DocumentLines(make_all_ascii(begun), ends, "".join(chain.from_iterable(hashes)))

    def _write_options(self, options: Options) -> bytes:
        encoded = encode_alike(hide_keys(thaw(options)))
        if encoded is None:
            raise ValueError
        self.options[id(options)] = written = space_json(encoded)
        return written


class _FilterLines:
    """How the lines of a filter go on; a document that it did not see or score is a ``KeyError``."""

    def __init__(self, rows: FilterRows) -> None:
        self.spans, self.replies, self.listed = rows.spans, rows.replies, rows.listed
        self.scores = [found for _, found in rows.columns]
        metrics = [metric for metric, _ in rows.columns]
        about = space_json(_encode({"filter": rows.name, "metrics": metrics}))[1:-1]
        names = [_escape(_encode(metric)) for metric in metrics]
        scores = b"".join([b", %b: %%b" % name for name in names])
        self.line = b', "filtered_resps": %%b, %b%%b%b}\n' % (_escape(about), scores)

    def go_on(self, keys: Sequence[int], hashes: Sequence[bytes]) -> list[bytes]:
        kept = [_write_texts(self.replies[a:b]) for a, b in map(self.spans.__getitem__, keys)]
        if self.listed:
            kept = [b"[%b]" % one for one in kept]
        scores = (map(_encode, map(found.__getitem__, keys)) for found in self.scores)
        return [self.line % parts for parts in zip(kept, hashes, *scores, strict=True)]


def _escape(part: bytes) -> bytes:
    """A part of a format that stands for itself."""
    return part.replace(b"%", b"%%")


def _write_texts(texts: list[object]) -> bytes:
    """Write a list of texts, mostly a single one; anything else is a ``ValueError``."""
    if len(texts) == 1 and type(texts[0]) is str:
        return _encode(texts)
    if any(type(text) is not str for text in texts):
        raise ValueError
    return space_json(_encode(texts))
