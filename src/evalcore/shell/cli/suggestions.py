"""What can be typed after each command, read from its parser: the source of every shell's completion."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from importlib import import_module

from msgspec import Struct

from evalcore.shell.cli import COMMANDS


class FlagWords(Struct, frozen=True):
    """A flag: its spellings, what it is for, and what may follow it. ``words`` are all that may; none: files.

    ``takes`` is how many values it takes: 0, 1 or 2 for several. ``task``: names of tasks may follow.
    """

    spellings: tuple[str, ...]
    help: str = ""
    takes: int = 1
    words: tuple[str, ...] = ()
    task: bool = False


class CommandWords(Struct, frozen=True):
    """A command, its flags, and what its first argument may be if that is no file."""

    name: str
    summary: str
    flags: tuple[FlagWords, ...]
    words: tuple[str, ...] = ()
    task: bool = False


def list_suggestions() -> tuple[CommandWords, ...]:
    """Everything that can be typed after ``evalcore``.

    >>> run = list_suggestions()[0]
    >>> run.name, next(flag.words for flag in run.flags if "--policy" in flag.spellings)
    ('run', ('evalcore', 'lm-eval-0.4.13'))
    """
    known = _list_names()
    return tuple(_read_command(name, known) for name in COMMANDS)


def _read_command(name: str, known: Mapping[str, tuple[str, ...]]) -> CommandWords:
    command = COMMANDS[name]
    module = import_module(f"evalcore.shell.cli.{command.room}.{name}")
    parser: argparse.ArgumentParser = module.build_parser()
    # argparse has no public list of them
    shown = [one for one in parser._actions if one.help != argparse.SUPPRESS]
    places = [one for one in shown if not one.option_strings]
    first = tuple(getattr(module, "ACTIONS", ())) or (_list_words(places[0], known) if places else ())
    return CommandWords(
        name,
        command.summary,
        tuple(_read_flag(one, known) for one in shown if one.option_strings),
        first,
        task=bool(getattr(module, "ACTIONS", ())),
    )


def _read_flag(action: argparse.Action, known: Mapping[str, tuple[str, ...]]) -> FlagWords:
    several = action.nargs in ("+", "*")
    return FlagWords(
        tuple(action.option_strings),
        (action.help or "").replace("%%", "%"),
        0 if action.nargs == 0 else 2 if several else 1,
        _list_words(action, known),
        task=action.dest in TASKS,
    )


def _list_words(action: argparse.Action, known: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    if action.choices is not None:
        return tuple(map(str, action.choices))
    if action.metavar == "true|false":
        return ("true", "false")
    return known.get(action.dest, ())


TASKS = frozenset({"tasks", "task"})
"""Flags that take names of tasks."""


def _list_names() -> dict[str, tuple[str, ...]]:
    """What is known by name, by the flag or argument that takes it."""
    from evalcore.core.compare.lines import CORRECTIONS
    from evalcore.core.lm_eval.policy import POLICIES
    from evalcore.core.stats.influence import ERROR_FORMS
    from evalcore.core.tables import EVALCORE
    from evalcore.shell.engines.engines import ENGINES
    from evalcore.shell.models import MODELS

    models, metrics = _sort(MODELS), _sort(name for table in EVALCORE.metrics.values() for name in table)
    return {
        "model": models,
        "name": models,
        "metric": metrics,
        "policy": _sort(POLICIES),
        "ci": _sort(EVALCORE.intervals),
        "stderr": _sort(ERROR_FORMS),
        "reducer": _sort(name for name in EVALCORE.reducers if "@" not in name),
        "engine": _sort(ENGINES),
        "correction": _sort(CORRECTIONS),
    }


def _sort(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))
