"""The command line: a command, its flags, an exit code. Each command is imported only when it is typed.

flags    the flags of run and score: the keys of a run config
inputs   flags that other commands share
run      ask a model, score, write
tasks    task files
score    recorded answers scored again
merge    partial scores of any machine closed into a run
explain  one document
diff     two scorings of the same answers
compare  two or more runs
power    how many documents a difference takes
check    a gate for CI
models   model backends
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

__all__ = ["COMMANDS", "main"]


class Command(NamedTuple):
    """What a command does, and what to say where it breaks."""

    summary: str
    kept: str = ""


COMMANDS = {
    "run": Command(
        "ask a model, score its answers, write results and a table", "what was answered is in the answer log; "
    ),
    "tasks": Command("list, search, show and check task files"),
    "score": Command("score recorded answers again, of any harness, by old or new rules"),
    "merge": Command("partial scores, of any machine and in any order, closed into a run"),
    "explain": Command("one document: prompt, answer, filters, score, its part in every number"),
    "diff": Command("which verdicts changed between two scorings of the same answers, and why"),
    "compare": Command("two or more runs, document by document: differences, tests, what flipped"),
    "power": Command("how many documents and repeats a difference takes, from a run's own spread"),
    "check": Command("a gate for CI: fails on evidence of regression, not on noise"),
    "models": Command("list the model backends and their arguments"),
}
"""Each is the ``main`` of the file of its name."""

DONE, SOME_FAILED, BAD_INPUT, SERVER_GONE, INTERRUPTED = 0, 1, 2, 69, 130
"""69 is EX_UNAVAILABLE of sysexits.h."""

USAGE = """usage: evalcore COMMAND ...   (or: python -m evalcore COMMAND ...)

{commands}

example: evalcore run config.yaml
         evalcore run --model local-completions --model_args model=m,base_url=http://localhost:8000/v1 --tasks gsm8k
`evalcore COMMAND --help` says more.
"""


def write_usage() -> str:
    """One line for each command.

    >>> print(write_usage().splitlines()[2])
      run      ask a model, score its answers, write results and a table
    """
    return USAGE.format(commands="\n".join(f"  {name:8} {command.summary}" for name, command in COMMANDS.items()))


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; every error is one message and an exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if not given or given[0] in ("-h", "--help", "help"):
        sys.stdout.write(write_usage())
        return DONE if given else BAD_INPUT
    if given[0] in ("--version", "-V"):
        from importlib.metadata import version

        sys.stdout.write(f"evalcore {version('evalcore')}\n")
        return DONE
    if given[0].startswith("-"):  # lm-eval's older form: flags without a command mean run
        given.insert(0, "run")
    if given[0] not in COMMANDS:
        from evalcore.core.records.errors import unknown

        return fail(str(unknown("command", given[0], COMMANDS)), BAD_INPUT)
    return run_guarded(given[0], given[1:])


def run_guarded(name: str, argv: Sequence[str]) -> int:
    """Run a command; what it raises becomes a message."""
    from evalcore.core.records.errors import EvalError

    try:
        return int(import_module(f"{__name__}.{name}").main(argv))
    except EvalError as wrong:
        from evalcore.shell.models.model import ServerGone

        return fail(str(wrong), SERVER_GONE if isinstance(wrong, ServerGone) else BAD_INPUT)
    except KeyboardInterrupt as stopped:
        return fail(str(stopped) or "interrupted; the same command goes on from what was answered", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output is gone
        sys.stderr.close()
        return DONE
    except OSError as wrong:
        return fail(f"{wrong.strerror or wrong}: {wrong.filename}" if wrong.filename else str(wrong), BAD_INPUT)
    except Exception as wrong:
        if os.environ.get("EVALCORE_TRACEBACK"):
            raise
        hint = f"{COMMANDS[name].kept}EVALCORE_TRACEBACK=1 shows where this is from"
        return fail(f"unexpected {type(wrong).__name__}: {wrong} ({hint})", BAD_INPUT)


def fail(message: str, code: int) -> int:
    from evalcore.shell.files.address import hide_addresses
    from evalcore.shell.safety.safe_text import visible

    sys.stderr.write("evalcore: " + "\n".join(map(visible, hide_addresses(message).split("\n"))) + "\n")
    return code
