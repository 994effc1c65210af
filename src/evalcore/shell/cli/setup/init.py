"""``evalcore init``: a file of questions becomes a task and a config that run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING, Any

from evalcore.core.records.errors import EvalError
from evalcore.shell.cli.inputs import add_output, new_parser
from evalcore.shell.safety.exit_codes import Exit
from evalcore.shell.safety.safe_text import shorten, visible

if TYPE_CHECKING:
    from evalcore.shell.starter.guess import Guess
    from evalcore.shell.starter.task_folder import TaskFolder

EXAMPLES = """examples:
  evalcore init questions.csv                          look, ask, write, try
  evalcore init questions.jsonl --yes                  take every guess
  evalcore init quiz.csv --question text --answer key --choices A,B,C,D --name quiz -o tasks/quiz

Nothing is sent anywhere: the task is tried with the model `dummy`, which answers out of thin air.
exit codes: 0 done, 2 bad input
"""
ROLES = {
    "question": "column with the question, or with the texts where there are no answers",
    "answer": 'column with the right answer ("" if there is none)',
    "choices": "column with the list of choices, or their columns: A,B,C,D",
    "id": "column that names each row",
    "group_by": "column with the subject or category",
}
ASKED = ("question", "answer", "choices", "output_type", "name")
"""What is asked where a guess was not right; flags change the rest."""

MOST_LINES = 16
"""Lines of a prompt that are shown."""

TRIED = 100
"""Documents on which the task is tried."""


def build_parser() -> argparse.ArgumentParser:
    out = new_parser("init", "Make a task and a run config from a file of questions, and try them.", EXAMPLES)
    out.add_argument("file", nargs="?", help="JSONL, JSON, CSV, TSV, Parquet, or a text file (a text a line)")
    for role, what in ROLES.items():
        flags = dict.fromkeys((f"--{role}", f"--{role.replace('_', '-')}"))
        out.add_argument(*flags, metavar="COLUMN", help=what)
    out.add_argument("--output_type", "--output-type", metavar="TYPE", help="generate_until, multiple_choice, ...")
    out.add_argument("--name", help="of the task (the file's)")
    add_output(out, "folder of the files (the task's name)")
    out.add_argument("--yes", "-y", action="store_true", help="ask nothing: take flags and guesses")
    out.add_argument("--no_run", "--no-run", action="store_true", help="do not try the task")
    out.add_argument("--overwrite", action="store_true", help="replace files that are there")
    return out


def main(argv: Sequence[str]) -> int:
    """Look, show, ask, write, try, and say what to type next."""
    given = build_parser().parse_args(argv)
    from evalcore.shell.starter.guess import look_at_file
    from evalcore.shell.starter.task_folder import write_guess

    asking = not given.yes and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    with _stop_saying("stopped; nothing was written"):
        file = given.file or (_ask("File of questions (JSONL, JSON, CSV, TSV)", "") if asking else "")
    if not file:
        raise EvalError("expected a file of questions: evalcore init questions.csv")
    said: dict[str, Any] = {key: getattr(given, key) for key in (*ROLES, "output_type", "name")}
    said["choices"] = given.choices.split(",") if given.choices is not None else ()
    guess = look_at_file(file, **said)
    _say(describe_guess(guess))
    if asking:
        with _stop_saying("stopped; nothing was written"):
            guess = _settle(file, said, guess)
    elif not given.yes:
        _say("Not a terminal, so nothing is asked: these are flags and guesses.")
    written = write_guess(guess, given.output_path, overwrite=given.overwrite)
    _say("Written: " + ", ".join(map(str, written.files)))
    if not given.no_run:
        with _stop_saying(f"stopped; the files are written: evalcore run {quote(str(written.config))}"):
            _try(guess, written)
    _say(_tell_next(guess, written))
    return Exit.DONE


@contextmanager
def _stop_saying(what: str) -> Iterator[None]:
    """Say what is there already where a signal or the end of the input stops the block."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt(what) from stopped


def _settle(file: str, said: Mapping[str, Any], guess: Guess) -> Guess:
    """Ask until the guess is right."""
    from evalcore.shell.starter.guess import look_at_file

    while not _agrees("Is this right? [Y/n] "):
        while True:
            new = {**said, **_ask_each(guess)}
            try:
                guess = look_at_file(file, **new)
            except EvalError as wrong:
                _say(f"That does not work: {wrong}\n")
            else:
                break
        said = new
        _say("\n" + describe_guess(guess))
    return guess


def describe_guess(guess: Guess) -> str:
    """What was found, and why, in words."""
    from evalcore.shell.starter.shapes import SHAPES

    rows = [(f"{role}:", ", ".join(map(repr, one.columns)) or "none", one.why) for role, one in _list_roles(guess)]
    rows.append(("kind:", guess.output_type, f"{guess.why}; {SHAPES[guess.shape].remark}"))
    rows.append(("name:", guess.name, ""))
    width = max(len(value) for _, value, _ in rows)
    lines = [f"  {what:10} {value:{min(width, 40)}}  {why}".rstrip() for what, value, why in rows]
    choices = "".join(f"\n    {one}" for one in _cut_lines(guess.preview.choices))
    asked = guess.preview.prompt.split("\n")
    cut = asked if len(asked) <= MOST_LINES else [*asked[: MOST_LINES - 2], "...", asked[-1]]
    shown = "".join(f"\n  | {shorten(line, 200)}" for line in cut)
    prompt = f"The first row as a prompt:{shown}\n" if guess.preview.prompt else "The first row as a text:\n"
    right = f"  right answer: {_cut(guess.preview.gold)}" if guess.preview.prompt else f"  | {_cut(guess.preview.gold)}"
    notes = "".join(f"\n  - {note}" for note in guess.notes)
    return (
        f"{guess.path}: {guess.rows:,} row{'s' * (guess.rows != 1)}. This looks like:\n"
        + "\n".join(lines)
        + f"\n\n{prompt}{right}"
        + (f"\n  choices:{choices}" if choices else "")
        + (f"\n\nTo know:{notes}" if notes else "")
        + "\n"
    )


def _list_roles(guess: Guess) -> list[tuple[str, Any]]:
    found = [(role, getattr(guess.columns, role)) for role in ROLES]
    return [(role, one) for role, one in found if one.columns or role in ("question", "answer")]


def _cut(text: str) -> str:
    return shorten(text.replace("\n", " ↵ "), 200)


def _cut_lines(texts: Sequence[str]) -> list[str]:
    return [_cut(one) for one in texts[:10]]


def _ask_each(guess: Guess) -> dict[str, Any]:
    """Ask for each part, with the guess as what Enter takes."""
    _say("Enter keeps what is in brackets; - stands for none.")
    now = {role: ",".join(getattr(guess.columns, role).columns) for role in ROLES}
    now |= {"output_type": guess.output_type, "name": guess.name}
    _say("  columns: " + ", ".join(guess.names))
    out: dict[str, Any] = {}
    for key in ASKED:
        typed = _ask(f"  {WORDED[key]}", now[key])
        if typed != now[key]:
            out[key] = "" if typed == "-" else typed
    if "choices" in out:
        out["choices"] = out["choices"].split(",")
    return out


WORDED: Mapping[str, str] = {
    "question": "column of the question",
    "answer": "column of the right answer",
    "choices": "column(s) of the choices",
    "output_type": "generate_until, multiple_choice, loglikelihood or loglikelihood_rolling",
    "name": "name of the task",
}


def _ask(what: str, default: str) -> str:
    sys.stdout.write(visible(f"{what} [{default or 'none'}]: "))
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    return line.strip() or default


YES_OR_NO: Mapping[str, bool] = {"": True, "y": True, "yes": True, "n": False, "no": False}


def _agrees(what: str) -> bool:
    """Ask until it is yes or no."""
    while True:
        sys.stdout.write(what)
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            raise KeyboardInterrupt
        if (said := line.strip().lower()) in YES_OR_NO:
            return YES_OR_NO[said]
        _say("Enter or y takes it, n changes parts of it, Ctrl-C stops.")


def _say(text: str) -> None:
    sys.stdout.write("\n".join(map(visible, text.split("\n"))) + "\n")


def _try(guess: Guess, written: TaskFolder) -> None:
    """Run the task with the dummy model, and show its table."""
    from evalcore.shell.output.terminal.progress import progress
    from evalcore.shell.output.terminal.show import show
    from evalcore.shell.run.run import run

    _say("\nTrying it with the model dummy, which knows nothing:\n")
    limit = TRIED if guess.rows > TRIED else None
    try:
        with progress() as shown:
            result = run(written.config, overwrite=True, shown=shown, limit=limit)
    except EvalError as wrong:
        raise EvalError(f"the files are written, but the task did not run: {wrong}") from wrong
    show(result.shown())


def _tell_next(guess: Guess, written: TaskFolder) -> str:
    group = guess.columns.group_by.one
    runs = f"runs/{guess.name}-my-model"
    lines = [
        "\nNext:",
        f"  edit {written.task}: prompt, filters, metrics (every key is explained there), then",
        f"  evalcore run {quote(str(written.config))}",
        "and with a model of yours:",
        *(f"  {line}" for line in written.command.split("\n")),
        f"  evalcore report {runs}",
    ]
    lines += [f"  evalcore score {runs} --group_by {guess.names[group]}"] if group else []
    return "\n".join(lines)
