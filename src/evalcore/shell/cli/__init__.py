"""The command line: a verb, its flags, an exit code. Each verb is imported only when it is typed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

__all__ = ["VERBS", "main"]

VERBS = {
    "run": ("evalcore.shell.cli.run", "ask a model, score its answers, write results and a table"),
    "tasks": ("evalcore.shell.cli.tasks", "list, search, show and check task files"),
    "score": ("evalcore.shell.cli.score", "score recorded answers again, of any harness, by old or new rules"),
    "explain": ("evalcore.shell.cli.explain", "one document: prompt, answer, filters, score, its part in every number"),
    "diff": ("evalcore.shell.cli.diff", "which verdicts changed between two scorings of the same answers, and why"),
    "compare": (
        "evalcore.shell.cli.compare",
        "two or more runs, document by document: differences, tests, what flipped",
    ),
    "power": ("evalcore.shell.cli.power", "how many documents and repeats a difference takes, from a run's own spread"),
    "check": ("evalcore.shell.cli.check", "a gate for CI: fails on evidence of regression, not on noise"),
    "models": ("evalcore.shell.cli.models", "list the model backends and their arguments"),
}

DONE, SOME_FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

USAGE = """usage: evalcore VERB ...   (or: python -m evalcore VERB ...)

{verbs}

example: evalcore run config.yaml
         evalcore run --model local-completions --model_args model=m,base_url=http://localhost:8000/v1 --tasks gsm8k
`evalcore VERB --help` says more.
"""


def usage() -> str:
    """One line for each verb.

    >>> print(usage().splitlines()[2])
      run      ask a model, score its answers, write results and a table
    """
    return USAGE.format(verbs="\n".join(f"  {verb:8} {what}" for verb, (_, what) in VERBS.items()))


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb; every error is one message and an exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if not given or given[0] in ("-h", "--help", "help"):
        sys.stdout.write(usage())
        return DONE if given else BAD_INPUT
    if given[0] in ("--version", "-V"):
        from importlib.metadata import version

        sys.stdout.write(f"evalcore {version('evalcore')}\n")
        return DONE
    if given[0].startswith("-"):  # lm-eval's older form: flags without a verb mean run
        given.insert(0, "run")
    if given[0] not in VERBS:
        from evalcore.core.records.errors import unknown

        return fail(str(unknown("verb", given[0], VERBS)), BAD_INPUT)
    return guarded(given[0], given[1:])


def guarded(verb: str, argv: Sequence[str]) -> int:
    """What a verb raises, as a message."""
    from evalcore.core.records.errors import EvalError

    try:
        return int(import_module(VERBS[verb][0]).main(argv))
    except EvalError as wrong:
        return fail(str(wrong), BAD_INPUT)
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
        told = "what was answered is in the answer log; " if verb == "run" else ""
        told += "EVALCORE_TRACEBACK=1 shows where this is from"
        return fail(f"unexpected {type(wrong).__name__}: {wrong} ({told})", BAD_INPUT)


def fail(message: str, code: int) -> int:
    from evalcore.shell.output.terminal.safe_text import visible

    sys.stderr.write("evalcore: " + "\n".join(map(visible, message.split("\n"))) + "\n")
    return code
