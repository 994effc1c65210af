"""``evalcore tasks``: what can be run, what a name stands for, what is wrong with task files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from evalcore.core.records.errors import EvalError, unknown
from evalcore.shell.cli.inputs import add_output, new_parser
from evalcore.shell.safety.exit_codes import Exit
from evalcore.shell.safety.safe_text import visible
from evalcore.shell.tasks.library.cache import open_library
from evalcore.shell.tasks.library.index import TaskIndex

EXAMPLES = """examples:
  evalcore tasks                                  every name
  evalcore tasks search arc                       names with arc in them
  evalcore tasks show gsm8k                       the config of a task, its includes merged; the tree of a group
  evalcore tasks check my_group --include-path .  problems of task files, each with file and line (errors: exit code 1)
  evalcore tasks trust gsm8k                      what a name needs before it runs: code to trust, files to read
  evalcore tasks --include-path tasks --json      every name, resolved, as JSON
  evalcore tasks new quiz --output_type multiple_choice   a commented task file to begin with, and two documents
"""


def build_parser() -> argparse.ArgumentParser:
    out = new_parser(
        "tasks",
        "List, search, show and check task files. The tasks of an installed lm-eval are known.",
        EXAMPLES,
        usage="evalcore tasks [list | search TEXT | show NAME ... | check [NAME ...] | trust [NAME ...]]\n"
        "                      [--include-path FOLDER] [--json]\n"
        "       evalcore tasks new NAME --output_type TYPE [-o FOLDER] [--overwrite]",
    )
    out.add_argument(
        "what", nargs="*", help="list (default), search TEXT, show NAME, check [NAME], trust [NAME], new NAME"
    )
    out.add_argument(
        "--include-path",
        "--include_path",
        nargs="+",
        action="extend",
        default=[],
        metavar="FOLDER",
        help="folders of task files, whose names come before those of lm-eval",
    )
    out.add_argument("--kind", choices=("task", "py_task", "group", "tag"), help="names of this kind only")
    out.add_argument("--json", action="store_true", help="as JSON; the list with every config resolved")
    new = out.add_argument_group("new")
    new.add_argument(
        "--output_type", "--output-type", default="generate_until", metavar="TYPE", help="what it measures"
    )
    add_output(new, "where it is written (a folder of its name)")
    new.add_argument("--overwrite", action="store_true", help="replace files that are there")
    return out


def main(argv: Sequence[str]) -> int:
    """Do what is asked with the index of all folders."""
    given = build_parser().parse_args(argv)
    if given.what and given.what[0] in MAKERS:
        return MAKERS[given.what[0]](given.what[1:], given)
    action, *names = given.what if given.what and given.what[0] in ACTIONS else ["search", *given.what]
    index = open_library(dict.fromkeys(Path(folder).resolve() for folder in given.include_path))
    if not index.roots:
        raise EvalError("no task files: name a folder with --include-path, or install lm_eval")
    return ACTIONS[action](index, names, given)


def print_entries(index: TaskIndex, words: Sequence[str], given: argparse.Namespace) -> int:
    """Print the names that hold all these words."""
    from evalcore.shell.tasks.library.entries import KINDS, list_entries

    rows = list_entries(index, words, [given.kind] if given.kind else KINDS)
    if given.json:
        from evalcore.shell.tasks.description import show_name

        _write_json([show_name(index, str(row["name"])) for row in rows])
        return 0
    width = max((len(str(row["name"])) for row in rows), default=0)
    for row in rows:
        where = (
            f"{row['path']}:{row['line']}" if row["path"] else "tasks: " + " ".join(_list_texts(row.get("tasks")))[:80]
        )
        sys.stdout.write(visible(f"{row['name']:{min(width, 60)}}  {row['kind']:7}  {where}") + "\n")
    sys.stderr.write(f"{len(rows):,} names\n")
    return Exit.DONE if rows or not words else Exit.INCOMPLETE


def print_names(index: TaskIndex, names: Sequence[str], given: argparse.Namespace) -> int:
    """Print everything that these names stand for."""
    from evalcore.shell.tasks.description import show_names

    if not names:
        raise EvalError("expected a name: evalcore tasks show NAME")
    shown = show_names(index, names)
    if given.json:
        _write_json(shown[0] if len(shown) == 1 else shown)
        return 0
    import yaml

    for name in shown:
        text = yaml.safe_dump(name, sort_keys=False, allow_unicode=True, width=110)
        sys.stdout.write("\n".join(map(visible, text.split("\n"))))
    return 0


def print_problems(index: TaskIndex, names: Sequence[str], given: argparse.Namespace) -> int:
    """Print every problem; exit code 1 if any of them is an error."""
    from evalcore.shell.tasks.linter import check_tasks

    problems = check_tasks(index, list(names) or None)
    errors = sum(problem.level == "error" for problem in problems)
    if given.json:
        _write_json(msgspec.to_builtins(problems))
    else:
        ordered = sorted(problems, key=lambda problem: problem.level)  # errors first
        sys.stdout.write("".join(visible(f"{problem.level}: {problem}") + "\n" for problem in ordered))
        sys.stderr.write(f"errors: {errors}, warnings: {len(problems) - errors}\n" if problems else "no problems\n")
    return Exit.INCOMPLETE if errors else Exit.DONE


def print_needs(index: TaskIndex, names: Sequence[str], given: argparse.Namespace) -> int:
    """Print what names need before they may run, and how many need what."""
    from collections import Counter

    from evalcore.shell.tasks.needs import REASONS, list_needs

    for name in names:
        if name not in index.entries:
            raise unknown("name", name, index.entries)
    needs = list_needs(index, list(names) or None)
    if given.json:
        _write_json(msgspec.to_builtins(needs))
        return 0
    sys.stdout.write("".join(visible(f"{one.name}  {one.kind}  {one.what}") + "\n" for one in needs))
    counts = Counter(kind for _, kind in dict.fromkeys((one.name, one.kind) for one in needs))
    told = [f"{len({one.name for one in needs}):,} of {len(names or index.entries):,} names need something"]
    told += [f"{counts[kind]:,} {why}" for kind, why in REASONS.items() if counts[kind]]
    sys.stderr.write("\n  ".join(told) + "\n")
    return 0


def write_new(names: Sequence[str], given: argparse.Namespace) -> int:
    """Write a task to begin with, and say how to go on."""
    from evalcore.shell.starter.task_folder import write_template

    if len(names) != 1:
        raise EvalError("expected one name: evalcore tasks new NAME --output_type multiple_choice")
    made = write_template(names[0], given.output_type, given.output_path, overwrite=given.overwrite)
    told = [
        f"Written: {', '.join(map(str, made.files))}",
        "Next:",
        f"  edit {made.task} and {made.documents}, then",
        f"  evalcore tasks check {names[0]} --include-path {made.task.parent}",
        f"  evalcore run {made.config}",
        "and with a model of yours:",
        *(f"  {line}" for line in made.command.split("\n")),
    ]
    sys.stdout.write("".join(visible(line) + "\n" for line in told))
    return Exit.DONE


MAKERS: Mapping[str, Callable[[Sequence[str], argparse.Namespace], int]] = {"new": write_new}
"""Actions that need no index."""

ACTIONS: Mapping[str, Callable[[TaskIndex, Sequence[str], argparse.Namespace], int]] = {
    "list": print_entries,
    "search": print_entries,
    "show": print_names,
    "check": print_problems,
    "trust": print_needs,
}


def _write_json(value: object) -> None:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def _list_texts(value: object) -> list[str]:
    return list(map(str, value)) if isinstance(value, list | tuple | Mapping) else []
