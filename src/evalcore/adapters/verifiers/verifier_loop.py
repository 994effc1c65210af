"""A worker's side: load the verifier, then judge call after call. It imports little, so that a worker starts fast."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module, util
from math import isfinite
from numbers import Real
from operator import attrgetter
from socket import socket

from msgspec import msgpack

from evalcore.core.records.outcome import FAILED, OK, UNSCORABLE, Failed, Ok, Unscorable

HEAD = 4
"""Bytes for the length of a message."""
LONGEST = 2000
"""Characters of a reason."""

Reply = tuple[int, float, str]
"""Status, score and reason, as msgpack: what runs a model's code is never unpickled by the trainer."""


def send(channel: socket, message: bytes) -> None:
    """Send a message."""
    channel.sendall(len(message).to_bytes(HEAD) + message)


def receive(channel: socket) -> bytes:
    """Receive a message. Only one is ever under way, and without a file around the socket no fork inherits its lock."""
    message = bytearray()
    while len(message) < HEAD or len(message) < HEAD + int.from_bytes(message[:HEAD]):
        part = channel.recv(1 << 16)
        if not part:
            raise EOFError
        message += part
    return bytes(message[HEAD:])


def load_verifier(source: str | bytes) -> Callable[..., object]:
    """Load a function from ``module:name``, ``path/to/file.py:name`` or its pickle.

    >>> load_verifier("math:sqrt")(9)
    3.0
    """
    if isinstance(source, bytes):
        return pickle.loads(source)  # type: ignore[no-any-return]
    home, _, name = source.rpartition(":")
    return attrgetter(name)(_import_file(home) if home.endswith(".py") else import_module(home))  # type: ignore[no-any-return]


def _import_file(path: str) -> object:
    name = os.path.basename(path).removesuffix(".py")
    spec = util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    sys.modules[name] = module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def judge(verify: Callable[..., object], message: bytes, memory: int | None = None) -> Reply:
    """Call the verifier and read its verdict.

    >>> judge(max, pickle.dumps((0, True))), judge(max, pickle.dumps((3,)))
    ((0, 1.0, ''), (2, 0.0, "TypeError: 'int' object is not iterable"))
    """
    try:
        return read_verdict(verify(*pickle.loads(message)))
    except BaseException as wrong:  # sys.exit() in a verifier, too
        limit = f" (limit: {memory:,} bytes)" if memory is not None and isinstance(wrong, MemoryError) else ""
        return FAILED, 0.0, describe(wrong) + limit


def read_verdict(value: object) -> Reply:
    """Read what a verifier returned: a finite number, or an outcome.

    >>> read_verdict(0.5), read_verdict(Ok(1)), read_verdict(None)
    ((0, 0.5, ''), (0, 1.0, ''), (1, 0.0, 'expected a finite number from the verifier, got None'))
    """
    if isinstance(value, Unscorable | Failed):
        return UNSCORABLE if isinstance(value, Unscorable) else FAILED, 0.0, _clean(value.reason)
    score = value.score if isinstance(value, Ok) else value
    number = score.item() if hasattr(score, "item") else score  # an array's or a tensor's
    if isinstance(number, Real) and isfinite(number):
        return OK, float(number), ""
    return UNSCORABLE, 0.0, _clean(f"expected a finite number from the verifier, got {score!r}")


def describe(wrong: BaseException) -> str:
    """Describe an exception, even one that cannot be shown."""
    text = ""
    with suppress(Exception):
        text = str(wrong)
    return _clean(f"{type(wrong).__name__}: {text}" if text else type(wrong).__name__)


def _clean(text: str) -> str:
    """Shorten a text and replace what UTF-8 cannot hold."""
    return text[:LONGEST].encode("utf-8", "replace").decode()


def limit_memory(most: int) -> None:
    """Let this process have at most so many bytes of addresses."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def serve(channel: socket) -> None:
    """Load the verifier and judge calls until the trainer is gone."""
    source, memory, longest = pickle.loads(receive(channel))
    try:
        if memory is not None:
            limit_memory(memory)
        verify = load_verifier(source)
    except BaseException as wrong:
        return send(channel, msgpack.encode((FAILED, 0.0, describe(wrong))))
    send(channel, msgpack.encode((OK, 0.0, "")))
    home = os.getpid()
    while True:
        message = receive(channel)
        # No handler: the system ends this process if a verifier hangs and the trainer, which would end it, is gone.
        signal.setitimer(signal.ITIMER_REAL, longest)
        reply = judge(verify, message, memory)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if os.getpid() != home:  # a fork that the verifier made and that returned from it
            return None
        send(channel, msgpack.encode(reply))


def main(fd: int) -> None:
    """Serve over a socket, then end at once, whatever threads a verifier left behind."""
    channel = socket(fileno=fd)
    with suppress(EOFError, OSError):
        serve(channel)
    with suppress(Exception):
        sys.stdout.flush()
    os._exit(0)
