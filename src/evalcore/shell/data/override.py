"""The ``data:`` of a run config: local documents in place of a task's own."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from evalcore.core.records.errors import EvalError


def find_override(data: Mapping[str, object] | None, task: str) -> object | None:
    """Find what ``data:`` gives for a task, by its name or the first matching glob; ``{task}`` in a path is its name.

    >>> find_override({"arc_*": "local/{task}.jsonl", "boolq": {"test": "b.csv"}}, "arc_easy")
    'local/arc_easy.jsonl'
    >>> find_override({"arc_*": "local/{task}.jsonl"}, "boolq") is None
    True
    """
    if data is None:
        return None
    if not isinstance(data, Mapping):
        raise EvalError(f"data: expected task names with files, got {data!r}; write `data: {{{task}: file.jsonl}}`")
    if task in data:
        return _name_task(data[task], task)
    return next((_name_task(value, task) for name, value in data.items() if fnmatchcase(task, str(name))), None)


def _name_task(value: object, task: str) -> object:
    """Fill in the name of a task in paths only: documents given in place stay as they are."""
    if isinstance(value, str):
        return value.replace("{task}", task)
    if isinstance(value, Mapping):
        return {name: _name_task(one, task) for name, one in value.items()}
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return [_name_task(one, task) for one in value]
    return value
