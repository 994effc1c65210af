"""What runs beside each other are called, by their paths and by a letter each, and what their tasks are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.shell.config.values import Names, RunPath
from evalcore.shell.files.given import parse_path
from evalcore.shell.logs.json_records import find_part


def choose_names(typed: Names | None, paths: Sequence[RunPath]) -> tuple[str, ...]:
    """The names of runs: as typed, else from their paths.

    >>> choose_names("new,old", ["a", "b"]), choose_names(None, ["runs/a", "runs/b/"])
    (('new', 'old'), ('a', 'b'))
    """
    if typed is None:
        return name_runs([parse_path(path).parts or (str(path),) for path in paths])
    names = tuple(name.strip() for name in (typed.split(",") if isinstance(typed, str) else typed))
    if len(names) != len(paths) or not all(names):
        raise EvalError(f"expected --names with a name for each of the {len(paths)} runs, got {typed!r}")
    return names


def name_runs(paths: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """A name for each run: the last parts of its path, as many as tell the runs apart; a number where none do.

    >>> name_runs([("runs", "big"), ("runs", "small")]), name_runs([("big", "out"), ("small", "out")])
    (('big', 'small'), ('big/out', 'small/out'))
    >>> name_runs([("out",), ("out",)])
    ('out', 'out (2)')
    """
    different = len({tuple(path) for path in paths})
    for depth in range(1, max(map(len, paths)) + 1):
        names = ["/".join(path[-depth:]) for path in paths]
        if len(set(names)) == different:
            break
    counts = [names[:at].count(name) for at, name in enumerate(names)]
    return tuple(f"{name} ({seen + 1})" if seen else name for name, seen in zip(names, counts, strict=True))


def label_runs(count: int) -> tuple[str, ...]:
    """A letter for each run.

    >>> label_runs(3), label_runs(28)[-2:]
    (('A', 'B', 'C'), ('A2', 'B2'))
    """
    return tuple(chr(ord("A") + at % 26) + (str(at // 26 + 1) if at > 25 else "") for at in range(count))


Aliases = Mapping[str, str]
"""What tables call a task or group, by its name."""


def agree_aliases(results: Iterable[Mapping[str, object]]) -> Aliases:
    """The aliases on which all results agree that have the task; one that could mean another task, too, is none.

    >>> run = {"results": {"my_nature": {"alias": " - nature"}, "a": {"alias": "both"}, "b": {"alias": "both"}}}
    >>> agree_aliases([run, {}]), agree_aliases([run, {"results": {"nature": {}}}])
    ({'my_nature': 'nature'}, {})
    """
    told: dict[str, set[str]] = {}
    for one in results:
        rows = {**find_part(one, "groups"), **find_part(one, "results")}
        for name, row in rows.items():
            told.setdefault(name, set()).add(str(find_part(row).get("alias") or name).lstrip(" -"))
    meant = Counter(alias for name, aliases in told.items() for alias in {name, *aliases})
    agreed = ((name, *aliases) for name, aliases in told.items() if len(aliases) == 1)
    return FrozenDict({name: alias for name, alias in agreed if alias not in ("", name) and meant[alias] == 1})


def find_aliased(given: Iterable[str], aliases: Aliases) -> tuple[str, ...]:
    """Names of tasks, in place of the aliases among them.

    >>> find_aliased(["nature", "gsm*"], {"my_nature": "nature"})
    ('my_nature', 'gsm*')
    """
    names = {alias: name for name, alias in aliases.items()}
    return tuple(names.get(one, one) for one in given)
