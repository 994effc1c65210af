"""Documents of a log as samples: with the golds and choices of the log, or as a task reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from evalcore.core.records.errors import EvalError, locate, place
from evalcore.core.records.request import GENERATE_UNTIL, MULTIPLE_CHOICE, Gold, Sample
from evalcore.shell.data.wire import decode_line
from evalcore.shell.logs.log import Logged

ReadSample = Callable[[Logged], Sample]

READ = ("doc_to_text", "doc_to_target", "doc_to_choice", "target_delimiter", "output_type", "task")


def read_as_logged(one: Logged) -> Sample:
    """Make a sample with the gold and choices of the log.

    >>> read_as_logged(Logged(doc_id=3, doc=b"{}", gold=["a", "b"])).gold
    ('a', 'b')
    """
    gold: Gold = one.gold  # type: ignore[assignment]  # as readers resolve it; a list becomes a tuple there
    return Sample(one.doc_id, gold, one.choices, one.doc, one.id, one.cluster)


def read_by_task(config: Mapping[str, object], first: Logged, *, as_host: bool = False) -> ReadSample:
    """Make the reader of gold and choices by a task's ``doc_to_target`` and ``doc_to_choice``, as in a run.

    The first document says whether texts that look like lists are lists; with ``as_host``, how all targets are read.
    """
    from evalcore.core.lm_eval.target import choose_golds
    from evalcore.shell.prompts.asker import ask_document, make_asker
    from evalcore.shell.prompts.fields import hold_plain_text
    from evalcore.shell.prompts.ready_task import Asking
    from evalcore.shell.prompts.settings import decode_settings

    given = {key: config[key] for key in READ if config.get(key) is not None}
    if given.get("output_type") != MULTIPLE_CHOICE:
        given["doc_to_text"] = ""  # only of choices does the question say which is right
    settings = decode_settings({"doc_to_text": "", **given})
    doc = decode_document(first)
    texts = settings.output_type == GENERATE_UNTIL and not as_host
    texts = texts and hold_plain_text(settings.doc_to_target, tuple(doc), [doc])
    asker = make_asker(settings, tuple(doc), Asking(), mutual=False, texts=texts)
    try:
        text, target = asker.ours.text(doc), asker.ours.target(doc)
    except EvalError as wrong:
        raise locate(wrong, place(settings.task, first.doc_id)) from wrong
    chosen = asker.ours.choices is not None
    golds = choose_golds(target, choices=chosen, as_host=as_host)
    asker = replace(asker, several_inputs=isinstance(text, int) and chosen, golds=golds)

    def read(one: Logged) -> Sample:
        try:
            asked = ask_document(asker, decode_document(one), ())
        except Exception as wrong:
            raise locate(wrong, place(settings.task, one.doc_id)) from wrong
        return Sample(one.doc_id, asked.gold, asked.choices, one.doc, one.id, one.cluster)

    return read


def add_cluster(read: ReadSample, cluster: str) -> ReadSample:
    """Add clusters by a field or template to a reader of documents."""
    from evalcore.shell.logs.runs.identity import make_cluster_reader

    unit = make_cluster_reader(cluster)

    def clustered(one: Logged) -> Sample:
        return replace(read(one), cluster=unit(decode_document(one)))

    return clustered


def decode_document(one: Logged) -> dict[str, object]:
    """Decode the fields of a document.

    >>> decode_document(Logged(doc_id=3, doc=b'{"q": NaN}', gold=None))
    {'q': nan}
    """
    found = decode_line(one.doc, f"doc {one.doc_id}")
    if not isinstance(found, dict):
        raise EvalError(f"expected a document with fields, got {str(found)[:60]!r} - at doc {one.doc_id}")
    return found


def has_fields(one: Logged) -> bool:
    """Whether a log has the document and not only its number."""
    return one.doc[:1] == b"{" and one.doc.strip() != b"{}"
