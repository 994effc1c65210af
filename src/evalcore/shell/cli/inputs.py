"""Flags that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import NoReturn

from evalcore.shell.safety.exit_codes import SHORT


class Parser(argparse.ArgumentParser):
    """A parser whose errors say nothing secret of what was typed."""

    def error(self, message: str) -> NoReturn:
        from evalcore.shell.files.address import hide_addresses
        from evalcore.shell.safety.credentials import hide_credentials

        super().error(hide_credentials(hide_addresses(message)))

    def parse_args(self, args: Sequence[str], namespace: argparse.Namespace | None = None) -> argparse.Namespace:  # type: ignore[override]
        """What was typed; of a flag that is not known, the nearest that is."""
        found, rest = self.parse_known_args(args, namespace)
        if rest:
            self.refuse(rest)
        return found

    def refuse(self, rest: Sequence[str]) -> NoReturn:
        from evalcore.core.records.errors import unknown

        told = (action for action in self._actions if action.help != argparse.SUPPRESS)
        known = [next(filter(is_long, action.option_strings), "") for action in told]
        for typed in filter(is_long, rest):
            raise unknown("flag", typed.partition("=")[0], list(filter(None, known)))
        self.error(f"unrecognized arguments: {' '.join(rest)}")


def is_long(typed: str) -> bool:
    """Whether this is a flag in full.

    >>> is_long("--json"), is_long("-o"), is_long("--")
    (True, False, False)
    """
    return typed.startswith("--") and len(typed) > 2


def new_parser(command: str, what: str, examples: str, usage: str | None = None) -> argparse.ArgumentParser:
    """A parser whose help says what a command does and shows examples."""
    kept = argparse.RawDescriptionHelpFormatter  # lines of examples as they are
    epilog = f"{examples}{OTHER_EXITS}"
    return Parser(f"evalcore {command}", usage=usage, description=what, epilog=epilog, formatter_class=kept)


OTHER_EXITS = f"other exit codes: {', '.join(f'{one.value} {SHORT[one]}' for one in SHORT)}\n"
"""At the end of every command's help; what 0, 1 and 2 mean, a command says itself."""


def add_choice(parser: argparse.ArgumentParser, what: str = "") -> None:
    """Flags that choose numbers."""
    tasks = f"only these tasks and groups, by name or alias{what}"
    parser.add_argument("--task", action="append", default=[], metavar="GLOB,GLOB", help=tasks)
    parser.add_argument(
        "--metric", action="append", default=[], metavar="NAME", help=f"only these: acc, or acc,none{what}"
    )


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Flags for what no log says: what belongs together, what is the same, what is known of a metric."""
    parser.add_argument("--cluster", metavar="FIELD", help="documents with the same value there count together")
    parser.add_argument(
        "--match", metavar="FIELD,FIELD", help="documents are the same if these fields are (id, prompt or content)"
    )
    add_match_filter(parser)
    parser.add_argument(
        "--rules-may-differ",
        "--rules_may_differ",
        action="store_true",
        help="other filters or metric options are a note",
    )
    add_reducer(parser)
    add_declarations(parser)


def add_reducer(parser: argparse.ArgumentParser) -> None:
    """A flag for what makes one score of several."""
    parser.add_argument(
        "--reducer", action="append", default=[], metavar="NAME", help="of several scores a document: mean, pass@5"
    )


def add_declarations(parser: argparse._ActionsContainer) -> None:
    """Flags for what is known of a metric; in a parser or a group of flags."""
    for way, what in (("higher", "more"), ("lower", "less")):
        parser.add_argument(
            f"--{way}_is_better", action="append", default=[], metavar="METRIC", help=f"{what} of it is better"
        )
    parser.add_argument(
        "--bounds",
        action="append",
        default=[],
        metavar="METRIC=LOW,HIGH",
        help="between what its scores lie: loss=0,inf",
    )


def add_match_filter(parser: argparse.ArgumentParser) -> None:
    """The flag that maps names of filters."""
    parser.add_argument(
        "--match-filter",
        "--match_filter",
        action="append",
        default=[],
        metavar="A=B",
        help="the first run's filter A is compared with the second's B",
    )


def add_resampling(parser: argparse.ArgumentParser) -> None:
    """Flags of tests that draw."""
    parser.add_argument(
        "--draws",
        type=int,
        default=10_000,
        metavar="N",
        help="random swaps for tests of corpus metrics, F1 and MCC (10000)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random swaps (0)")


def add_forms(parser: argparse._ActionsContainer, **forms: str) -> None:
    """A flag for every form of output besides the usual one, with what it prints; in a parser or a group of flags."""
    parser.set_defaults(form="table")
    group = parser.add_mutually_exclusive_group()
    for name, what in forms.items():
        group.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=f"print {what}")


def add_output(
    parser: argparse._ActionsContainer, what: str, *, metavar: str = "FOLDER", dest: str = "output_path"
) -> None:
    """The flag for what is written, under one name in every command; in a parser or a group of flags."""
    parser.add_argument("-o", "--output", "--output_path", "--output-path", dest=dest, metavar=metavar, help=what)


def add_engine(parser: argparse._ActionsContainer) -> None:
    """Flags for who does the work; in a parser or a group of flags."""
    parser.add_argument("--engine", metavar="NAME", help="serial, processes (the choice for large logs) or ray")
    parser.add_argument("--unit", type=int, metavar="BYTES", help="about how much each unit of work reads (32 MB)")
    parser.add_argument("--workers", type=int, metavar="N", help="how many processes (all cores)")
    parser.add_argument("--address", metavar="HOST:PORT", help="of a Ray cluster (one that runs here, else a new one)")


def add_timeout(parser: argparse.ArgumentParser) -> None:
    """The flag for how long a document may take."""
    parser.add_argument(
        "--doc_timeout",
        "--doc-timeout",
        type=_read_seconds,
        default=60.0,
        metavar="S",
        help="seconds that tracing a document may take (60; 0: no limit)",
    )


def _read_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:
        raise argparse.ArgumentTypeError(f"expected below 1e9 seconds, or 0 for no limit, got {text!r}")
    return seconds


COLUMNS = {
    "answer": "the model's answer, or a list of repeated ones",
    "gold": "the right answer, or a list of right ones, or the number of the right choice",
    "id": "what a document is called",
    "choices": "the list of choices",
    "loglikelihoods": "the list of log-likelihoods, one for each choice",
    "repeat": "the number of the repeat, where each has its own row (needs --id)",
    "prompt": "what the model was asked",
    "error": "why there is no answer; empty where there is one",
    "task_column": "the task, where a file holds several",
}


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Flags for what the columns of plain tables hold."""
    tables = parser.add_argument_group("columns of plain tables (JSONL, CSV, Parquet), as in score")
    for name, what in {**COLUMNS, "score": "a score that was given already"}.items():
        tables.add_argument(f"--{name}", metavar="COLUMN", help=what)


def spell_reading(keys: Mapping[str, object]) -> list[str]:
    """Spell the flags by which another command reads the same runs in the same way.

    >>> spell_reading({"score": "em", "bounds": ["em=0,1"], "rules_may_differ": True, "cluster": None, "flips": 3})
    ['--rules_may_differ', '--bounds', 'em=0,1', '--score', 'em']
    """
    parser = argparse.ArgumentParser(add_help=False)
    add_reading(parser)
    add_columns(parser)
    words: list[str] = []
    for key, default in vars(parser.parse_args([])).items():
        given = keys.get(key, default)
        if given != default:
            values = given if isinstance(given, list) else [given]
            words += [word for value in values for word in (f"--{key}", *([] if value is True else [str(value)]))]
    return words
