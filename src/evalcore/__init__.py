"""evalcore: from model answers to numbers people can trust, pure, immutable and typed.

The public names are those of ``evalcore.public``; they are loaded on first use, so that a command line which needs
none of them (``evalcore tasks``) does not wait for numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalcore.public import *  # noqa: F403


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name.startswith("__") and name != "__version__" and name != "__all__":
        raise AttributeError(name)
    try:
        return getattr(import_module("evalcore.public"), name)
    except AttributeError:
        raise AttributeError(f"module 'evalcore' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    from evalcore import public

    return [*globals(), *public.__all__]
