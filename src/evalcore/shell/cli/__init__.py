"""The command line: a command, its flags, an exit code. Each command is imported only when it is typed.

flags          the flags of run and score: the keys of a run config
inputs         flags that other commands share
suggestions    what can be typed after each command
shell_scripts  completion as each shell wants it written
setup/         what is there before a run: init, tasks, models, completion
numbers/       what makes numbers: run, score, merge
look/          show, report, view, explain, diff
judge/         compare, power, check
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

from evalcore.shell.safety.exit_codes import Exit, Signalled, find_exit
from evalcore.shell.safety.signals import hear_signals
from evalcore.shell.safety.streams import Streams

__all__ = ["COMMANDS", "main"]


class Command(NamedTuple):
    """What a command does, the room of its file, and what to say where it breaks."""

    summary: str
    room: str
    kept: str = ""
    again: str = ""


COMMANDS = {
    "run": Command(
        "ask a model, score its answers, write results and a table",
        "numbers",
        kept="what was answered is in the answer log; ",
        again="; the same command goes on from what was answered",
    ),
    "init": Command("make a task and a config from a file of questions (CSV, JSONL), and try them", "setup"),
    "tasks": Command("list, search, show, check and begin task files", "setup"),
    "score": Command("score recorded answers again, of any harness, by old or new rules", "numbers"),
    "merge": Command("partial scores, of any machine and in any order, closed into a run", "numbers"),
    "show": Command("the tables of finished runs again, from their results", "look"),
    "explain": Command("one document: prompt, answer, filters, score, its part in every number", "look"),
    "diff": Command("which verdicts changed between two scorings of the same answers, and why", "look"),
    "compare": Command("two or more runs, document by document: differences, tests, what flipped", "judge"),
    "report": Command("one or more runs as a page for a browser: numbers, intervals, differences, samples", "look"),
    "view": Command("all runs of a folder in a browser, those that go on included", "look"),
    "power": Command("how many documents and repeats a difference takes, from a run's own spread", "judge"),
    "check": Command("a gate for CI: fails on evidence of regression, not on noise", "judge"),
    "models": Command("list the model backends and their arguments", "setup"),
    "completion": Command("a script by which bash, zsh or fish completes what is typed", "setup"),
}
"""Each is the ``main`` of the file of its name, in its room."""

THEIRS = {"ls": "tasks", "validate": "tasks check NAME"}
"""Commands of lm-eval that have other names here."""

RARELY = 50_000
"""After how many new objects a process of ours looks for garbage; Python's own 700 are a tenth of a short command."""

USAGE = """usage: evalcore COMMAND ...   (or: python -m evalcore COMMAND ...)

{commands}

example: evalcore run config.yaml
         evalcore run --model local-completions --model_args model=m,base_url=http://localhost:8000/v1 --tasks gsm8k
`evalcore COMMAND --help` says more.
"""


def write_usage() -> str:
    """One line for each command.

    >>> print(write_usage().splitlines()[2])
      run        ask a model, score its answers, write results and a table
    """
    return USAGE.format(commands="\n".join(f"  {name:10} {command.summary}" for name, command in COMMANDS.items()))


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; every error is one message and an exit code.

    Without ``argv`` this is the program: its streams may be closed, broken or full, and signals stop it.
    """
    if argv is not None:
        return run_typed(list(argv))
    streams = Streams()
    hear_signals()
    gc.set_threshold(RARELY)
    try:
        code = run_typed(sys.argv[1:])
    except SystemExit as left:  # argparse, after --help or a flag that it does not know
        code = left.code if isinstance(left.code, int) else Exit.DONE
    except KeyboardInterrupt as stopped:  # once more, while the first was reported
        code = find_exit(stopped)
    gc.freeze()  # the process ends: what it holds is not searched once more
    return streams.settle(code)


def run_typed(given: list[str]) -> int:
    """Run what was typed after the program's name."""
    if not given or given[0] in ("-h", "--help", "help"):
        sys.stdout.write(write_usage())
        return Exit.DONE if given else Exit.BAD_INPUT
    if given[0] in ("--version", "-V"):
        from importlib.metadata import version

        sys.stdout.write(f"evalcore {version('evalcore')}\n")
        return Exit.DONE
    if given[0].startswith("-"):  # lm-eval's older form: flags without a command mean run
        given.insert(0, "run")
    if given[0] not in COMMANDS:
        from evalcore.core.records.errors import unknown

        hint = f"; lm-eval's {given[0]} is `evalcore {THEIRS[given[0]]}`" if given[0] in THEIRS else ""
        return fail(f"{unknown('command', given[0], COMMANDS)}{hint}", Exit.BAD_INPUT)
    return run_guarded(given[0], given[1:])


def find_main(name: str) -> Callable[[Sequence[str]], int]:
    """The function that a command is; its file also has ``build_parser``."""
    found: Callable[[Sequence[str]], int] = import_module(f"{__name__}.{COMMANDS[name].room}.{name}").main
    return found


def run_guarded(name: str, argv: Sequence[str]) -> int:
    """Run a command; what it raises becomes a message."""
    from evalcore.core.records.errors import EvalError

    keep_secrets(argv)
    try:
        return find_main(name)(argv)
    except EvalError as wrong:
        return fail(str(wrong), find_exit(wrong))
    except KeyboardInterrupt as stopped:
        again = COMMANDS[name].again if isinstance(stopped, Signalled) else ""  # others say themselves how to go on
        return fail(f"{str(stopped) or 'interrupted'}{again}", find_exit(stopped))
    except OSError as wrong:
        return fail(f"{wrong.strerror or wrong}: {wrong.filename}" if wrong.filename else str(wrong), find_exit(wrong))
    except Exception as wrong:
        if os.environ.get("EVALCORE_TRACEBACK"):
            from traceback import format_exc

            return fail(format_exc(), find_exit(wrong))
        hint = f"{COMMANDS[name].kept}EVALCORE_TRACEBACK=1 shows where this is from"
        return fail(f"unexpected {type(wrong).__name__}: {wrong} ({hint})", find_exit(wrong))


def keep_secrets(argv: Sequence[str]) -> None:
    """Leave no core dump, which would hold keys, and show no secret that was typed; warn of it, for others show it."""
    from contextlib import suppress

    from evalcore.shell.safety.credentials import is_real, note_credentials
    from evalcore.shell.safety.secrets import find_secrets

    with suppress(ImportError, OSError, ValueError):  # Windows has no such limit
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    typed = list(filter(is_real, find_secrets(list(argv))))
    note_credentials(typed)
    if typed:
        tell(f"warning: {TYPED}")


TYPED = (
    "a secret was typed on the command line, where `ps` shows it and the shell's history keeps it; put it into an "
    "environment variable (OPENAI_API_KEY, or the one that model_args api_key_env names)"
)


def fail(message: str, code: int) -> int:
    tell(f"evalcore: {message}")
    return code


def tell(message: str) -> None:
    """Write a message to stderr, without anything secret or that a terminal obeys."""
    from evalcore.shell.files.address import hide_addresses
    from evalcore.shell.safety.credentials import hide_credentials
    from evalcore.shell.safety.safe_text import visible

    shown = hide_credentials(hide_addresses(message))
    sys.stderr.write("\n".join(map(visible, shown.split("\n"))) + "\n")
