"""Chunks: parts of a page's data that are unpacked when a reader looks at them."""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256

import msgspec
from msgspec import Struct

from evalcore.shell.safety.credentials import hide_credentials
from evalcore.shell.safety.strict_json import dump_json

LEVEL = 6
EXACT = 1 << 53
"""Whole numbers below this are themselves in a browser."""


class PageChunk(Struct, frozen=True):
    """Gzipped JSON in base64, named by the hash of its bytes."""

    id: str
    text: str

    @property
    def size(self) -> int:
        return len(self.text)


def write_data(data: object) -> str:
    r"""Data as JSON without credentials in use; lone surrogates, which UTF-8 has no bytes for, are escapes.

    >>> write_data({"é": "\ud800"})
    '{"\\u00e9": "\\ud800"}'
    """
    try:
        return hide_credentials(msgspec.json.encode(data).decode())
    except UnicodeEncodeError:
        return hide_credentials(dump_json(data))


def list_keys(keys: Iterable[int | None]) -> list[int | str | None]:
    """Keys of documents as a browser tells them apart: large ones, such as those of ids that are texts, as texts.

    >>> list_keys([7, None, 2**53 + 1])
    [7, None, '9007199254740993']
    """
    return [key if key is None or abs(key) < EXACT else str(key) for key in keys]


def pack_chunk(data: object) -> PageChunk:
    """Pack data without credentials in use; the same data give the same chunk.

    >>> pack_chunk({"ids": [1, 2]}) == pack_chunk({"ids": [1, 2]})
    True
    """
    packed = gzip.compress(write_data(data).encode(), LEVEL, mtime=0)
    return PageChunk(sha256(packed).hexdigest()[:24], b64encode(packed).decode())
