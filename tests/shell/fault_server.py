"""A loopback server that speaks the OpenAI API for a toy model, and misbehaves on request.

    python fault_server.py --port 0 --faults 0.3 --seed 1 --log requests.jsonl

prints its address on the first line. Answers depend on nothing but the request. The log gets one line for every request
as it is received, before it is answered: ``ask`` names the whole request, ``prompt`` the prompt alone.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FAULTS = ("429", "500", "503", "garbage", "half", "empty", "nothing", "reset")
PATIENCE = 600.0
"""Seconds after which the server itself gives up waiting: no test waits so long unless something is broken."""
WORDS = [" river", " stone", " seven", " green", " lamp", " under", " quick", " paper", " north", " bell", " salt"]


# --- the toy model: words with their leading space, probabilities from a hash ------------------------------------


def tokenize(text: str) -> list[str]:
    """Words with the spaces before them."""
    return re.findall(r"\s*\S+|\s+$", text)


def draw(*parts: object) -> float:
    return int.from_bytes(sha256(repr(parts).encode("utf-8", "surrogatepass")).digest()[:6], "big") / 2**48


def likeliest(before: str, seed: int = 0) -> tuple[str, float]:
    """The most likely next token and its log-probability."""
    word = WORDS[int(draw("next", before, seed) * len(WORDS))]
    last = (tokenize(before) or [""])[-1]
    if word == last:  # a token right after itself is unlikely
        word = WORDS[(WORDS.index(word) + 1) % len(WORDS)]
    return word, -0.01 - 0.2 * draw("best", before)


def logprob(before: str, token: str) -> float:
    best, value = likeliest(before)
    return value if token == best else -2 - 8 * draw("token", before, token)


def continue_text(prompt: str, most: int, stops: list[str], seed: int) -> tuple[str, str]:
    text, length = "", 1 + int(draw("length", prompt, seed) * 12)
    for number in range(length):
        if number == most:
            return text, "length"
        text += likeliest(prompt + text, seed)[0]
        found = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
        if found:
            return text[: min(found)], "stop"
    return text, "stop"


def echo(prompt: str, shifted: bool) -> dict[str, object]:
    """The prompt's tokens and one generated one. ``shifted``: each value is read one place late."""
    tokens = [*tokenize(prompt), likeliest(prompt)[0]]
    starts = [sum(map(len, tokens[:at])) for at in range(len(tokens))]
    before = ["".join(tokens[: at + shifted]) for at in range(len(tokens))]
    values: list[float | None] = [logprob(text, token) for text, token in zip(before, tokens, strict=True)]
    tops: list[dict[str, float] | None] = [
        {**dict([likeliest(text)]), token: logprob(text, token)} for text, token in zip(before, tokens, strict=True)
    ]
    values[0], tops[0] = None, None
    return {"tokens": tokens, "token_logprobs": values, "top_logprobs": tops, "text_offset": starts}


def answer(path: str, body: dict[str, object], shifted: bool = False) -> dict[str, object]:
    """The reply to a request."""
    stops, sampled = body.get("stop") or [], float(str(body.get("temperature") or 0)) > 0
    seed = int(str(body.get("seed") or 0)) if sampled else 0
    most = int(str(body.get("max_tokens", body.get("max_completion_tokens", 16))))
    chat = path.endswith("/chat/completions")
    prompt = json.dumps(body["messages"], sort_keys=True) if chat else str(body["prompt"])
    text, finish = continue_text(prompt, most, [stops] if isinstance(stops, str) else list(stops), seed)
    choice: dict[str, object] = {"index": 0, "finish_reason": finish}
    if chat:
        choice["message"] = {"role": "assistant", "content": text}
    elif body.get("echo"):
        choice |= {"text": prompt + likeliest(prompt)[0], "logprobs": echo(prompt, shifted), "finish_reason": "length"}
    else:
        choice["text"] = text
        if body.get("logprobs"):
            token, value = likeliest(prompt)
            choice["logprobs"] = {"tokens": [token], "token_logprobs": [value], "top_logprobs": [{token: value}]}
    return {"object": "text_completion", "model": body.get("model"), "choices": [choice]}


def count_tokens(body: dict[str, object], said: dict[str, object]) -> dict[str, object]:
    """What a request and its reply would be billed for."""
    choice = said["choices"][0]  # type: ignore[index]
    text = choice["text"] if "text" in choice else choice["message"]["content"]
    prompt = body["prompt"] if "prompt" in body else json.dumps(body["messages"])
    read, wrote = len(tokenize(str(prompt))), 1 if body.get("echo") else len(tokenize(text))
    return {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}


# --- the server ---------------------------------------------------------------------------------------------------


@dataclass
class Server:
    """What the server does and what it has seen. ``script(number, body)`` may name a fault or give a raw reply.

    No request is answered before ``ready(server)`` is true. ``ids`` is the id of the n-th reply. ``twice`` sends each
    reply once more on its connection: ``at once``, ``soon`` (as bytes of their own), ``late`` (just before the next
    reply) or ``behind`` (in place of the next reply, which follows in place of the one after it). ``twice`` may be a
    function of how many replies went over the connection before. ``usage`` counts tokens in replies, or says for the
    n-th request what to say of them.
    """

    faults: float = 0.0
    seed: int = 0
    log: Path | None = None
    latency: float = 0.0
    shifted: bool = False
    script: Callable[[int, dict[str, object]], str | tuple[int, dict[str, str], bytes] | None] | None = None
    ready: Callable[[Server], bool] = lambda server: True
    ids: Callable[[int], str] | None = None
    twice: str | Callable[[int], str] = ""
    usage: bool | Callable[[int], object] = False
    opened: int = 0
    url: str = ""
    bodies: list[dict[str, object]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    connections: set[socket.socket] = field(default_factory=set)
    active: int = 0
    most_active: int = 0
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def receive(self, path: str, body: dict[str, object], headers: dict[str, str]) -> object:
        """Log a request and decide its fate."""
        with self.lock:
            number = len(self.bodies)
            self.bodies.append(body)
            self.headers.append(headers)
            fault: object = self.script(number, body) if self.script else None
            dice = random.Random(f"{self.seed} {digest(body)} {self.bodies.count(body)}")  # whatever the others do
            if fault is None and dice.random() < self.faults:
                fault = dice.choice(FAULTS)
            if self.log is not None:
                prompt = body.get("prompt", body.get("messages"))
                line = {"n": number, "path": path, "ask": digest(body), "prompt": digest(prompt)}
                with self.log.open("a") as file:
                    file.write(json.dumps({**line, "fault": fault if isinstance(fault, str) else None}) + "\n")
            return fault

    def bill(self, body: dict[str, object], said: dict[str, object]) -> dict[str, object]:
        """What a reply says of its tokens."""
        if self.usage is True:
            return {"usage": count_tokens(body, said)}
        return {"usage": self.usage(len(self.bodies))} if self.usage else {}

    def wait_until_ready(self) -> None:
        for _ in range(round(PATIENCE / 0.01)):
            if self.ready(self) or self.closing.wait(0.01):
                return

    def enter(self, by: int) -> None:
        with self.lock:
            self.active += by
            self.most_active = max(self.most_active, self.active)


def digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    owner: Server

    last: bytes = b""
    sent: int = 0

    def setup(self) -> None:
        super().setup()
        self.owner.connections.add(self.connection)
        with self.owner.lock:
            self.owner.opened += 1

    def do_POST(self) -> None:
        self.owner.enter(1)
        try:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.loads(content)
            fault = self.owner.receive(self.path, body, dict(self.headers))
            time.sleep(self.owner.latency)
            self.owner.wait_until_ready()
            with contextlib.suppress(OSError):
                self.reply(fault, body)
        finally:
            self.owner.enter(-1)

    def reply(self, fault: object, body: dict[str, object]) -> None:
        named = {"id": self.owner.ids(len(self.owner.bodies))} if self.owner.ids else {}
        said = answer(self.path, body, self.owner.shifted)
        good = json.dumps({**named, **said, **self.owner.bill(body, said)}).encode()
        if fault is None:
            self.send(200, good)
        elif isinstance(fault, tuple):
            status, headers, content = fault
            self.send(status, content, headers)
        elif isinstance(fault, str) and fault.isdigit():
            self.send(
                int(fault), b'{"error": {"message": "try later"}}', {"Retry-After": "0"} if fault == "429" else {}
            )
        elif fault == "garbage":
            self.send(200, b"<html><body>Bad gateway</body></html>")
        elif fault == "empty":
            self.send(200, b"")
        elif fault == "half":
            self.send(200, good[: len(good) // 2], {"Content-Length": str(len(good))})
            self.close_connection = True
        elif fault == "hang":
            self.owner.closing.wait(PATIENCE)
            self.close_connection = True
        elif fault == "dribble":
            self.send(200, b"", {"Content-Length": "10000"})
            for _ in range(round(PATIENCE / 0.05)):
                self.wfile.write(b" ")
                self.wfile.flush()
                if self.owner.closing.wait(0.05):
                    break
            self.close_connection = True
        elif fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
        else:  # nothing
            self.close_connection = True

    def send(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        wire, self.wfile = self.wfile, io.BytesIO()
        self.end_headers()
        whole, self.wfile = self.wfile.getvalue() + content, wire
        for part in self.repeat(whole):
            self.wfile.write(part)
            self.wfile.flush()

    def repeat(self, whole: bytes) -> list[bytes]:
        """What goes over the connection for a reply, part by part."""
        mode = self.owner.twice if isinstance(self.owner.twice, str) else self.owner.twice(self.sent)
        last, self.last, self.sent = self.last, whole, self.sent + 1
        sent = {"at once": [whole + whole], "soon": [whole, whole], "late": [last + whole], "behind": [last or whole]}
        return sent.get(mode, [whole])

    def finish(self) -> None:
        self.owner.connections.discard(self.connection)
        with contextlib.suppress(OSError, ValueError):
            super().finish()

    def handle(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        pass


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextlib.contextmanager
def serve(port: int = 0, **what: object) -> Iterator[Server]:
    """A running server; its address up to /v1 is ``url``."""
    owner = Server(**what)  # type: ignore[arg-type]
    listener = Listener(("127.0.0.1", port), type("Bound", (Handler,), {"owner": owner}))
    owner.url = f"http://127.0.0.1:{listener.server_address[1]}/v1"
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield owner
    finally:
        owner.closing.set()
        listener.shutdown()
        listener.server_close()
        for connection in tuple(owner.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--faults", type=float, default=0.0, help="share of requests that go wrong")
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    parser.add_argument("--log", type=Path, default=None, help="a line for each request received")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--twice", default="", help="send replies twice: at once, soon, late, behind")
    parser.add_argument("--shifted", action="store_true", help="echo log-probabilities one token late")
    given = vars(parser.parse_args())
    with serve(**given) as server, contextlib.suppress(KeyboardInterrupt):
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
