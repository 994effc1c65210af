"""Credentials that this process uses, kept out of all that it writes: files, messages, tracebacks.

They are held by the process, as no writer could otherwise know them all: one of them may come back from anywhere, in a
server's reply, an error of a library or the text of a document.
"""

from __future__ import annotations

from collections.abc import Iterable
from json import dumps
from urllib.parse import quote

from evalcore.shell.safety.secrets import HIDDEN, PLACEHOLDERS, SHORTEST

_used: dict[str, str] = {}


def is_real(value: str) -> bool:
    """Whether a value can be a secret; short ones and placeholders may stand for anything.

    >>> is_real("EMPTY"), is_real("not-needed"), is_real("canary-12345678")
    (False, False, True)
    """
    return len(value) >= SHORTEST and value not in PLACEHOLDERS


def note_credentials(values: Iterable[str]) -> None:
    """Remember credentials that this process uses."""
    for value in values:
        if is_real(value):
            for form in (value, dumps(value)[1:-1], quote(value, safe=""), quote(value)):
                _used[form] = ""


def list_credentials() -> tuple[str, ...]:
    """The credentials in use, in every form in which they may be written, the longest first."""
    return tuple(sorted(_used, key=len, reverse=True)) if _used else ()


def hide_credentials(text: str) -> str:
    """A text without the credentials in use.

    >>> note_credentials(["canary-12345678"])
    >>> hide_credentials("refused: canary-12345678"), hide_credentials("a text")
    ('refused: [redacted]', 'a text')
    >>> forget_credentials()
    """
    for secret in list_credentials():
        text = text.replace(secret, HIDDEN)
    return text


def hide_in_bytes(data: bytes) -> bytes:
    """Bytes that are about to be written, without the credentials in use."""
    for secret in list_credentials():
        data = data.replace(secret.encode("utf-8", "surrogatepass"), HIDDEN.encode())
    return data


def forget_credentials() -> None:
    """Forget all of them."""
    _used.clear()
