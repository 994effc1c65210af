"""Log-likelihoods from echoed log-probabilities: the tokens of the continuation, and whether to trust them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from math import isnan
from typing import NamedTuple

from evalcore.core.records.frozen_dict import freeze_value
from evalcore.core.records.request import Likelihood, LogLikelihood, Rolling
from evalcore.shell.models.openai.arguments import ServerKind, ServerSettings
from evalcore.shell.models.openai.body import read_choice, read_generation
from evalcore.shell.models.openai.http_faults import NEVER, Wrong

BLANKS = " \n\u2581\u0120"
"""What may precede the letter of a token: blanks, and what tokenizers write for them."""


class Echo(NamedTuple):
    """The tokens of an echoed text, where each begins in it, and how likely each was; -1 is before the text."""

    tokens: tuple[str, ...]
    offsets: tuple[int, ...]
    logprobs: tuple[object, ...]
    tops: tuple[object, ...]


def place_text(request: LogLikelihood | Rolling, before: str | None) -> tuple[str, int]:
    """Place the text to send, and find where in it the part begins whose likelihood is asked.

    Spaces at the end of a context count with the continuation, as in lm-eval: that is where tokenizers put them. A text
    without context follows ``before``, the model's end (or beginning) of text.

    >>> place_text(LogLikelihood("Q: 2+2? A: ", "4"), None), place_text(Rolling("A text."), "</s>")
    (('Q: 2+2? A: 4', 10), ('</s>A text.', 4))
    """
    context, text = (
        (request.context, request.continuation) if isinstance(request, LogLikelihood) else ("", request.text)
    )
    start = len(context.rstrip())
    prefix = "" if start else before or ""
    return prefix + context + text, start + len(prefix)


def write_echo(settings: ServerSettings, prompt: str) -> dict[str, object]:
    """Make the body that asks for the log-probabilities of a text; some servers refuse to generate nothing, so one
    token.

    >>> write_echo(ServerSettings("m"), "a text")["echo"]
    True
    """
    return {
        "model": settings.model,
        "prompt": prompt,
        "temperature": 0,
        "max_tokens": 1,
        "logprobs": 1,
        "seed": settings.seed,
        "echo": True,
    }


def find_offsets(tokens: list[str], given: object, prompt: str) -> list[int] | None:
    """Find where each token begins in the prompt: by the tokens themselves, else by offsets that fit them.

    Up to two tokens that are not in the text (a beginning of text) may come first.

    >>> find_offsets(["<s>", "One", " two", " x"], None, "One two")
    [-1, 0, 3, 7]
    """
    for skipped in range(3):
        if "".join(tokens[skipped:]).startswith(prompt):
            return [-1] * skipped + list(accumulate(map(len, tokens[skipped:-1]), initial=0))
    if (
        not tokens
        or not isinstance(given, list)
        or len(given) != len(tokens)
        or not all(type(one) is int for one in given)
    ):
        return None
    for token, start, end in zip(tokens, given, [*given[1:], None], strict=True):
        part = "\ufffd" in token or token.startswith("bytes:")  # part of a character: it has no text to compare
        inside = not part and start < len(prompt)
        if start < 0 or (inside and not (prompt.startswith(token, start) and end in (None, start + len(token)))):
            return None
    return list(given) if given[0] == 0 and given == sorted(given) else None


def read_echo(content: bytes, prompt: str) -> Echo:
    """Read the echoed tokens of a reply, which must be those of the prompt."""
    tokens, values, tops, given = read_columns(read_choice(content).get("logprobs"))
    offsets = find_offsets(tokens, given, prompt)
    if offsets is None:
        raise _refuse_logprobs(f"the server did not echo the prompt token by token; its first tokens are {tokens[:3]}")
    return Echo(tuple(tokens), tuple(offsets), tuple(values), tuple(map(freeze_value, tops)))


class TokenColumns(NamedTuple):
    """Tokens, the log-probability of each, the likeliest ones in its place, and offsets if the server gives any."""

    tokens: list[str]
    values: list[object]
    tops: list[object]
    offsets: object = None


def read_columns(logprobs: object) -> TokenColumns:
    """Read log-probabilities in either of their shapes: columns, as OpenAI's completions, vLLM and SGLang give them, or
    a record for each token (``content``), as chat endpoints do, and llama-server everywhere.

    >>> read_columns({"content": [{"token": "B", "logprob": -0.5, "top_logprobs": [{"token": "B", "logprob": -0.5}]}]})
    TokenColumns(tokens=['B'], values=[-0.5], tops=[{'B': -0.5}], offsets=None)
    """
    if not isinstance(logprobs, dict):
        raise _refuse_logprobs("the reply has none")
    columns: list[object] = [logprobs.get(name) for name in ("tokens", "token_logprobs", "top_logprobs")]
    if isinstance(listed := logprobs.get("content"), list):
        records = [one if isinstance(one, dict) else {} for one in listed]
        tops = [_read_tops(one.get("top_logprobs")) for one in records]
        columns = [[one.get("token") for one in records], [one.get("logprob") for one in records], tops]
    lists = [column for column in columns if isinstance(column, list)]
    if len(lists) != 3 or len(set(map(len, lists))) != 1 or not all(isinstance(one, str) for one in lists[0]):
        raise _refuse_logprobs("expected tokens, token_logprobs and top_logprobs of one length")
    return TokenColumns(lists[0], lists[1], lists[2], logprobs.get("text_offset"))


def _read_tops(listed: object) -> dict[str, object] | None:
    """The likeliest tokens by text; of two with the same text (bytes of one character), the likelier."""
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        return None
    pairs = [(str(one.get("token")), one.get("logprob")) for one in listed]
    return dict(reversed(pairs))


def read_letter(offered: str, kind: ServerKind, think_end: str | None, content: bytes) -> tuple[str, str]:
    """Read which offered letter the first token's log-probabilities give the most; the text itself if they give none.

    A letter ends its reply: it was asked for as a single token, and nothing was cut off.

    >>> read_letter("AB", ServerKind("c", chat=True), None, b'''{"choices": [{"index": 0, "finish_reason": "length",
    ...   "message": {"content": "The"}, "logprobs": {"content": [{"token": "The", "top_logprobs": [
    ...   {"token": "The", "logprob": -1}, {"token": " C", "logprob": -1.5}, {"token": "A", "logprob": -1.2}]}]}}]}''')
    ('A', 'stop')
    """
    text, finish = read_generation(kind, think_end, content)
    tops = read_columns(read_choice(content).get("logprobs")).tops
    first = tops[0] if tops else None
    if not isinstance(first, dict) or not first:
        raise _refuse_logprobs(
            "the first token has no likeliest ones beside it; multiple_choice_by: letter reads the text instead"
        )
    letters = [(_check_logprob(value, 1), one.strip(BLANKS)) for one, value in first.items() if is_letter(one, offered)]
    best = max(letters, default=None)
    return (best[1], "stop") if best else (text, finish)


def is_letter(token: str, offered: str) -> bool:
    """Whether a token is one of the offered letters, with or without a blank before it.

    >>> is_letter(" B", "ABC"), is_letter("b", "ABC"), is_letter("BC", "ABC"), is_letter("I", "ABC")
    (True, False, False, False)
    """
    return token.strip(BLANKS) in set(offered)


def read_likelihood(content: bytes, prompt: str, start: int, most: int) -> Likelihood:
    """Read the likelihood of the prompt from ``start`` on: of the tokens that begin there or later.

    A token that begins before ``start`` and ends after it counts with the context, as in lm-eval.

    >>> read_likelihood(b'''{"choices": [{"index": 0, "logprobs": {"tokens": ["One", " two", " x"], "token_logprobs":
    ...   [null, -0.5, -1], "top_logprobs": [null, {" two": -0.5}, {" x": -1}]}}]}''', "One two", 3, 2048)
    Likelihood(value=-0.5, greedy=True, tokens=1)
    """
    echo = read_echo(content, prompt)
    chosen = [at for at, offset in enumerate(echo.offsets) if start <= offset < len(prompt)]
    length = sum(offset < len(prompt) for offset in echo.offsets)
    if length > most:
        raise Wrong(
            f"too_long: {length} tokens, more than max_length {most}; nothing is cut here, so set max_length "
            "in model_args to what the model can take",
            again=NEVER,
        )
    if not chosen:
        raise _refuse_logprobs("no token begins within the continuation")
    values = [_check_logprob(echo.logprobs[at], at) for at in chosen]
    greedy = all(value >= _find_best(echo.tops[at], at) for at, value in zip(chosen, values, strict=True))
    return Likelihood(sum(values), greedy, len(values))


def _check_logprob(value: object, at: int) -> float:
    if value is None and at == 0:
        raise _refuse_logprobs(
            "the first token has none, as nothing stands before it; give eos_string in model_args, the text "
            "of the model's end-of-text (or beginning-of-text) token"
        )
    if isinstance(value, bool) or not isinstance(value, int | float) or isnan(value) or value > 0:
        raise _refuse_logprobs(f"expected a number of at most 0 for token {at}, got {value!r}")
    return float(value)


def _find_best(top: object, at: int) -> float:
    if not isinstance(top, Mapping) or not top:
        raise _refuse_logprobs(f"expected the most likely tokens in place of token {at}, got {top!r}")
    return max(_check_logprob(value, at) for value in top.values())


def _refuse_logprobs(what: str) -> Wrong:
    return Wrong(f"bad_logprobs: {what}", again=NEVER)
