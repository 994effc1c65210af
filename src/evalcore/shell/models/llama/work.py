"""Questions to an embedded model: those with a common beginning one after the other, each answered as if alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np

from evalcore.core.prefixes import Tokens
from evalcore.core.records.document import request_key
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure, Generate, Likelihood, LogLikelihood, Reply
from evalcore.shell.answerlog.spent import Spent
from evalcore.shell.models.decode import (
    Decoding,
    add_likelihoods,
    choose_token,
    cut_text,
    read_decoding,
    score_rows,
)
from evalcore.shell.models.llama.tokens import TokenBlock, plan_context, plan_continuation
from evalcore.shell.models.llama.weights import Weights
from evalcore.shell.models.model import Heard, Notice, Question, fit_reply
from evalcore.shell.models.token_pair import encode_pair, fit_pair, roll_windows, tell_worn


class Work(NamedTuple):
    """A question in tokens: pairs whose likelihoods add up, or a prompt and how to continue it; ``worn`` if cut."""

    at: int
    pairs: tuple[tuple[Tokens, Tokens], ...]
    how: Decoding | None = None
    seed: int = 0
    worn: bool = False


def answer_questions(
    engine: Weights, questions: Sequence[Question], size: int, seed: int, max_gen_toks: int
) -> Iterator[Heard | Notice]:
    """Answer questions in the order of their tokens, so that common beginnings are evaluated once."""
    works: list[Work] = []
    for at, question in enumerate(questions):
        try:
            works.append(_prepare_work(engine, at, question, seed, max_gen_toks))
        except EvalError as wrong:
            yield Heard(at, Failure(str(wrong)))
    for work in sorted(works, key=lambda one: (one.how is not None, one.pairs)):
        start, before, said = perf_counter(), engine.evaluated, 0
        try:
            if work.how:
                reply, finish, said = _generate_text(engine, work, size)
            else:
                reply, finish = _score_work(engine, work, size), ""
        except EvalError as wrong:
            reply, finish = Failure(str(wrong)), ""
        read = sum(len(context) + len(continuation) for context, continuation in work.pairs)
        fresh = engine.evaluated - before - max(said - 1, 0)  # the first token of a reply comes with its prompt
        cached = max(read - fresh, 0)
        spent = Spent(read, said, cached=cached, seconds=round(perf_counter() - start, 4))
        yield Heard(work.at, fit_reply(questions[work.at].request, reply), finish, spent=spent)
    if worn := sum(work.worn for work in works):
        yield Notice(tell_worn(worn, len(questions), engine.n_ctx))


def _prepare_work(engine: Weights, at: int, question: Question, seed: int, max_gen_toks: int) -> Work:
    request = question.request
    prefix = engine.bos if engine.bos >= 0 else engine.eos
    if isinstance(request, Generate):
        how = read_decoding(request.options, max_gen_toks)
        room = engine.n_ctx - how.max_gen_toks
        if room < 1:
            raise EvalError(f"expected max_gen_toks below n_ctx = {engine.n_ctx}, got {how.max_gen_toks}")
        prompt = _encode_text(engine, request.prompt, True) or (prefix,)
        drawn = int(request_key(str(seed), request, {}, question.repeat), 16)
        return Work(at, ((prompt[-room:], ()),), how, drawn, len(prompt) > room)
    if isinstance(request, LogLikelihood):
        pair = encode_pair(request.context, request.continuation, prefix, lambda *text: _encode_text(engine, *text))
        fitted = fit_pair(*pair, engine.n_ctx)
        return Work(at, (fitted,), worn=len(fitted[0]) < len(pair[0]))
    tokens = _encode_text(engine, request.text, True)
    return Work(at, tuple(fit_pair(*pair, engine.n_ctx) for pair in roll_windows(tokens, prefix, engine.n_ctx)))


def _encode_text(engine: Weights, text: str, begin: bool) -> Tokens:
    """Encode a text, after a BOS token if the model wants one and the text does not begin with its name."""
    begins = begin and engine.adds_bos and not text.startswith(engine.text_of(engine.bos))
    return ((engine.bos,) if begins else ()) + engine.tokenize(text)


def _score_work(engine: Weights, work: Work, size: int) -> Reply:
    return add_likelihoods([_score_pair(engine, context, continuation, size) for context, continuation in work.pairs])


def _score_pair(engine: Weights, context: Tokens, continuation: Tokens, size: int) -> Likelihood:
    parts = [score_rows([engine.reach(plan_context(context, size))], continuation[:1])]
    done = 1
    for block in plan_continuation(continuation, size):
        predicted = continuation[done : done + block.rows]
        parts.append(score_rows(list(engine.push(block))[: len(predicted)], predicted))
        done += block.rows
    return add_likelihoods(parts)


def _generate_text(engine: Weights, work: Work, size: int) -> tuple[Reply, str, int]:
    """Generate a text; also why it ended, and how many tokens were drawn."""
    how, draw, raw = work.how or Decoding(), np.random.default_rng(work.seed), b""
    row = engine.reach(plan_context(work.pairs[0][0], size))
    for left in range(how.max_gen_toks, 0, -1):
        token = choose_token(row, how, draw)
        drawn = how.max_gen_toks - left + 1
        if engine.ends(token):
            return raw.decode("utf-8", "replace"), "stop", drawn
        raw += engine.piece(token)
        text = raw.decode("utf-8", "replace")
        if (short := cut_text(text, how.until)) != text:
            return short, "stop", drawn
        if left > 1:
            row = engine.push(TokenBlock((token,), 1))[0]
    return text, "length", drawn
