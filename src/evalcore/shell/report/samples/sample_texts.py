"""What was asked of a model and what it replied, as texts for a page."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import msgspec

from evalcore.core.filters.reply import Span
from evalcore.core.records.request import Failure, Generate, LogLikelihood, Reply, Request, Rolling
from evalcore.shell.explain.lookup import pair_replies
from evalcore.shell.logs.log import Logged

SHORT = 120


def clean_text(text: str) -> str:
    r"""A text that UTF-8 can hold.

    >>> clean_text("a\ud800b")
    'a?b'
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def shorten(text: str, most: int = SHORT) -> str:
    r"""The beginning of a text, in one line.

    >>> shorten("one\ntwo three", 8)
    'one two…'
    """
    line = " ".join(text[: 4 * most].split())
    return clean_text(line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 1].rstrip()}…")


def write_prompt(row: Logged) -> str:
    """What a document was asked, its continuations aside."""
    return clean_text(_write_context(row.requests[0])) if row.requests else ""


def _write_context(request: Request) -> str:
    match request:
        case Generate(prompt):
            return prompt
        case LogLikelihood(context):
            return context
        case Rolling(text):
            return text


def write_replies(row: Logged) -> list[object]:
    """Every reply: a text, a failure with its reason, or a continuation with its log-likelihood and greediness."""
    asked = write_prompt(row)
    return [_write_reply(request, reply, asked) for request, some in pair_replies(row) for reply in some]


def _write_reply(request: Request, reply: Reply | None, asked: str) -> object:
    if isinstance(reply, str):
        return clean_text(reply)
    if reply is None or isinstance(reply, Failure):
        return {"failed": clean_text(reply.reason) if reply is not None else "no answer"}
    shown = ""
    if isinstance(request, LogLikelihood):
        context = clean_text(request.context)
        shown = clean_text(request.continuation) if context == asked else f"{context} ▸ {request.continuation}"
    value, greedy = (float(reply[0]), bool(reply[1])) if isinstance(reply, tuple) else (float(reply), False)
    return [clean_text(shown), value if abs(value) < float("inf") else str(value), greedy]


def write_gold(row: Logged) -> str:
    """The right answer; that of a choice with its text.

    >>> asked = (LogLikelihood("?", " red"), LogLikelihood("?", " blue"))
    >>> write_gold(Logged(doc_id=0, doc=b"{}", gold=1, requests=asked))
    '1: blue'
    """
    gold = row.gold
    if isinstance(gold, str):
        return clean_text(gold)
    if isinstance(gold, int) and not isinstance(gold, bool) and 0 <= gold < len(row.requests):
        one = row.requests[gold]
        return clean_text(f"{gold}: {one.continuation.strip()}" if isinstance(one, LogLikelihood) else str(gold))
    return "" if gold is None else clean_text(msgspec.json.encode(gold, enc_hook=str).decode())


def write_answer(row: Logged, kept: Sequence[str] | None) -> str:
    """What counts as the answer, in short: what a filter left, else the likeliest choice, else the first reply."""
    if kept and all(isinstance(one, Generate) for one in row.requests):
        return shorten(" · ".join(kept), 40)
    listed = [(reply[0], one.continuation) for one, reply in _list_likelihoods(row)]
    if len(listed) > 1:
        return shorten(max(listed, key=itemgetter(0))[1].strip(), 40)
    first = next((one for some in row.replies for one in some), None)
    return shorten(first, 40) if isinstance(first, str) else ""


def _list_likelihoods(row: Logged) -> list[tuple[LogLikelihood, tuple[float, ...]]]:
    pairs = zip(row.requests, row.replies, strict=False)
    return [
        (one, some[0]) for one, some in pairs if isinstance(one, LogLikelihood) and some and isinstance(some[0], tuple)
    ]


def write_spans(spans: Sequence[Span], texts: Sequence[str]) -> list[list[int]]:
    """Spans as JavaScript counts, which takes a character beyond the first 65,536 for two.

    >>> write_spans([(0, 2, 3)], ["\U0001f40d 4"])
    [[0, 3, 4]]
    """
    return [[at, *(_count_units(texts[at], end) for end in ends)] for at, *ends in spans]


def _count_units(text: str, end: int) -> int:
    return end if text.isascii() else len(text[:end].encode("utf-16-le", "surrogatepass")) // 2
