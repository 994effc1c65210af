"""Questions to tokens, and tokens to replies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from time import perf_counter

from msgspec import Struct

from evalcore.core.prefixes import Sizes
from evalcore.core.records.document import request_key
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure, Generate, Likelihood, LogLikelihood, Reply, Rolling
from evalcore.shell.answerlog.spent import Spent
from evalcore.shell.models.breakdown import end_in_sentence, lacks_memory
from evalcore.shell.models.decode import Decoding, add_likelihoods, read_decoding
from evalcore.shell.models.hf.continuation import GrownText, Growth, Prompt
from evalcore.shell.models.hf.hf_settings import HfSettings
from evalcore.shell.models.hf.network import Network
from evalcore.shell.models.hf.plain import PlainBatches
from evalcore.shell.models.hf.tokenizer import Speech, TextEncoder
from evalcore.shell.models.hf.walk import TokenPair, Walk
from evalcore.shell.models.model import Heard, Notice, Question, fit_reply
from evalcore.shell.models.token_pair import encode_pair, fit_pair, roll_windows, tell_worn

TOKENS_A_ROW = 48
"""Tokens of likelihoods and prompts in a call, for each reply that may grow in one."""

MOST_A_ROW = 4096
"""The most of them: the mask of a call is as wide as the row and its trunk together."""


class HfEngine(Struct, frozen=True):
    """A loaded model with its tokenizer; ``plain`` if requests go without a prefix tree."""

    network: Network
    encoder: TextEncoder
    settings: HfSettings
    longest: int
    speech: Speech
    plain: PlainBatches | None = None

    @property
    def sizes(self) -> Sizes:
        tokens = min(TOKENS_A_ROW * self.settings.batch, MOST_A_ROW)
        return Sizes(tokens, tokens, kept=self.settings.cache_tokens)


def answer_questions(engine: HfEngine, questions: Sequence[Question]) -> Iterator[Heard | Notice]:
    """Answer the questions that are not known. All of them, known or not, decide what is evaluated together."""
    return end_in_sentence(_answer_all(engine, questions), lambda wrong: _advise(wrong, engine))


def _advise(wrong: Exception, engine: HfEngine) -> str:
    settings = engine.settings
    if isinstance(wrong, IndexError):
        return f"; are max_length ({engine.longest}) and the tokenizer those of the model?"
    if lacks_memory(wrong):
        return f"; try a smaller batch_size (now {settings.batch}) or cache_tokens (now {settings.cache_tokens})"
    return ""


def _answer_all(engine: HfEngine, questions: Sequence[Question]) -> Iterator[Heard | Notice]:
    engine.encoder.announce((one.request for one in questions), apart=engine.plain is not None and engine.plain.encoder)
    worn = list[int]()
    likely = [at for at, one in enumerate(questions) if not isinstance(one.request, Generate)]
    yield from _answer_likelihoods(engine, questions, likely, worn)
    groups: dict[Decoding, list[int]] = {}
    for at, one in enumerate(questions):
        if isinstance(one.request, Generate):
            how = read_decoding(one.request.options, engine.settings.max_gen_toks, penalizes=True)
            groups.setdefault(how, []).append(at)
    for how, ats in groups.items():
        yield from _answer_texts(engine, questions, how, ats, worn)
    if worn:
        yield Notice(tell_worn(len(worn), len(questions), engine.longest))


def _answer_likelihoods(
    engine: HfEngine, questions: Sequence[Question], ats: Sequence[int], worn: list[int]
) -> Iterator[Heard]:
    pairs, owners, left, sizes = list[TokenPair](), list[int](), dict[int, int](), dict[int, int]()
    account = Account(engine.network, questions)
    for at in ats:
        try:
            mine = list(_list_pairs(engine, questions[at], at, worn))
        except EvalError as wrong:
            if not questions[at].known:
                yield Heard(at, Failure(str(wrong)))
            continue
        pairs += mine
        sizes[at] = sum(len(pair.sequence) for pair in mine)
        owners += [at] * len(mine)
        left[at] = len(mine)
        if not mine and not questions[at].known:
            yield Heard(at, fit_reply(questions[at].request, Likelihood(0.0, True, 0)))
    parts: dict[int, list[Likelihood]] = {at: [] for at in left}
    open = [at for at, owner in enumerate(owners) if not questions[owner].known]
    made = engine.plain.score(pairs, open) if engine.plain else Walk(engine.network, pairs, engine.sizes, open)
    for group in made:
        done = list[int]()
        for place, likelihood in group:
            owner = owners[place]
            parts[owner].append(likelihood)
            left[owner] -= 1
            done += [owner] * (left[owner] == 0)
        yield from account.tell([(at, add_likelihoods(parts.pop(at)), "", sizes[at], 0) for at in done])


def _list_pairs(engine: HfEngine, question: Question, at: int, worn: list[int]) -> Iterator[TokenPair]:
    """The pairs of a question, cut to what the model takes."""
    request, encode, prefix = question.request, engine.encoder.encode, engine.encoder.prefix
    if isinstance(request, Rolling):
        windows = roll_windows(encode(request.text), prefix, engine.longest)
        yield from (TokenPair(*fit_pair(*window, engine.longest)) for window in windows)
    elif isinstance(request, LogLikelihood):
        if engine.plain is not None and engine.plain.encoder:
            bare = request.context.rstrip()
            spaces = request.context[len(bare) :]
            pair = (encode(bare) or (prefix,), encode(spaces + request.continuation, False))
            fitted = (pair[0][-engine.longest :], fit_pair((), pair[1], engine.longest)[1])
        else:
            pair = encode_pair(request.context, request.continuation, prefix, encode)
            fitted = fit_pair(*pair, engine.longest)
        worn += [at] * (len(fitted[0]) < len(pair[0]))
        yield TokenPair(*fitted)


def _answer_texts(
    engine: HfEngine, questions: Sequence[Question], how: Decoding, ats: Sequence[int], worn: list[int]
) -> Iterator[Heard]:
    account = Account(engine.network, questions)
    room = engine.longest if engine.plain is not None and engine.plain.encoder else engine.longest - how.max_gen_toks
    if room < 1:
        wrong = f"expected max_gen_toks below the {engine.longest} positions of the model, got {how.max_gen_toks}"
        yield from account.tell([(at, Failure(wrong), "", 0, 0) for at in ats if not questions[at].known])
        return
    prompts = list[Prompt]()
    for at in ats:
        request = questions[at].request
        tokens = engine.encoder.encode(request.prompt if isinstance(request, Generate) else "") or (
            engine.encoder.prefix,
        )
        worn += [at] * (len(tokens) > room)
        seed = int(request_key(str(engine.settings.seed), request, {}, questions[at].repeat), 16)
        prompts.append(Prompt(tokens[-room:], seed))
    open = [place for place, at in enumerate(ats) if not questions[at].known]
    made: Iterable[list[tuple[int, GrownText]]] = (
        engine.plain.generate(prompts, how, engine.speech, open)
        if engine.plain
        else Growth(engine.network, prompts, how, engine.speech, engine.sizes, engine.settings.batch, open)
    )
    for group in made:
        made_now = [(ats[place], one.text, one.finish, len(prompts[place].tokens), one.tokens) for place, one in group]
        yield from account.tell(made_now)


class Account:
    """Tells replies with what they took. Tokens that were not evaluated for them were at hand."""

    def __init__(self, network: Network, questions: Sequence[Question]) -> None:
        self.network, self.questions, self.before = network, questions, network.evaluated
        self.since = perf_counter()

    def tell(self, made: Sequence[tuple[int, Reply, str, int, int]]) -> Iterator[Heard]:
        """Tell what came together: places, replies, why they ended, tokens of prompts and of replies."""
        now = perf_counter()
        computed = self.network.evaluated - self.before
        seconds = round((now - self.since) / max(len(made), 1), 4)
        self.before, self.since = self.network.evaluated, now
        for place, (at, reply, finish, read, said) in enumerate(made, 1):
            fresh = min(max(computed, 0), read)
            computed -= fresh
            spent = Spent(read, said, cached=read - fresh, seconds=seconds)
            yield Heard(at, fit_reply(self.questions[at].request, reply), finish, place < len(made), spent)
