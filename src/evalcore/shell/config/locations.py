"""Relative paths: of a run config from its folder, then from the working directory; of flags from the latter."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["anchored", "find_path", "is_path"]


def find_path(given: str, home: Path | None) -> str:
    """A path from a run config: beside the config if it is there, else as it is seen from the working directory.

    >>> find_path("/abs", None)
    '/abs'
    """
    fixed = home is None or not given or os.path.isabs(os.path.expanduser(given)) or "\0" in given
    return given if fixed or home is None or not _leads_somewhere(home, given) else str(home / given)


def is_path(spec: str) -> bool:
    """Whether an entry of ``tasks:`` can only be a path.

    >>> is_path("gsm8k"), is_path("tasks/gsm8k.yaml")
    (False, True)
    """
    return "/" in spec or spec.endswith((".yaml", ".yml"))


def anchored(value: object, home: Path | None) -> object:
    """Relative paths anywhere inside a value as absolute ones, where they lead somewhere; globs by their folder.

    >>> anchored({"a": "no/such/file", "b": ["/there"]}, None)
    {'a': 'no/such/file', 'b': ['/there']}
    """
    if isinstance(value, Mapping):
        return {key: anchored(one, home) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [anchored(one, home) if isinstance(one, str) else one for one in value]
    if not isinstance(value, str) or os.path.isabs(os.path.expanduser(value)) or "://" in value or "\0" in value:
        return value
    bases = [base for base in (home, Path.cwd()) if base is not None and _leads_somewhere(base, value)]
    return os.path.abspath(bases[0] / value) if bases else value


def _leads_somewhere(base: Path, value: str) -> bool:
    """A path if it is there; a glob, or a path with ``{task}`` in it, if its folder is."""
    path = value.partition("@sha256:")[0]
    fixed = re.split(r"[*?\[{]", path)[0]
    return (base / path).exists() if fixed == path else bool(fixed) and (base / os.path.dirname(fixed)).is_dir()
