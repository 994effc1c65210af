"""One request to a server, with deadlines, retries and a cap on the reply; no redirects, no secrets shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from os import strerror
from random import random
from time import perf_counter
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from msgspec.structs import replace

from evalcore.core.records.errors import EvalError, ServerGone
from evalcore.core.records.request import Failure
from evalcore.shell.answerlog.spent import Spent
from evalcore.shell.models.openai.http_faults import (
    ALWAYS,
    NEVER,
    POINTLESS,
    Unreachable,
    Wrong,
    compute_wait,
    excerpt_text,
    is_refusal,
    is_retried,
    parse_wait,
    read_message,
)
from evalcore.shell.models.openai.http_flow import enter_turnstile, leave_turnstile
from evalcore.shell.models.openai.http_session import Session
from evalcore.shell.models.openai.http_wire import (
    Surety,
    Wire,
    cut_wire,
    has_arrivals,
    has_unread,
    note_stream,
    take_reply,
)
from evalcore.shell.models.openai.token_counts import read_usage
from evalcore.shell.safety.credentials import list_credentials
from evalcore.shell.safety.secrets import hide_in_body, hide_in_text

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

MOST_BYTES = 16 << 20
DEADLINES = 2
"""Each missed deadline costs minutes, so there are few."""

FIRST_TRIES = 3
"""A server that was never reached is more likely a wrong address than a passing fault."""


ARRIVED = "bytes came that nobody asked for"


class Reached(NamedTuple, Generic[T]):
    """The outcome of a request, why a reply is that to its request, what it took and the tokens that it counts."""

    value: T | Failure
    sure: Surety = Surety.FIRST
    spent: Spent = Spent()


class Doubtful(Exception):
    """A reply that may be that to another request; ``how`` is what it shows, if the next one shows that it was."""

    def __init__(self, how: str = "") -> None:
        super().__init__(how)
        self.how = how


async def post_body(session: Session, body: bytes, read: Callable[[bytes], T]) -> Reached[T]:
    """Post until ``read`` accepts the reply or patience ends; an ``EvalError`` if going on is pointless."""
    tried, alone, how = 0, False, ""
    while True:
        tried += 1
        try:
            reached = await _post_once(session, body, read, alone)
            session.met.set()
            if how and session.ids.telling:
                session.find_shift(how)
            return reached if tried == 1 else reached._replace(spent=replace(reached.spent, tries=tried))
        except Doubtful as doubt:  # raised at most once: over a new connection there is no doubt
            tried, alone, how = tried - 1, True, doubt.how
            continue
        except Wrong as caught:
            wrong = caught
        # outside the handler, so that no error carries along a message before it was redacted
        reason = hide_in_text(wrong.reason, (*session.endpoint.hidden.reveal().secrets, *list_credentials()))
        if wrong.status in POINTLESS and not session.met.is_set():
            raise EvalError(f"{session.endpoint.shown}: {reason}{_give_advice(wrong.status, session)}")
        most = min(wrong.again, session.patience.retries)
        left = session.note_refusal(reason, tried, most) if isinstance(wrong, Unreachable) else ALWAYS
        if tried > most or left <= 0:
            if isinstance(wrong, Unreachable) and (session.refused >= tried or left <= 0):
                raise _describe_loss(session, reason, tried)
            told = f"{reason} ({tried} tries)" if tried > 1 else reason
            return Reached(Failure(told), spent=Spent(tries=tried))
        await asyncio.sleep(min(left, compute_wait(tried, wrong.after, random(), session.patience)))


def _describe_loss(session: Session, reason: str, tried: int) -> ServerGone:
    count = f"{tried} tries" if tried > 1 else "1 try"
    if not session.met.is_set():
        return ServerGone(f"{session.endpoint.shown}: {reason} ({count}); is the server running, the address right?")
    return ServerGone(
        f"{session.endpoint.shown} is gone: {reason} ({count}); once it is back, the same command goes on from there"
    )


def _give_advice(status: int, session: Session) -> str:
    if status in (401, 403):
        name = session.endpoint.key_env or "the environment variable named by api_key_env"
        return f" - is the key in {name} right?"
    return " - is base_url right, and the model's name?" if status in (404, 405) else ""


async def _post_once(session: Session, body: bytes, read: Callable[[bytes], T], alone: bool) -> Reached[T]:
    turn, throttled, fine = await enter_turnstile(session.turnstile), False, False
    wire = session.free.pop()
    try:
        reached = await _post_by(wire, session, body, read, alone or session.alone)
        fine = True
        return reached
    except Wrong as wrong:
        throttled = wrong.status == 429
        raise
    finally:
        if not fine or session.alone:  # a connection is kept only after a reply that was taken
            await cut_wire(wire)
        session.free.append(wire)
        leave_turnstile(session.turnstile, turn, fine=fine, throttled=throttled)


async def _post_by(wire: Wire, session: Session, body: bytes, read: Callable[[bytes], T], alone: bool) -> Reached[T]:
    if wire.served and await has_arrivals(wire):
        session.find_unasked(ARRIVED)
    if wire.served and alone:
        await cut_wire(wire)
    start = perf_counter()
    content = await _exchange(wire, session, body)
    seconds = round(perf_counter() - start, 4)
    name, again = session.ids.recall(content)
    if again and wire.served:
        raise Doubtful("a reply came twice, with the same id")
    try:
        value = read(content)
    except Wrong as wrong:
        if wrong.again == NEVER and wire.served:  # a reply to another question makes no sense either
            raise Doubtful("a reply was that to another question") from None
        raise
    sure = take_reply(wire, session.ids, content, name)
    if session.alone and sure < session.needed:
        raise Doubtful
    return Reached(value, sure, read_usage(content, seconds))


async def look_after(session: Session) -> None:
    """Look whether anything came after the last replies."""
    for wire in session.free:
        if wire.served and await has_arrivals(wire):
            session.find_unasked(ARRIVED)


async def _exchange(wire: Wire, session: Session, body: bytes) -> bytes:
    """Send a request, and read the whole reply to it."""
    import httpx

    hidden, patience = session.endpoint.hidden.reveal(), session.patience
    headers = {**hidden.headers, "Connection": "close"} if session.alone else hidden.headers
    try:
        async with (
            asyncio.timeout(patience.total),
            wire.client.stream("POST", hidden.url, content=body, headers=headers) as response,
        ):
            status, headers = response.status_code, response.headers
            note_stream(wire, response)
            content = await _read_capped(response)
            if not session.alone and has_unread(response):
                session.find_unasked("bytes came after a reply")
    except TimeoutError:
        raise Wrong(f"timeout: no whole reply within {patience.total:g} s", again=DEADLINES) from None
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as wrong:
        again = ALWAYS if session.met.is_set() else FIRST_TRIES
        raise Unreachable(_describe_error(wrong), again=again) from None
    except httpx.TimeoutException:
        raise Wrong(f"timeout: not a byte for {patience.silence:g} s", again=DEADLINES) from None
    except (httpx.TransportError, httpx.StreamError) as wrong:
        raise Wrong(_describe_error(wrong)) from None
    session.note_contact()
    # before anything is cut: half a key would not be found
    content = hide_in_body(content, (*hidden.secrets, *list_credentials()))
    _judge_status(status, headers, content)
    return content


def _describe_error(wrong: Exception) -> str:
    """Describe a fault as the system does (connection refused), where it says so."""
    from ssl import SSLError

    cause: BaseException | None = wrong
    while cause is not None:
        if isinstance(cause, OSError) and not isinstance(cause, SSLError) and (cause.errno or 0) > 0:
            return strerror(cause.errno or 0).lower()
        cause = cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else cause.__cause__ or cause.__context__
    return excerpt_text(f"connection: {type(wrong).__name__}" + (f": {wrong}" if str(wrong) else ""))


async def _read_capped(response: httpx.Response) -> bytes:
    """Read the body as sent: no compression was asked for, so nothing can expand."""
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_raw():
        size += len(part)
        if size > MOST_BYTES:
            raise Wrong(f"too_large: a reply of more than {MOST_BYTES >> 20} MB", again=NEVER)
        parts.append(part)
    return b"".join(parts)


def _judge_status(status: int, headers: Mapping[str, str], content: bytes) -> None:
    """Refuse every status but success."""
    if 300 <= status < 400:
        to = urlsplit(headers.get("location", ""))
        raise Wrong(
            f"redirect: the server answers {status} to {to.scheme}://{to.hostname}{to.path}; redirects are "
            "not followed, give the final address as base_url",
            again=NEVER,
            status=status,
        )
    if not 200 <= status < 300:
        after = parse_wait(headers.get("retry-after"), datetime.now(UTC))
        message = read_message(content)
        again = ALWAYS if is_retried(status) and not is_refusal(message) else NEVER
        raise Wrong(f"http_{status}: {message}", again=again, after=after, status=status)
    if headers.get("content-encoding", "identity") not in ("", "identity"):
        raise Wrong(f"bad_response: a body in {excerpt_text(headers['content-encoding'])}, which was not asked for")
