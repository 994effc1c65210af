"""Who may look: browsers of this machine that know the token, and no page of another origin."""

from __future__ import annotations

import os
import socket
from email.message import Message
from hmac import compare_digest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from secrets import token_urlsafe
from socketserver import ThreadingTCPServer
from threading import BoundedSemaphore, Lock
from time import monotonic
from typing import Any

from evalcore.shell.view.site import Response, Site

MOST_AT_ONCE, LARGEST = 64, 1 << 16
"""How many connections there may be, and how many bytes a request may have."""

PATIENCE, SENDING, DRAINING = 10.0, 600.0, 2.0
"""Seconds in which a request must be there, a reply must be taken, and what follows a request is thrown away."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Connection": "close",
}
"""With every reply; the page's own policy, which is stricter, is in the page."""

USUAL_PORT = 80
"""Which browsers leave out of addresses."""

OWN_SITES = ("same-origin", "none")
"""Where a request may come from, as browsers say it: a page of this server, or nobody's."""


class Door:
    """Who may come in: by the token, or once by a code that is good for a single use.

    A browser is started with the code, as other users of a machine see what programs are started with.
    """

    def __init__(self, hosts: tuple[str, ...]) -> None:
        self.hosts, self.token, self._lock = hosts, token_urlsafe(32), Lock()
        self._code: str | None = None

    def make_code(self) -> str:
        """Make the code that a browser is started with."""
        self._code = token_urlsafe(32)
        return self._code

    def refuse(self, headers: Message) -> Response | None:
        """Refuse what was sent to another name (DNS rebinding) or by a page of another origin."""
        host, origin = headers.get("Host", ""), headers.get("Origin")
        if host not in self.hosts:
            return Response(
                403, f"expected the host {self.hosts[0]}; through ssh -L, use the same port here\n".encode()
            )
        if origin not in (None, f"http://{host}") or headers.get("Sec-Fetch-Site", "none") not in OWN_SITES:
            return Response(403, b"pages of other origins may not ask; type the address\n")
        return None

    def find_address(self, path: str) -> str | Response:
        """Find what is asked for behind the token."""
        first, _, rest = path.removeprefix("/").partition("/")
        if compare_digest(first.encode("utf-8", "replace"), self.token.encode()):
            return f"/{rest}" if path.count("/") > 1 else Response(303, place=f"/{first}/")
        with self._lock:
            code, there = self._code, first == "open" and self._code is not None
            if there and compare_digest(rest.encode("utf-8", "replace"), str(code).encode()):
                self._code = None
                return Response(303, place=f"/{self.token}/")
        return Response(403, b"expected the address that evalcore view printed, with its token\n")


class Listener(ThreadingTCPServer):
    """Listens on loopback: a thread for each connection, a bounded number of them."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = MOST_AT_ONCE
    allow_reuse_address = os.name != "nt"  # which means something else there

    def __init__(self, host: str, port: int, site: Site) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.site, self.slots = site, BoundedSemaphore(MOST_AT_ONCE)
        super().__init__((host, port), Visitor)
        self.port: int = self.socket.getsockname()[1]
        named = f"[{host}]" if ":" in host else host
        at = "" if self.port == USUAL_PORT else f":{self.port}"
        self.door = Door((f"{named}{at}", f"localhost{at}"))

    @property
    def origin(self) -> str:
        return f"http://{self.door.hosts[0]}"

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread was started
            self.slots.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.slots.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client went away."""


class Visitor(BaseHTTPRequestHandler):
    """One request and its reply; then the connection ends."""

    server: Listener
    requestline, request_version, command = "", "HTTP/1.0", "GET"

    def setup(self) -> None:
        super().setup()
        head = _read_head(self.connection)
        self.connection.settimeout(SENDING)
        self.rfile = BytesIO(head[:LARGEST])
        if len(head) > LARGEST:
            self.rfile = BytesIO()
            self.reply(Response(431, b"the request is too large\n"))

    def do_GET(self) -> None:
        door = self.server.door
        refused = door.refuse(self.headers)
        address = refused or door.find_address(self.path)
        self.reply(address if isinstance(address, Response) else self._answer(address))

    do_HEAD = do_GET

    def _answer(self, address: str) -> Response:
        try:
            return self.server.site.answer(address)
        except Exception as wrong:  # no request ends the server
            return Response(500, f"unexpected {type(wrong).__name__}; evalcore view goes on\n".encode())

    def reply(self, reply: Response) -> None:
        self.send_response_only(reply.status)
        told = {"Location": reply.place} if reply.place else {}
        told |= {"Allow": "GET, HEAD"} if reply.status == HTTPStatus.METHOD_NOT_ALLOWED else {}
        kind = {"Content-Type": reply.kind, "Content-Length": str(len(reply.body))}
        for name, value in {**HEADERS, **kind, **told}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no request to read something, without repeating a word of it."""
        self.close_connection = True
        method = code == HTTPStatus.NOT_IMPLEMENTED
        self.reply(Response(405, b"there is nothing here but to read\n") if method else Response(400, b"bad request\n"))

    def finish(self) -> None:
        """End, once a body that nobody asked for has come: unread, it would take the reply with it."""
        super().finish()
        self.connection.shutdown(socket.SHUT_WR)
        until = monotonic() + DRAINING
        while (left := until - monotonic()) > 0:
            self.connection.settimeout(left)
            if not self.connection.recv(LARGEST):
                break


def _read_head(connection: socket.socket) -> bytes:
    """Read a request up to its empty line, or more than it may have; nothing if it is not there in time."""
    head, until = b"", monotonic() + PATIENCE
    while b"\r\n\r\n" not in head and len(head) <= LARGEST:
        connection.settimeout(max(until - monotonic(), 1e-3))
        piece = connection.recv(LARGEST)
        if not piece:
            return b""
        head += piece
    return head
