"""The pages of docs/reference that are made from tables: keys, flags, exit codes, models, metrics."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from math import inf

import msgspec

from evalcore.core.metrics.dispatch import METRICS
from evalcore.core.metrics.metric import Metric
from evalcore.shell.cli import COMMANDS
from evalcore.shell.config.keys import KEYS, Key
from evalcore.shell.config.plan import Plan, list_choices
from evalcore.shell.models import list_backends
from evalcore.shell.safety.exit_codes import MEANINGS
from evalcore.shell.tasks.task_keys import AVERAGE_KEYS, GROUP_FILE_KEYS, METRIC_LIST_KEYS, TASK_KEYS
from tests.docs.formulas import FORMULAS

HOMES = (
    "evalcore",
    *(f"evalcore.{name}" for name in ("groups", "stats", "logs", "comparisons", "traces", "starter", "lm_eval")),
    *(f"evalcore.{name}" for name in ("extensions", "frames", "scale", "testing")),
)
COMMAND_NAMES = ("run", "score", "compare")
"""Public names that ``from evalcore import *`` leaves out."""

Rows = Iterable[tuple[str, ...]]
MADE = "<!-- made by python -m tests.docs --write -->"
KINDS = {
    "text": "text",
    "int": "whole number",
    "number": "number",
    "flag": "true or false",
    "pairs": "mapping",
    "names": "list",
    "seeds": "number, or four",
    "json": "mapping",
}
"""How a value of each kind is written in a config file."""


def write_table(head: tuple[str, ...], rows: Rows) -> str:
    r"""A table in Markdown.

    >>> print(write_table(("key", "meaning"), [("`a`", "b | c")]), end="")
    | key | meaning |
    | --- | --- |
    | `a` | b \| c |
    """
    lines = [head, ("---",) * len(head), *(tuple(cell.replace("|", "\\|") for cell in row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def code(*words: str) -> str:
    return ", ".join(f"`{word}`" for word in words if word)


def escape(text: str) -> str:
    """Text whose ``<name>`` and ``*`` mean themselves."""
    return text.replace("<", "&lt;").replace("*", "\\*")


def tell(summary: str) -> str:
    return f"{summary[0].upper()}{escape(summary[1:])}."


def write_page(title: str, claim: str, *parts: str) -> str:
    return "\n\n".join((f"# {title}", MADE, claim, *(part.strip("\n") for part in parts))) + "\n"


def write_config_keys() -> str:
    """Every key of a run config, with its flag, kind, default and meaning."""
    defaults = {field.encode_name: field.default for field in msgspec.structs.fields(Plan)}
    choices = list_choices()

    def write_row(name: str, key: Key) -> tuple[str, ...]:
        default = defaults.get(name)
        shown = code(str(default).lower() if isinstance(default, bool) else str(default)) if _is_told(default) else ""
        values = f"{KINDS[key.kind]}: {code(*sorted(choices[name]))}" if name in choices else KINDS[key.kind]
        return (code(name), code(f"--{name}", key.short), values, shown, escape(key.help))

    known = [write_row(name, key) for name, key in KEYS.items() if not key.ignored]
    ignored = [(code(name), key.ignored) for name, key in KEYS.items() if key.ignored]
    return write_page(
        "Run config: every key",
        "A run config is a YAML file of these keys; each is also a flag of `evalcore run`, and flags win over the file. "
        "[Run](../run.md) has an example.",
        write_table(("key", "flag", "value", "default", "meaning"), known),
        "## Accepted and ignored",
        "lm-eval's configs may have these; they change nothing here.",
        write_table(("key", "instead"), ignored),
    )


def _is_told(default: object) -> bool:
    return isinstance(default, str | bool | int | float) and default != ""


def write_task_keys() -> str:
    """Every key of a task file and of a group."""
    parts: list[tuple[str, Mapping[str, str]]] = [
        ("Task", TASK_KEYS),
        ("An entry of `metric_list`", METRIC_LIST_KEYS),
        ("Group", GROUP_FILE_KEYS),
        ("An entry of `aggregate_metric_list`", AVERAGE_KEYS),
    ]
    return write_page(
        "Task files: every key",
        "A task file is a YAML file of these keys, lm-eval's own unless it says otherwise. [Task files](../tasks.md) says "
        "how they are found, included and checked; [your first task](../tutorial/first-task.md) has a whole one.",
        *(
            f"## {title}\n\n" + write_table(("key", "meaning"), ((code(key), text) for key, text in keys.items()))
            for title, keys in parts
        ),
    )


def list_arguments(name: str) -> Iterator[tuple[str, str]]:
    """Every argument and flag of a command, as its parser has them."""
    parser: argparse.ArgumentParser = import_module(f"evalcore.shell.cli.{COMMANDS[name].room}.{name}").build_parser()
    for action in parser._actions:  # argparse has no public list of them
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction):
            continue
        choices = f": {code(*map(str, action.choices))}" if action.choices is not None else ""
        hyphens = {
            one
            for one in action.option_strings
            if f"--{one[2:].replace('-', '_')}" in action.option_strings and "-" in one[2:]
        }
        spellings = [one for one in action.option_strings if one not in hyphens]
        spelt = code(*spellings) if spellings else code(str(action.metavar or action.dest))
        yield spelt, escape((action.help or "").replace("%%", "%")) + choices


def write_commands() -> str:
    """Every command with its flags, and every exit code."""
    keys = {f"`--{name}`" for name in KEYS}
    parts = []
    for name, command in COMMANDS.items():
        rows = [row for row in list_arguments(name) if name != "run" or row[0].split(",")[0] not in keys]
        more = "\n\nEvery key of a [run config](run-config.md) is a flag, too." if name == "run" else ""
        parts.append(f"## `{name}`\n\n{tell(command.summary)}{more}\n\n" + write_table(("argument", "meaning"), rows))
    return write_page(
        "Commands: every flag and exit code",
        "`evalcore COMMAND --help` shows the same, with examples.",
        *parts,
        "## Exit codes",
        write_table(("exit code", "meaning"), ((str(int(one)), text) for one, text in MEANINGS.items())),
    )


def write_models() -> str:
    """Every model backend with its arguments."""
    return write_page(
        "Models: every argument",
        "These are the backends of `model`, each with its `model_args`; `evalcore models NAME` prints the same. "
        "[Models](../models.md) says more.",
        *(
            f"## `{name}`\n\n{tell(backend.summary)}\n\n"
            + write_table(("argument", "meaning"), ((code(key), escape(text)) for key, text in backend.arguments))
            for name, backend in list_backends().items()
        ),
    )


def write_bounds(metric: Metric[object]) -> str:
    low, high = ("−∞" if end == -inf else "∞" if end == inf else f"{end:g}" for end in metric.bounds)
    return f"{low} to {high}"


def write_metrics() -> str:
    """Every metric with its formula and source."""
    parts = []
    for kind, table in METRICS.items():
        rows = [
            (
                code(name),
                FORMULAS[kind, name][0],
                write_bounds(entry),
                {True: "higher", False: "lower", None: "-"}[entry.higher_is_better],
                ", ".join(f"`{key}` ({value})" for key, value in sorted(entry.defaults.items())),
                FORMULAS[kind, name][1],
            )
            for name, entry in sorted(table.items())
        ]
        parts.append(
            (
                str(kind),
                f"## `{kind}`\n\n" + write_table(("metric", "formula", "bounds", "better", "defaults", "source"), rows),
            )
        )
    return write_page(
        "Metrics: formula and source",
        "In the formulas l is a log-likelihood, c a choice, g the right one, x a reply, y a gold text, n the number of "
        "documents. Bounds are those of one document's score. Of several golds the best counts. The "
        "[catalogue](../catalogue.md) has options, aggregations and the other tables; `tests/agreement` holds each number "
        "against its source.",
        *(text for _, text in sorted(parts)),
    )


def list_names(home: str) -> list[str]:
    """The public names of a module."""
    module = import_module(home)
    names = {*module.__all__, *(COMMAND_NAMES if home == "evalcore" else ())}
    return sorted(name for name in names if not name.startswith("_"))


def write_docstrings(home: str) -> str:
    """The public names of a module: what the site shows under each is made of its docstring when it is built."""
    members = ", ".join(list_names(home))
    return write_page(
        home,
        f"Every public name of `{home}` with its signature and docstring, on the site. [Public names](../api.md) lists all "
        "with a line each.",
        f"::: {home}\n    options:\n      members: [{members}]",
    )


PAGES = {
    **{f"{home}.md": partial(write_docstrings, home) for home in HOMES},
    "run-config.md": write_config_keys,
    "commands.md": write_commands,
    "task-files.md": write_task_keys,
    "models.md": write_models,
    "metrics.md": write_metrics,
}
"""A page of docs/reference and what writes it."""
