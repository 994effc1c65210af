"""What was asked of ``score`` and ``merge``, as it is typed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from evalcore.shell.files.address import show_address
from evalcore.shell.score.units.score_keys import NumberKeys

TYPED = (*NumberKeys.__annotations__, "allow_failures", "doc_timeout")
"""The keys on which numbers, and whether they count as complete, depend; each is a flag of its name."""


def spell_command(verb: str, paths: Sequence[str], keys: Mapping[str, object]) -> list[str]:
    """Spell the words of the command that comes to the same numbers; none where an object was given, which has no flag.

    >>> spell_command("score", ["a.csv"], {"metric": ["f1", "acc"], "tally": True, "limit": None, "output_path": "out"})
    ['evalcore', 'score', 'a.csv', '--metric', 'f1', '--metric', 'acc', '--tally']
    >>> spell_command("score", ["a.csv"], {"bounds": {"loss": (0.0, None)}})
    []
    """
    given = {key: value for key, value in keys.items() if key in TYPED and value is not None}
    words = [list(_spell_flag(key, value)) for key, value in given.items()]
    typed = "readers" not in keys and "tables" not in keys and None not in (word for flag in words for word in flag)
    return ["evalcore", verb, *paths, *(word for flag in words for word in flag if word is not None)] if typed else []


def _spell_flag(key: str, value: object) -> Iterator[str | None]:
    """Yield the words of a flag, None for what cannot be typed."""
    if isinstance(value, bool):
        yield from [f"--{key}"] * value
    elif isinstance(value, str | Path | int | float):
        yield from (f"--{key}", show_address(str(value)))
    elif isinstance(value, Sequence) and not isinstance(value, Mapping):
        for one in value:
            yield from _spell_flag(key, one)
    else:
        yield None
