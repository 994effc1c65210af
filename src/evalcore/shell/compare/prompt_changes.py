"""What runs asked about the same documents: other prompts, other generation arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from evalcore.shell.logs.runs.identity import encode_sorted
from evalcore.shell.logs.runs.log_table import RECORDED_HASH
from evalcore.shell.logs.runs.run_record import Recorded

Plain = Mapping[str, object]
GREEDY = {"temperature": (None, 0), "do_sample": (None, False)}
"""The arguments that ask for the likeliest text if all of them are off or left out."""


def tell_prompts(runs: Sequence[Recorded], task: str) -> str | None:
    """Say for how many of the documents that runs share the prompts are not the same; None if for none.

    Prompts are compared if both logs have them, or if both have only their hashes.
    """
    asked: dict[tuple[str, int, bool], list[str]] = {}
    for run in runs:
        for row in run.side.documents.get(task, ()):
            if row.prompt:
                hashed = row.prompt.startswith(RECORDED_HASH)
                asked.setdefault((row.content, row.occurrence, hashed), []).append(row.prompt)
    shared = [prompts for prompts in asked.values() if len(prompts) > 1]
    other = sum(len(set(prompts)) > 1 for prompts in shared)
    of = "all" if other == len(shared) else f"{other:,} of the"
    return f"prompts differ for {of} {len(shared):,} documents that are the same" if other else None


def tell_arguments(labels: Sequence[str], runs: Sequence[Recorded], task: str) -> str | None:
    """Say in which generation arguments runs differ; None if in none, or if a log does not say."""
    given = [[_normalise(one) for one in run.options.get(task, ())] for run in runs]
    if not all(given):
        return None
    names = sorted({name for options in given for one in options for name in one})
    values = {name: [_list_values(options, name) for options in given] for name in names}
    unlike = [
        f"{name} " + ", ".join(f"{_show(found)} in {label}" for found, label in zip(each, labels, strict=True))
        for name, each in values.items()
        if any({*found} != {*each[0]} for found in each)
    ]
    return f"generation arguments differ: {'; '.join(unlike)}" if unlike else None


def _normalise(given: Plain) -> Plain:
    """Arguments without those that are left out or say nothing; one stop string as a list.

    >>> dict(_normalise({"until": "x", "do_sample": False, "temperature": 0.0, "top_p": None}))
    {'until': ('x',)}
    """
    greedy = all(given.get(name) in off for name, off in GREEDY.items())
    said = {name: value for name, value in given.items() if value is not None and value not in ([], (), "")}
    kept = {name: value for name, value in said.items() if not (greedy and name in GREEDY)}
    until = kept.get("until")
    return {**kept, "until": (until,)} if isinstance(until, str) else kept


def _list_values(options: Iterable[Plain], name: str) -> Mapping[bytes, object]:
    """The values of an argument, each once; 1 is 1.0."""
    return dict(_spell_value(one.get(name)) for one in options)


def _spell_value(value: object) -> tuple[bytes, object]:
    whole = float(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return encode_sorted(whole), value


def _show(found: Mapping[bytes, object]) -> str:
    shown = list(_show_values(found.values()))
    return " or ".join(shown[:3]) + (f" or {len(shown) - 3} others" if len(shown) > 3 else "")


def _show_values(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        text = "not given" if value is None else repr(list(value)) if isinstance(value, tuple) else repr(value)
        yield text if len(text) <= 60 else f"{text[:57]}..."
