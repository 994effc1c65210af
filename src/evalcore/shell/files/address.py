"""Addresses of files (``s3://bucket/key``): what they say, and what of them may be shown.

Credentials in an address, and its query, which may be a signature, are for the store alone: no message and no file has
them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

# Two letters at least: C:// is a drive.
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
# A key may hold slashes; what follows a host's port does not belong to it.
USER = re.compile(r"[^/@:\s]*:(?!\d+/)[^@\s]*@|[^/@:\s]*@")
QUERY = re.compile(r"\?[^/?=\s]*=.*", re.DOTALL)
ANYWHERE = re.compile(rf"{SCHEME.pattern}(?:{USER.pattern})?([^\s?]*)(\?[^/?=\s]*=[^\s'\")]*)?")
CONTAINERS = frozenset({"abfs", "abfss", "wasb", "wasbs"})
"""Schemes whose name before the ``@`` is a container, not a user."""


class Address(NamedTuple):
    """The parts of an address; ``user`` and ``query`` are secret."""

    scheme: str
    place: str
    user: str = ""
    query: str = ""


def split_address(text: str) -> Address | None:
    """Split an address; None of a path.

    >>> split_address("https://me:pw@host/a.jsonl?sig=1")
    Address(scheme='https', place='host/a.jsonl', user='me:pw', query='sig=1')
    >>> split_address("s3://bucket/a?.jsonl"), split_address("runs/a")
    (Address(scheme='s3', place='bucket/a?.jsonl', user='', query=''), None)
    """
    found = SCHEME.match(text)
    if found is None:
        return None
    scheme, rest = found[1].lower(), text[found.end() :]
    query = QUERY.search(rest)
    rest = rest[: query.start()] if query else rest
    user = None if scheme in CONTAINERS else USER.match(rest)
    place = rest[user.end() :] if user else rest
    return Address(scheme, place, user[0][:-1] if user else "", query[0][1:] if query else "")


def join_address(address: Address) -> str:
    """The whole address, for the store."""
    user = f"{address.user}@" if address.user else ""
    return f"{address.scheme}://{user}{address.place}" + (f"?{address.query}" if address.query else "")


def show_address(text: str) -> str:
    """The address without what is secret; a path as it is.

    >>> show_address("s3://key:sec/ret@bucket/run"), show_address("runs/a?b=c")
    ('s3://bucket/run', 'runs/a?b=c')
    """
    found = split_address(text)
    return text if found is None else f"{found.scheme}://{found.place}"


def hide_addresses(text: str) -> str:
    """A message whose addresses have nothing secret.

    >>> hide_addresses("cannot get 'https://host/a?X-Amz-Signature=ab' or s3://k:s@b/c")
    "cannot get 'https://host/a' or s3://b/c"
    """
    return ANYWHERE.sub(r"\1://\2", text)


def show_dataset(task: Mapping[str, object]) -> dict[str, object]:
    """The config of a task whose data files have nothing secret in their addresses; prompts are as they are.

    >>> show_dataset({"dataset_path": "json", "dataset_kwargs": {"data_files": "https://host/a.json?sig=1"}})
    {'dataset_path': 'json', 'dataset_kwargs': {'data_files': 'https://host/a.json'}}
    """
    return {**task, **{key: show_addresses(task[key]) for key in ("dataset_path", "dataset_kwargs") if key in task}}


def show_addresses(value: object) -> object:
    """Plain data whose addresses have nothing secret.

    >>> show_addresses({"test": ["https://me:pw@host/a.jsonl", "b.jsonl"]})
    {'test': ['https://host/a.jsonl', 'b.jsonl']}
    """
    if isinstance(value, Mapping):
        return {key: show_addresses(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [show_addresses(one) for one in value]
    return show_address(value) if isinstance(value, str) else value
