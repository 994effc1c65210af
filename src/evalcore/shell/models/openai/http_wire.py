"""Whether replies over a kept connection are still those of their requests.

A connection carries no numbers: the n-th reply counts as that to the n-th request. A server, or a proxy before it, that
sends a reply twice shifts all later ones, each of them well-formed. What is known about a reply:

* The first one over a new connection is that to its request.
* Bytes that nobody asked for, after a reply or before the next request, prove that the connection is out of step; since
  when is unknown. So all later replies over any connection of the session are in doubt, and from then on each request
  gets a connection of its own.
* A shift by a copy begins with a reply that came before. If each reply over a connection has had an id that was never
  seen, there was none, and all of them are right. A reply with the id and the bytes of an earlier one is not used: its
  question is asked again over a new connection. If even that reply has an id that was seen, this server's ids prove
  nothing. Nor do they once unasked bytes came: a proxy that asks twice passes on two replies, each with its own id.

The rest cannot be told: without ids, a duplicate that comes only after the next request was sent passes for its reply.
"""

from __future__ import annotations

from enum import IntEnum
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    import httpx
    from httpcore import AsyncNetworkStream

MOMENT = 0.1
"""Seconds to decode bytes that have arrived; under TLS they may be none of a reply's."""

_unread = attrgetter("stream._stream._httpcore_stream._stream._connection._h11_state.trailing_data")


class Surety(IntEnum):
    """Why a reply is that to its request."""

    NONE = 0
    NEW_IDS = 1
    FIRST = 2


class Wire(Struct):
    """A client of one connection, and what came over it.

    ``served`` counts the replies that were taken since it was opened. ``named``: each had an id never seen before.
    """

    client: httpx.AsyncClient
    stream: AsyncNetworkStream | None = None
    served: int = 0
    named: bool = True


class ReplyIds(Struct):
    """The ids of replies, each with its reply, by hash. Ids that come back with other replies are not ``telling``."""

    seen: dict[int, int]
    telling: bool = True

    def recall(self, content: bytes) -> tuple[int, bool]:
        """Recall a reply: the hash of its id, 0 if it tells nothing, and whether this very reply came before."""
        name = _read_id(content) if self.telling else 0
        earlier = self.seen.get(name) if name else None
        if earlier is not None and earlier != hash(content):
            self.stop_telling()
            return 0, False
        return name, earlier is not None

    def stop_telling(self) -> None:
        self.seen.clear()
        self.telling = False


class _Id(Struct, gc=False):
    id: str | None = None


_decode_id = msgspec.json.Decoder(_Id).decode


def _read_id(content: bytes) -> int:
    try:
        name = _decode_id(content).id
    except (ValueError, RecursionError):
        return 0
    return hash(name) if name else 0


def note_stream(wire: Wire, response: httpx.Response) -> None:
    """Note the connection that a reply comes over; the client may have opened a new one."""
    stream = response.extensions.get("network_stream")
    if stream is not wire.stream:
        wire.stream, wire.served, wire.named = stream, 0, True


def take_reply(wire: Wire, ids: ReplyIds, content: bytes, name: int) -> Surety:
    """Count a reply that was accepted; return why it is that to its request."""
    first, new = not wire.served, bool(name) and name not in ids.seen
    if new:
        ids.seen[name] = hash(content)
    elif name:  # the first over its connection, so it is right, and yet its id was seen
        ids.stop_telling()
    wire.served += 1
    wire.named = new and (first or wire.named)
    return Surety.FIRST if first else Surety.NEW_IDS if wire.named else Surety.NONE


def has_unread(response: httpx.Response) -> bool:
    """Whether more came along with a reply than the reply. If httpx no longer tells, it counts as more."""
    try:
        return bool(_unread(response)[0])
    except AttributeError:
        return True


async def has_arrivals(wire: Wire) -> bool:
    """Whether bytes came after the last reply; the connection is then closed, as it is if the server closed it."""
    import httpcore

    stream = wire.stream
    if stream is None or not stream.get_extra_info("is_readable"):
        return False
    try:
        found = await stream.read(1, timeout=MOMENT)
    except (httpcore.TimeoutException, httpcore.NetworkError):
        found = b""
    await cut_wire(wire)
    return bool(found)


async def cut_wire(wire: Wire) -> None:
    """Close the connection; the next request opens another one."""
    if wire.stream is not None:
        await wire.stream.aclose()
    wire.stream, wire.served, wire.named = None, 0, True
