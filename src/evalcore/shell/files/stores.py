"""What is known of the stores that addresses name, and how to connect to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from evalcore.core.records.errors import EvalError, require
from evalcore.core.records.frozen_dict import FrozenDict, thaw_dict
from evalcore.shell.files.address import Address, join_address


class Store(Struct, frozen=True, kw_only=True):
    """A kind of store.

    One that ``reads_only`` has no folders, either; one that ``puts_whole`` never shows a part of a file.
    ``user_keys`` are fsspec's names of the user and the password where it does not take them from the address, and
    ``options`` its options where its own configuration has none for such stores.
    """

    reads_only: bool = False
    puts_whole: bool = False
    user_keys: tuple[str, ...] = ()
    options: Mapping[str, object] = FrozenDict()

    def refuse_writing(self, shown: object) -> None:
        """Refuse to write to an address that can only be read."""
        if self.reads_only:
            raise EvalError(f"{shown}: such an address can only be read; write to a folder or a store (s3://, gs://)")


WEB = Store(reads_only=True)
OBJECTS = Store(puts_whole=True)
# Every call is tried again by us, so botocore need not try each attempt several times.
S3 = Store(
    puts_whole=True,
    user_keys=("key", "secret"),
    options=FrozenDict({"config_kwargs": FrozenDict({"retries": FrozenDict({"max_attempts": 0})})}),
)
STORES: Mapping[str, Store] = FrozenDict(
    {"http": WEB, "https": WEB, "s3": S3, "s3a": S3} | dict.fromkeys(("gs", "gcs", "abfs", "abfss", "az"), OBJECTS)
)
"""Stores by scheme; of any other, fsspec knows how to reach it, and that is enough."""


LOGGERS = ("fsspec", "s3fs", "gcsfs", "botocore", "aiobotocore")


def find_store(scheme: str) -> Store:
    """Find the kind of store that a scheme names.

    >>> find_store("https").reads_only, find_store("sftp").reads_only
    (True, False)
    """
    return STORES.get(scheme, Store())


def connect(address: Address) -> tuple[Any, str]:
    """Connect to a store: its file system, and the name that an address has there."""
    import logging  # here, because it takes time to load

    url_to_fs = require("fsspec.core", "remote").url_to_fs
    configured = require("fsspec.config", "remote").conf.get(address.scheme, {})
    store = find_store(address.scheme)
    options = {**thaw_dict(store.options), **configured}
    if address.user and store.user_keys:
        options |= dict(zip(store.user_keys, map(unquote, address.user.split(":", 1)), strict=False))
        address = address._replace(user="")
    for name in LOGGERS:  # what goes wrong is said once, by us
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    # What was listed a while ago is no fact: a log that has grown since would be read as it was.
    store_system, name = url_to_fs(join_address(address), use_listings_cache=False, **options)
    return store_system, name
