"""Secrets in a run config: those that the run sends, and those that were left out of a file that a run wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evalcore.core.records.errors import EvalError
from evalcore.shell.safety.secrets import HIDDEN, find_secrets

SENT = ("model_args", "gen_kwargs")
SENT_BY_TASKS = ("generation_kwargs", "dataset_kwargs")


def find_credentials(given: Mapping[str, object]) -> Iterator[str]:
    """Find the secrets that a run sends, to the model or for its data.

    >>> list(find_credentials({"gen_kwargs": "temperature=0,api_key=abc", "metadata": {"token": "unsent"}}))
    ['abc']
    """
    for _, value in _list_parts(given):
        yield from find_secrets(value)


def refuse_hidden(given: Mapping[str, object], where: str) -> None:
    """Refuse a config in which a run wrote that a secret was there, but not which."""
    for part, values in _list_parts(given):
        for key, value in values.items() if isinstance(values, Mapping) else ():
            if HIDDEN in str(value):
                raise EvalError(
                    f"{part} {key}: this value was left out of the file it is from; give it again - at {where}"
                )


def _list_parts(given: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """List what is sent, by the key that it stands under."""
    tasks = given.get("tasks")
    several: Sequence[object] = tasks if isinstance(tasks, list | tuple) else [tasks]
    yield from ((key, given[key]) for key in SENT if key in given)
    yield from ((key, one[key]) for one in several if isinstance(one, Mapping) for key in SENT_BY_TASKS if key in one)
