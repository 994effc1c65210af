"""Relative paths of a run config start at its folder, then at the working directory; those of flags at the latter."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from evalcore.shell.files.given import name_fully


def find_path(given: str, home: Path | None) -> str:
    """Find a path of a run config: beside the config if it exists there, else from the working directory.

    >>> find_path("/abs", None)
    '/abs'
    """
    fixed = home is None or not given or os.path.isabs(os.path.expanduser(given)) or "://" in given or "\0" in given
    return given if fixed or home is None or not _leads_somewhere(home, given) else str(home / given)


def find_paths(given: object, home: Path | None) -> object:
    """Find paths anywhere inside a value, as they are seen from here or from the config's folder."""
    if isinstance(given, str):
        return find_path(given, home)
    if isinstance(given, Mapping):
        return {key: find_paths(one, home) for key, one in given.items()}
    return (
        [find_paths(one, home) if isinstance(one, str) else one for one in given] if isinstance(given, tuple) else given
    )


def is_path(spec: str) -> bool:
    """Whether an entry of ``tasks:`` can only be a path.

    >>> is_path("gsm8k"), is_path("tasks/gsm8k.yaml")
    (False, True)
    """
    return "/" in spec or spec.endswith((".yaml", ".yml"))


def anchor_paths(value: object, home: Path | None) -> object:
    """Make relative paths inside a value absolute if they exist; a glob exists if its folder does.

    >>> anchor_paths({"a": "no/such/file", "b": ["/there"]}, None)
    {'a': 'no/such/file', 'b': ['/there']}
    """
    if isinstance(value, Mapping):
        return {key: anchor_paths(one, home) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [anchor_paths(one, home) if isinstance(one, str) else one for one in value]
    if not isinstance(value, str) or os.path.isabs(os.path.expanduser(value)) or "://" in value or "\0" in value:
        return value
    bases = [base for base in (home, Path.cwd()) if base is not None and _leads_somewhere(base, value)]
    return name_fully(bases[0] / value) if bases else value


def _leads_somewhere(base: Path, value: str) -> bool:
    """Whether a path exists; of a glob, or a path that contains ``{task}``, whether its folder does."""
    path = value.partition("@sha256:")[0]
    fixed = re.split(r"[*?\[{]", path)[0]
    return (base / path).exists() if fixed == path else bool(fixed) and (base / os.path.dirname(fixed)).is_dir()


def locate_key(where: str, text: str, key: str) -> str:
    """Locate a key of the top level: its file and, if it has one, its line.

    >>> locate_key("run.yaml", "model: m\\nci: t", "ci"), locate_key("run.yaml", "", "ci")
    ('run.yaml:2', 'run.yaml')
    """
    match = re.search(rf"^['\"]?{re.escape(key)}['\"]?\s*:", text, re.MULTILINE)
    return f"{where}:{text.count(chr(10), 0, match.start()) + 1}" if match else where


def locate_message(message: str, where: str, text: str) -> str:
    """Add the line of the offending key to msgspec's message."""
    said, _, at = message.partition(" - at `$")
    key = re.match(r"\.(\w+)", at)
    name = key.group(1) if key else ""
    return f"{name}: {said} - at {locate_key(where, text, name)}".removeprefix(": ")
