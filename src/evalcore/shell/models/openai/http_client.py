"""One request to a server, with deadlines, retries and a cap on the reply; no redirects, no secrets shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from random import random
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure
from evalcore.shell.models.openai.endpoint import Endpoint
from evalcore.shell.models.openai.http_faults import (
    ALWAYS,
    NEVER,
    POINTLESS,
    Patience,
    Unreachable,
    Wrong,
    compute_wait,
    excerpt_text,
    is_retried,
    parse_wait,
    read_message,
)
from evalcore.shell.safety.credentials import list_credentials
from evalcore.shell.safety.secrets import hide_in_body, hide_in_text

if TYPE_CHECKING:
    import ssl

    import httpx

T = TypeVar("T")

MOST_BYTES = 16 << 20
DEADLINES = 2
"""Each missed deadline costs minutes, so there are few."""

FIRST_TRIES = 3
"""A server that was never reached is more likely a wrong address than a passing fault."""


class Session(Struct):
    """Clients of one server, one connection each. ``met`` is set once the server has given one good answer.

    It changes while it is open: a client is either ``free`` or in use.
    """

    clients: tuple[httpx.AsyncClient, ...]
    free: list[httpx.AsyncClient]
    endpoint: Endpoint
    patience: Patience
    met: asyncio.Event


class Reached(NamedTuple, Generic[T]):
    """The outcome of a request, and whether the server complained of too many requests or was unreachable."""

    value: T | Failure
    throttled: bool = False
    unreachable: bool = False


def open_session(endpoint: Endpoint, patience: Patience, most: int) -> Session:
    """Open a session of at most so many connections. Proxies of the environment serve other machines only."""
    import logging

    import httpx

    for name in ("httpx", "httpcore"):  # they log addresses with their query, and the headers of replies
        logging.getLogger(name).setLevel(logging.WARNING)
    trusted = _choose_certificates(endpoint)
    clients = tuple(
        httpx.AsyncClient(
            verify=trusted,
            trust_env=not endpoint.loopback,
            follow_redirects=False,
            timeout=httpx.Timeout(patience.silence, connect=patience.connect),
            limits=httpx.Limits(max_connections=1),
        )
        for _ in range(most)  # a client of many connections searches all of them for every request
    )
    return Session(clients, list(clients), endpoint, patience, asyncio.Event())


async def close_session(session: Session) -> None:
    """Close every connection."""
    for client in session.clients:
        await client.aclose()


def _choose_certificates(endpoint: Endpoint) -> bool | ssl.SSLContext:
    from ssl import PROTOCOL_TLS_CLIENT, SSLContext, create_default_context

    if endpoint.shown.startswith("http:"):
        return SSLContext(PROTOCOL_TLS_CLIENT)  # trusts nobody, and is made 50 ms faster
    if endpoint.ca_cert_path is None:
        return endpoint.verify
    try:
        return create_default_context(cafile=endpoint.ca_cert_path)
    except OSError as wrong:
        raise EvalError(f"expected certificates in ca_cert_path {endpoint.ca_cert_path!r}: {wrong}") from wrong


async def post_body(session: Session, body: bytes, read: Callable[[bytes], T]) -> Reached[T]:
    """Post until ``read`` accepts the reply or patience ends; an ``EvalError`` if going on is pointless."""
    throttled, tried = False, 0
    while True:
        tried += 1
        try:
            value = read(await _post_once(session, body))
            session.met.set()
            return Reached(value, throttled)
        except Wrong as caught:
            wrong = caught
        # outside the handler, so that no error carries along a message before it was redacted
        reason = hide_in_text(wrong.reason, (*session.endpoint.hidden.reveal().secrets, *list_credentials()))
        throttled |= wrong.status == 429
        if wrong.status in POINTLESS and not session.met.is_set():
            raise EvalError(f"{session.endpoint.shown}: {reason}{_give_advice(wrong.status, session)}")
        if tried > min(wrong.again, session.patience.retries):
            return _give_up(session, wrong, reason, tried, throttled)
        await asyncio.sleep(compute_wait(tried, wrong.after, random(), session.patience))


def _give_up(session: Session, wrong: Wrong, reason: str, tried: int, throttled: bool) -> Reached[T]:
    lost = isinstance(wrong, Unreachable)
    if lost and not session.met.is_set():
        raise EvalError(
            f"{session.endpoint.shown}: {reason} ({tried} tries); is the server running, the address right?"
        )
    return Reached(Failure(f"{reason} ({tried} tries)" if tried > 1 else reason), throttled, lost)


def _give_advice(status: int, session: Session) -> str:
    if status in (401, 403):
        name = session.endpoint.key_env or "the environment variable named by api_key_env"
        return f" - is the key in {name} right?"
    return " - is base_url right, and the model's name?" if status in (404, 405) else ""


async def _post_once(session: Session, body: bytes) -> bytes:
    client = session.free.pop()
    try:
        return await _post_by(client, session, body)
    finally:
        session.free.append(client)


async def _post_by(client: httpx.AsyncClient, session: Session, body: bytes) -> bytes:
    import httpx

    hidden, patience = session.endpoint.hidden.reveal(), session.patience
    try:
        async with (
            asyncio.timeout(patience.total),
            client.stream("POST", hidden.url, content=body, headers=hidden.headers) as response,
        ):
            status, headers = response.status_code, response.headers
            content = await _read_capped(response)
    except TimeoutError:
        raise Wrong(f"timeout: no whole reply within {patience.total:g} s", again=DEADLINES) from None
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as wrong:
        again = ALWAYS if session.met.is_set() else FIRST_TRIES
        raise Unreachable(f"connection: {_describe_error(wrong)}", again=again) from None
    except httpx.TimeoutException:
        raise Wrong(f"timeout: not a byte for {patience.silence:g} s", again=DEADLINES) from None
    except (httpx.TransportError, httpx.StreamError) as wrong:
        raise Wrong(f"connection: {_describe_error(wrong)}") from None
    content = hide_in_body(
        content, (*hidden.secrets, *list_credentials())
    )  # before anything is cut: half a key would not be found
    _judge_status(status, headers, content)
    return content


def _describe_error(wrong: Exception) -> str:
    return excerpt_text(f"{type(wrong).__name__}: {wrong}" if str(wrong) else type(wrong).__name__)


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
        again = ALWAYS if is_retried(status) else NEVER
        raise Wrong(f"http_{status}: {read_message(content)}", again=again, after=after, status=status)
    if headers.get("content-encoding", "identity") not in ("", "identity"):
        raise Wrong(f"bad_response: a body in {excerpt_text(headers['content-encoding'])}, which was not asked for")
