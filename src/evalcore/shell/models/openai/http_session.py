"""A session with one server: its connections, how many may be used at once, and what is known of the server."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.shell.models.openai.endpoint import Endpoint
from evalcore.shell.models.openai.http_faults import Patience
from evalcore.shell.models.openai.http_flow import Turnstile
from evalcore.shell.models.openai.http_wire import ReplyIds, Surety, Wire

if TYPE_CHECKING:
    import ssl


class Session(Struct):
    """Connections to one server. It changes while it is open.

    ``free``: those not in use. ``met``: the server has given a good answer. ``alone``: each request gets a connection
    of its own. ``needed``: how sure a reply must be once a shift was found. ``notices``: what should be said now;
    ``wake`` is set with each. ``lost_at``: when the server was found to be unreachable, ``refused`` how often in a row
    and ``told`` the last retry that was reported.
    """

    wires: tuple[Wire, ...]
    free: list[Wire]
    endpoint: Endpoint
    patience: Patience
    turnstile: Turnstile
    met: asyncio.Event
    wake: asyncio.Event
    ids: ReplyIds
    notices: list[str]
    alone: bool = False
    needed: Surety = Surety.NEW_IDS
    lost_at: float | None = None
    refused: int = 0
    told: int = 0

    def tell(self, text: str) -> None:
        """Have something said now."""
        self.notices.append(text)
        self.wake.set()

    def take_notices(self) -> tuple[str, ...]:
        """Take what should be said now."""
        told = tuple(self.notices)
        self.notices.clear()
        return told

    def find_unasked(self, how: str) -> None:
        """Note that bytes came which nobody asked for: another reply, maybe with an id of its own."""
        self.needed = Surety.FIRST
        self.find_shift(how)

    def find_shift(self, how: str) -> None:
        """Note that replies came which nobody asked for."""
        if self.alone:
            return
        self.alone = True
        self.tell(
            f"{self.endpoint.shown}: {how}: the server, or a proxy before it, sends replies twice; each request gets a "
            "connection of its own from now on, and answers that may be those of other questions are asked again "
            "(keep_alive: false in model_args does so from the start)"
        )

    def note_contact(self) -> None:
        """Note that the server answered, whatever it said."""
        if self.lost_at is not None:
            self.tell(f"{self.endpoint.shown} is back")
            self.lost_at, self.refused, self.told = None, 0, 0

    def note_refusal(self, reason: str, tried: int, most: int) -> float:
        """Note that there was no connection; return the seconds until the server counts as gone."""
        now = monotonic()
        self.lost_at = now if self.lost_at is None else self.lost_at
        self.refused += 1
        left = self.patience.outage - (now - self.lost_at)
        if self.told < tried <= most and left > 0:
            self.told = tried
            self.tell(
                f"{self.endpoint.shown}: {reason}, retry {tried} of {most}; the run stops, and can be resumed, after "
                f"{self.patience.outage:g} s without a connection"
            )
        return left


def open_session(endpoint: Endpoint, patience: Patience, most: int, *, keep_alive: bool = True) -> Session:
    """Open a session of at most so many connections. Proxies of the environment serve other machines only."""
    import logging

    import httpx

    for name in ("httpx", "httpcore"):  # they log addresses with their query, and the headers of replies
        logging.getLogger(name).setLevel(logging.WARNING)
    trusted = _choose_certificates(endpoint)
    try:
        wires = tuple(
            Wire(
                httpx.AsyncClient(
                    verify=trusted,
                    trust_env=not endpoint.loopback,
                    follow_redirects=False,
                    timeout=httpx.Timeout(patience.silence, connect=patience.connect),
                    limits=httpx.Limits(max_connections=1),
                )
            )
            for _ in range(most)  # a client of many connections searches all of them for every request
        )
    except (ValueError, ImportError) as wrong:  # of HTTPS_PROXY and the like, whose passwords its text leaves out
        raise EvalError(f"the proxy in the environment cannot be used: {wrong}") from None
    return Session(
        wires,
        list(wires),
        endpoint,
        patience,
        Turnstile(most, most),
        asyncio.Event(),
        asyncio.Event(),
        ReplyIds({}),
        [],
        alone=not keep_alive,
    )


async def close_session(session: Session) -> None:
    """Close every connection."""
    for wire in session.wires:
        await wire.client.aclose()


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
