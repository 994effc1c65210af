"""Models behind an OpenAI-compatible server: completions and chat completions, local or OpenAI's own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from os import environ
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import CHOOSE, Failure, Generate, Reply
from evalcore.shell.answerlog.line import Withdrawn
from evalcore.shell.models.model import AskWhile, Backend, Heard, Model, Notice, Question, fit_reply
from evalcore.shell.models.openai.arguments import ARGUMENTS, ServerKind, ServerSettings, read_settings, warn_of_ignored
from evalcore.shell.models.openai.body import (
    encode_body,
    is_reasoning,
    read_generation,
    render_messages,
    write_generation,
)
from evalcore.shell.models.openai.endpoint import Endpoint, find_endpoint
from evalcore.shell.models.openai.http_faults import Patience
from evalcore.shell.models.openai.http_wire import Surety
from evalcore.shell.models.openai.logprobs import place_text, read_letter, read_likelihood, write_echo
from evalcore.shell.safety.credentials import note_credentials
from evalcore.shell.safety.secrets import hide_in_text

if TYPE_CHECKING:
    import asyncio

    from evalcore.shell.models.openai.http_session import Session

T = TypeVar("T")

SHIFTED = "may be the reply to another question: the server sends replies twice"


class Answered(NamedTuple):
    """A reply, and why it is that to its question."""

    heard: Heard
    sure: Surety


def open_server(kind: ServerKind, given: Mapping[str, object], *, base: float = 0.5) -> Model:
    """Open a model behind a server. ``base`` is the first wait before a retry, in seconds."""
    settings = read_settings(kind, given)
    endpoint = find_endpoint(kind, settings, environ)
    note_credentials(endpoint.hidden.reveal().secrets)
    patience = Patience(
        retries=settings.max_retries,
        total=settings.timeout,
        connect=settings.connect_timeout,
        silence=settings.read_timeout or settings.timeout,
        base=base,
        outage=settings.give_up_after,
    )
    asker = _make_asker(kind, settings, endpoint, patience)
    return Model(
        settings.model,
        identify_server(kind, settings, endpoint),
        lambda questions: asker(questions, lambda: True),
        chat=render_messages if kind.chat else None,
        check=lambda options: write_generation(kind, settings, "", options),  # no partial: its repr shows the address
        warnings=(*warn_of_ignored(given), *_warn_of_five(kind, settings)),
        ask_while=asker,
    )


def identify_server(kind: ServerKind, settings: ServerSettings, endpoint: Endpoint) -> str:
    """Name all that answers depend on besides the request; headers and query only by hash, keys and users not at all.

    Host and port are where a model is, not which. A path other than the usual one may lead to another model.

    >>> kind, settings = ServerKind("local-completions"), ServerSettings("m", base_url="http://localhost/v1")
    >>> identify_server(kind, settings, find_endpoint(kind, settings, {}))
    'local-completions {"max_gen_toks":256,"model":"m","seed":1234}'
    """
    names = ("eos_string", "max_gen_toks", "model", "reasoning", "seed", "think_end_token")
    path = hide_in_text(urlsplit(endpoint.shown).path, endpoint.hidden.reveal().secrets)
    led = {"routing": endpoint.routing or None, "path": path if path != f"/v1{kind.path}" else None}
    values = {name: getattr(settings, name) for name in names} | led
    used = {name: value for name, value in values.items() if value is not None and value is not msgspec.UNSET}
    return f"{kind.name} {msgspec.json.encode(used, order='sorted').decode()}"


def _warn_of_five(kind: ServerKind, settings: ServerSettings) -> tuple[str, ...]:
    mistaken = "5" in settings.model and not is_reasoning(settings.model) and settings.reasoning is msgspec.UNSET
    if not (kind.hosted and kind.chat and mistaken):
        return ()
    return (
        f"lm-eval 0.4.13 sends temperature 1 and no stop strings to {settings.model!r}, as to every name with a 5; "
        "here the task's own are sent (model_args reasoning: true for lm-eval's)",
    )


def _make_asker(kind: ServerKind, settings: ServerSettings, endpoint: Endpoint, patience: Patience) -> AskWhile:
    def ask(questions: Sequence[Question], going_on: Callable[[], bool]) -> Iterator[Heard | Notice]:
        likelihoods = any(not isinstance(question.request, Generate) for question in questions)
        if likelihoods and kind.chat:
            raise EvalError(
                f"{kind.name} cannot answer likelihood requests (multiple_choice, loglikelihood, rolling tasks): chat "
                "endpoints give no log-probabilities of a given text. multiple_choice_by: letter asks multiple_choice "
                "tasks for a letter instead; model: hf, llama, or a server of vLLM or SGLang gives likelihoods"
            )
        import asyncio

        from evalcore.shell.models.openai.http_session import close_session, open_session

        _refuse_loop()
        with asyncio.Runner() as runner:
            session = open_session(endpoint, patience, settings.num_concurrent, keep_alive=settings.keep_alive)
            try:
                yield from _ask_session(runner, session, kind, settings, questions, going_on)
            finally:
                runner.run(close_session(session))

    return ask


def _refuse_loop() -> None:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise EvalError(
        "a server is asked in an event loop of its own, and one is running here (a notebook?): use a thread"
    )


def _ask_session(
    runner: asyncio.Runner,
    session: Session,
    kind: ServerKind,
    settings: ServerSettings,
    questions: Sequence[Question],
    going_on: Callable[[], bool],
) -> Iterator[Heard | Notice]:
    from evalcore.shell.models.openai.http_client import look_after
    from evalcore.shell.models.openai.probe import check_echo

    if settings.check_logprobs and not all(isinstance(question.request, Generate) for question in questions):
        probed = _run_told(runner, session, lambda _: check_echo(session, settings), deque([0]), 1)
        yield from (one for one in probed if isinstance(one, Notice))
    queue, places = deque(range(len(questions))), {sure: set[int]() for sure in Surety}

    def start(at: int) -> Coroutine[None, None, Answered]:
        return _answer_question(session, kind, settings, at, questions[at])

    while queue:
        for told in _run_told(runner, session, start, queue, settings.num_concurrent):
            if isinstance(told, Notice):
                yield told
            else:
                (heard, sure), more = told
                places[sure].add(heard.at)
                yield heard._replace(more=more)
            if session.alone:
                yield from _withdraw(places, session.needed, queue)
            if not going_on():
                queue.clear()
        runner.run(look_after(session))
        yield from map(Notice, session.take_notices())
        if session.alone:
            yield from _withdraw(places, session.needed, queue)
        if not going_on():
            return


def _withdraw(heard: Mapping[Surety, set[int]], needed: Surety, queue: deque[int]) -> Iterator[Heard]:
    """Take back replies that are not sure enough, and queue their questions again."""
    doubtful = [places for sure, places in heard.items() if sure < needed]
    places = sorted(set().union(*doubtful))
    for one in doubtful:
        one.clear()
    queue.extend(places)
    yield from (Heard(at, Withdrawn(SHIFTED), more=at != places[-1]) for at in places)


def _run_told(
    runner: asyncio.Runner,
    session: Session,
    start: Callable[[int], Coroutine[None, None, T]],
    queue: deque[int],
    most: int,
) -> Iterator[tuple[T, bool] | Notice]:
    """Run jobs, and tell what there is to say meanwhile and at an end that is none."""
    from evalcore.shell.models.openai.http_flow import run_jobs

    try:
        for done in run_jobs(runner, start, queue, most, session.wake):
            yield from map(Notice, session.take_notices())
            if done is not None:
                yield done
    except EvalError:
        yield from map(Notice, session.take_notices())
        raise
    yield from map(Notice, session.take_notices())


async def _answer_question(
    session: Session, kind: ServerKind, settings: ServerSettings, at: int, question: Question
) -> Answered:
    from evalcore.shell.models.openai.http_client import post_body

    body, read = _word_question(kind, settings, question)
    reached = await post_body(session, encode_body(body), read)
    reply, finish = (reached.value, "") if isinstance(reached.value, Failure) else reached.value
    return Answered(Heard(at, reply, finish, spent=reached.spent), reached.sure)


def _word_question(
    kind: ServerKind, settings: ServerSettings, question: Question
) -> tuple[dict[str, object], Callable[[bytes], tuple[Reply, str]]]:
    """Word a question: the body of its request, and how to read the reply."""
    request = question.request
    if isinstance(request, Generate):
        body = write_generation(kind, settings, request.prompt, request.options, question.repeat)
        read = partial(read_letter, str(letters)) if (letters := request.options.get(CHOOSE)) else read_generation
        return body, partial(read, kind, settings.think_end_token)
    prompt, start = place_text(request, settings.eos_string)
    return write_echo(settings, prompt), lambda content: (
        fit_reply(request, read_likelihood(content, prompt, start, settings.max_length)),
        "",
    )


def _make_backend(kind: ServerKind, summary: str) -> Backend:
    return Backend(partial(open_server, kind), summary, ARGUMENTS)


LOCAL_COMPLETIONS = _make_backend(
    ServerKind("local-completions"),
    "any server with /v1/completions (vLLM, SGLang, ...); likelihoods where it echoes them",
)
LOCAL_CHAT_COMPLETIONS = _make_backend(
    ServerKind("local-chat-completions", chat=True), "any server with /v1/chat/completions; generation only"
)
OPENAI_COMPLETIONS = _make_backend(ServerKind("openai-completions", hosted=True), "OpenAI's completions")
OPENAI_CHAT_COMPLETIONS = _make_backend(
    ServerKind("openai-chat-completions", chat=True, hosted=True), "OpenAI's chat completions; generation only"
)
