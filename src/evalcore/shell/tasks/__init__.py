"""Task files: found, included, trusted, resolved. Names are loaded on first use: a list of tasks needs no numpy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalcore.shell.tasks.code import code_of, trusted
    from evalcore.shell.tasks.description import show
    from evalcore.shell.tasks.function import FunctionRef
    from evalcore.shell.tasks.library.cache import build_index
    from evalcore.shell.tasks.library.entries import list_entries
    from evalcore.shell.tasks.library.files import Problem
    from evalcore.shell.tasks.library.index import Entry, TaskIndex, config_of, default_library
    from evalcore.shell.tasks.linter import check
    from evalcore.shell.tasks.resolution import Resolved, resolve
    from evalcore.shell.tasks.trust import Trust, load_functions, load_groups, refuse_untrusted, trust_from

HOMES = {
    "library.cache": ("build_index",),
    "linter": ("check",),
    "code": ("code_of", "trusted"),
    "library.files": ("Problem",),
    "function": ("FunctionRef",),
    "library.index": ("Entry", "TaskIndex", "config_of", "default_library"),
    "library.entries": ("list_entries",),
    "resolution": ("Resolved", "resolve"),
    "description": ("show",),
    "trust": ("Trust", "load_functions", "load_groups", "refuse_untrusted", "trust_from"),
}

__all__ = [
    "Entry",
    "FunctionRef",
    "Problem",
    "Resolved",
    "TaskIndex",
    "Trust",
    "build_index",
    "check",
    "code_of",
    "config_of",
    "default_library",
    "list_entries",
    "load_functions",
    "load_groups",
    "refuse_untrusted",
    "resolve",
    "show",
    "trust_from",
    "trusted",
]


def __getattr__(name: str) -> object:
    home = next((home for home, names in HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
