"""A run config as a file has it; anything else is refused with what may have been meant."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import NamedTuple

from evalcore.core.records.errors import EvalError
from evalcore.shell.config.yaml_file import read_yaml

TABLES = frozenset({".csv", ".tsv", ".jsonl", ".json", ".parquet"})
"""Files that are more likely of questions."""


class ConfigFile(NamedTuple):
    """The keys and values of a file, and its text, which knows their lines."""

    value: dict[str, object]
    text: str


def read_file(path: Path) -> ConfigFile:
    """Read a file of keys and values."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as wrong:
        why = (wrong.strerror if isinstance(wrong, OSError) else None) or wrong
        raise EvalError(f"cannot read the run config {path}: {why}{_advise(path)}") from wrong
    value = read_yaml(text, str(path)).value
    if not isinstance(value, dict):
        got = type(value).__name__
        raise EvalError(f"{path}: expected a mapping of keys such as model and tasks, got {got}{_advise(path)}")
    if isinstance(value.get("task"), str) and not value.keys() & {"model", "tasks"}:
        told = f"evalcore run --model dummy --tasks {quote(str(path))}"
        raise EvalError(f"{path}: expected a run config, got a task file; `{told}` runs it")
    return ConfigFile(value, text)


def _advise(path: Path) -> str:
    """What may have been meant by a folder or a table."""
    inside = path / "config.yaml"
    if path.is_dir() and inside.is_file():
        return f"; did you mean {inside}?"
    table = path.is_file() and path.suffix.lower() in TABLES
    return f"; of a file of questions, `evalcore init {quote(str(path))}` makes one" if table else ""
