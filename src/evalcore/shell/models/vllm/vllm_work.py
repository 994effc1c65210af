"""Questions to prompts in tokens, and outputs of vLLM to replies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from typing import Any

from msgspec import Struct

from evalcore.core.prefixes import Tokens
from evalcore.core.records.document import request_key
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure, Generate, Likelihood, LogLikelihood, Rolling
from evalcore.shell.answerlog.spent import Spent
from evalcore.shell.models.breakdown import end_in_sentence, lacks_memory
from evalcore.shell.models.decode import add_likelihoods, cut_text, read_decoding
from evalcore.shell.models.hf.tokenizer import TextEncoder
from evalcore.shell.models.model import Heard, Notice, Question, fit_reply
from evalcore.shell.models.token_pair import encode_pair, fit_pair, roll_windows, tell_worn
from evalcore.shell.models.vllm.vllm_settings import VllmSettings

SEEDS = 1 << 31
Pair = tuple[Tokens, Tokens]


class VllmEngine(Struct, frozen=True):
    """A loaded model, its tokenizer, how many positions it has, how sampling parameters are made, and its adapter."""

    llm: Any
    sampling: Any
    encoder: TextEncoder
    settings: VllmSettings
    longest: int
    adapter: Any = None


class Prompts(Struct, frozen=True):
    """The prompts of a question: pairs whose likelihoods add up, or one prompt to continue; ``worn`` if it was cut."""

    at: int
    pairs: tuple[Pair, ...]
    how: Any
    until: tuple[str, ...] = ()
    worn: bool = False


def answer_questions(engine: VllmEngine, questions: Sequence[Question]) -> Iterator[Heard | Notice]:
    """Answer questions batch by batch; vLLM orders the requests of a batch by itself."""
    return end_in_sentence(_answer_all(engine, questions), lambda wrong: _advise(wrong, engine))


def _advise(wrong: Exception, engine: VllmEngine) -> str:
    if lacks_memory(wrong):
        return f"; try a smaller max_model_len (now {engine.longest}), max_num_seqs or gpu_memory_utilization"
    if isinstance(wrong, ValueError):  # what vLLM raises for a prompt that it refuses
        return f"; are max_model_len ({engine.longest}) and the tokenizer those of the model?"
    return "; what vLLM wrote above says why. Answers that were logged stay"


def _answer_all(engine: VllmEngine, questions: Sequence[Question]) -> Iterator[Heard | Notice]:
    worn = 0
    for start in range(0, len(questions), engine.settings.batch):
        ready = list[Prompts]()
        batch = range(start, min(start + engine.settings.batch, len(questions)))
        engine.encoder.announce(questions[at].request for at in batch)
        for at in batch:
            try:
                ready.append(_prepare_prompts(engine, at, questions[at]))
            except EvalError as wrong:
                yield Heard(at, Failure(str(wrong)))
        prompts = [{"prompt_token_ids": [*one, *two]} for work in ready for one, two in work.pairs]
        how = [work.how for work in ready for _ in work.pairs]
        made = engine.llm.generate(prompts, how, use_tqdm=False, lora_request=engine.adapter) if prompts else ()
        outputs = iter(made)
        for place, work in enumerate(ready, 1):
            mine = [next(outputs) for _ in work.pairs]
            heard = _read_outputs(engine, work, questions[work.at], mine)
            yield heard._replace(more=place < len(ready))
        worn += sum(work.worn for work in ready)
    if worn:
        yield Notice(tell_worn(worn, len(questions), engine.longest))


def _prepare_prompts(engine: VllmEngine, at: int, question: Question) -> Prompts:
    request, encode, prefix = question.request, engine.encoder.encode, engine.encoder.prefix
    if isinstance(request, Generate):
        how = read_decoding(request.options, engine.settings.max_gen_toks, penalizes=True)
        room = engine.longest - how.max_gen_toks
        if room < 1:
            told = f"expected max_gen_toks below the {engine.longest} positions of the model, got {how.max_gen_toks}"
            raise EvalError(told)
        seed = int(request_key(str(engine.settings.seed), request, {}, question.repeat), 16) % SEEDS
        thinks = engine.settings.think_end_token  # as in lm-eval, a stop string in a thought ends nothing
        stops = None if thinks else [one for one in how.until if one] or None
        parameters = engine.sampling(
            temperature=how.temperature,
            top_k=how.top_k,
            top_p=how.top_p,
            min_p=how.min_p,
            repetition_penalty=1.0 if how.repetition_penalty is None else how.repetition_penalty,
            max_tokens=how.max_gen_toks,
            stop=stops,
            seed=seed,
            skip_special_tokens=False,  # as in lm-eval: a stop string, or the end of thinking, may be such a token
            spaces_between_special_tokens=False,
        )
        tokens = encode(request.prompt) or (prefix,)
        return Prompts(at, ((tokens[-room:], ()),), parameters, how.until, len(tokens) > room)
    parameters = engine.sampling(temperature=0.0, prompt_logprobs=1, max_tokens=1, detokenize=False)
    longest = engine.longest - 2  # fit_pair leaves one token more than this, and vLLM generates another
    if longest < 1:
        raise EvalError(f"expected a model of at least 3 positions, got {engine.longest}")
    if isinstance(request, LogLikelihood):
        pair = encode_pair(request.context, request.continuation, prefix, encode)
        fitted = fit_pair(*pair, longest)
        return Prompts(at, (fitted,), parameters, worn=len(fitted[0]) < len(pair[0]))
    windows = roll_windows(encode(request.text if isinstance(request, Rolling) else ""), prefix, longest)
    return Prompts(at, tuple(fit_pair(*window, longest) for window in windows), parameters)


def _read_outputs(engine: VllmEngine, work: Prompts, question: Question, outputs: Sequence[Any]) -> Heard:
    read = sum(len(one) + len(two) for one, two in work.pairs)
    cached = sum(getattr(one, "num_cached_tokens", None) or 0 for one in outputs)
    if isinstance(question.request, Generate):
        said = outputs[0].outputs[0]
        text = _leave_answer(said.text, engine.settings.think_end_token)
        short = cut_text(text, work.until)
        finish = (said.finish_reason or "") if short == text else "stop"
        spent = Spent(read, len(said.token_ids), cached=min(cached, read))
        return Heard(work.at, short, finish, spent=spent)
    try:
        parts = [read_likelihood(one.prompt_logprobs, *pair) for one, pair in zip(outputs, work.pairs, strict=True)]
    except EvalError as wrong:
        return Heard(work.at, Failure(str(wrong)))
    spent = Spent(read, 0, cached=min(cached, read))
    return Heard(work.at, fit_reply(question.request, add_likelihoods(parts)), spent=spent)


def _leave_answer(text: str, think_end: str | None) -> str:
    return text.rpartition(think_end)[2].lstrip() if think_end and think_end in text else text


def read_likelihood(logprobs: Any, context: Tokens, continuation: Tokens) -> Likelihood:
    """Read the likelihood of a continuation from the log-probabilities of a prompt; greedy if each token has rank 1.

    >>> from types import SimpleNamespace as Logprob
    >>> given = [None, {7: Logprob(logprob=-0.5, rank=1)}, {8: Logprob(logprob=-2.0, rank=3), 9: Logprob(rank=1)}]
    >>> read_likelihood(given, (5,), (7, 8))
    Likelihood(value=-2.5, greedy=False, tokens=2)
    """
    rows = (logprobs or ())[len(context) :]
    if len(rows) != len(continuation) or any(not row or token not in row for row, token in zip(rows, continuation)):  # noqa: B905
        raise EvalError(f"expected log-probabilities of {len(continuation)} prompt tokens from vLLM, got others")
    found = [row[token] for row, token in zip(rows, continuation, strict=True)]
    if not all(one.logprob <= 0 for one in found):
        raise EvalError("expected log-probabilities of at most 0 from vLLM, got others")
    return Likelihood(fsum(one.logprob for one in found), all(one.rank == 1 for one in found), len(found))
