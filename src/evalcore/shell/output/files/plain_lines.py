"""The lines of a sample log as bytes: those of plain generations without a dict for each, others from their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from evalcore.core.answers.table import AnswerTable
from evalcore.core.lm_eval.sample_log import DOC_ID, DocumentRows, FilterRows, hash_doc, hash_text, thaw
from evalcore.core.records.document import encode_alike, recode_doc
from evalcore.core.records.request import Generate, Options, Sample
from evalcore.core.records.score import Scored
from evalcore.shell.logs.lm_eval.golds import Targets
from evalcore.shell.output.files.run_files import DocumentLines
from evalcore.shell.output.files.sample_lines import SampleRows
from evalcore.shell.prompts.ready_task import Built
from evalcore.shell.safety.secrets import hide_keys
from evalcore.shell.safety.strict_json import make_ascii, space_json

_encode = msgspec.json.Encoder().encode


def list_lines(
    scored: Scored,
    built: Built,
    answers: AnswerTable,
    targets: Mapping[int, object] | None = None,
    known: Targets | None = None,
) -> Iterator[DocumentLines | DocumentRows]:
    """The lines of each document or, where they are not plain, its rows (see ``list_documents``)."""
    if not built.samples:
        return
    rows = SampleRows(scored, built, answers, targets, known)
    plain = make_plain_lines(rows)
    for sample in sorted(built.samples, key=DOC_ID):
        lines = None if plain is None or sample.doc_id in rows.touched else plain.write_lines(sample)
        yield rows.make_rows(sample) if lines is None else lines


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
    """Writes the bytes that Python's json would write of the rows of a document."""

    def __init__(self, rows: SampleRows, docs: Sequence[int], filters: Iterable[FilterRows]) -> None:
        self.asked = dict(zip(docs, zip(rows.built.requests, rows.answers.values, strict=True), strict=True))
        self.targets, self.filters = rows.targets, list(map(_FilterLines, filters))
        self.options: dict[int, bytes] = {}  # the options that a task's requests share are written once

    def write_lines(self, sample: Sample) -> DocumentLines | None:
        """Write the lines of a document; None where it takes more than is done here."""
        key = sample.doc_id
        request, reply = self.asked.get(key, (None, None))
        doc = recode_doc(sample)
        if doc is None or not isinstance(request, Generate) or type(reply) is not str:
            return None
        prompt, target = request.prompt, str(self.targets[key])
        of_doc, of_prompt, of_target = hash_doc(None, doc), hash_text(prompt), hash_text(target)
        hashes = f', "doc_hash": "{of_doc}", "prompt_hash": "{of_prompt}", "target_hash": "{of_target}"'.encode()
        try:
            ends = [one.go_on(key, hashes) for one in self.filters]
            parts = (
                b'{"doc_id": %d, "doc": ' % key,
                space_json(doc),
                b', "target": ',
                _encode(target),
                b', "arguments": {"gen_args_0": {"arg_0": ',
                _encode(prompt),
                b', "arg_1": ',
                self.options.get(id(request.options)) or self._write_options(request.options),
                b'}}, "resps": [[',
                _encode(reply),
                b"]]",
            )
        except (ValueError, KeyError):  # a lone surrogate, a number that json writes otherwise, a document unscored
            return None
        return DocumentLines(make_ascii(b"".join(parts)), ends, of_doc + of_prompt + of_target)

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
        about = {"filter": rows.name, "metrics": [metric for metric, _ in rows.columns]}
        self.about = b", " + space_json(_encode(about))[1:-1]
        self.scores = [(b", %b: " % _encode(metric), found) for metric, found in rows.columns]

    def go_on(self, key: int, hashes: bytes) -> bytes:
        a, b = self.spans[key]
        kept = _write_texts(self.replies[a:b])
        if self.listed:
            kept = b"[%b]" % kept
        scores = [part for name, found in self.scores for part in (name, _encode(found[key]))]
        return make_ascii(b"".join((b', "filtered_resps": ', kept, self.about, hashes, *scores, b"}\n")))


def _write_texts(texts: list[object]) -> bytes:
    """Write a list of texts, mostly a single one; anything else is a ``ValueError``."""
    if len(texts) == 1 and type(texts[0]) is str:
        return _encode(texts)
    if any(type(text) is not str for text in texts):
        raise ValueError
    return space_json(_encode(texts))
