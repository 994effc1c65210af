"""``evalcore tasks``: what can be run, what a name stands for, what is wrong with task files."""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from evalcore.core.records.errors import EvalError
from evalcore.shell.output.terminal.safe_text import visible
from evalcore.shell.run.folder import cache_folder
from evalcore.shell.tasks.library.cache import build_index
from evalcore.shell.tasks.library.index import TaskIndex, default_library

VERBS = ("list", "search", "show", "check")
EXAMPLES = """examples:
  evalcore tasks                                  every name
  evalcore tasks search arc                       names with arc in them
  evalcore tasks show gsm8k                       the config of a task, its includes merged; the tree of a group
  evalcore tasks check my_group --include-path .  problems of task files, each with file and line (errors: exit code 1)
  evalcore tasks --include-path tasks --json      every name, resolved, as JSON
"""


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        "evalcore tasks",
        usage="evalcore tasks [list | search TEXT | show NAME ... | check [NAME ...]] [--include-path FOLDER] [--json]",
        description="List, search, show and check task files. The tasks of an installed lm-eval are known.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    out.add_argument("what", nargs="*", help="list (default), search TEXT, show NAME, check [NAME]")
    out.add_argument("--include-path", "--include_path", nargs="+", action="extend", default=[], metavar="FOLDER")
    out.add_argument("--kind", choices=("task", "py_task", "group", "tag"), help="names of this kind only")
    out.add_argument("--json", action="store_true", help="as JSON; the list with every config resolved")
    return out


def main(argv: Sequence[str]) -> int:
    """Do what is asked with the index of all folders."""
    given = parser().parse_args(argv)
    verb, names = (given.what[0], given.what[1:]) if given.what and given.what[0] in VERBS else ("search", given.what)
    library = default_library()
    folders = [*([library] if library else []), *map(Path, given.include_path)]
    if not folders:
        raise EvalError("no task files: name a folder with --include-path, or install lm_eval")
    index = build_index(list(dict.fromkeys(folder.resolve() for folder in folders)), cache=cache_folder())
    if verb == "show":
        return show_names(index, names, as_json=given.json)
    if verb == "check":
        return check_names(index, names, as_json=given.json)
    return list_names(index, names, given.kind, as_json=given.json)


def list_names(index: TaskIndex, words: Sequence[str], kind: str | None, *, as_json: bool) -> int:
    """The names that hold all these words."""
    from evalcore.shell.tasks.library.entries import KINDS, list_entries

    found = list_entries(index, None, [kind] if kind else KINDS)
    for word in words:
        kept = {str(row["name"]) for row in list_entries(index, word)}
        found = [row for row in found if row["name"] in kept]
    if as_json:
        from evalcore.shell.tasks.description import show

        _write_json([show(index, str(row["name"])) for row in found])
        return 0
    width = max((len(str(row["name"])) for row in found), default=0)
    for row in found:
        where = f"{row['path']}:{row['line']}" if row["path"] else "tasks: " + " ".join(_texts(row.get("tasks")))[:80]
        sys.stdout.write(visible(f"{row['name']:{min(width, 60)}}  {row['kind']:7}  {where}") + "\n")
    sys.stderr.write(f"{len(found):,} names\n")
    return 0 if found or not words else 1


def show_names(index: TaskIndex, names: Sequence[str], *, as_json: bool) -> int:
    """Everything that these names stand for."""
    from evalcore.shell.tasks.description import show, show_file

    if not names:
        raise EvalError("expected a name: evalcore tasks show NAME")
    known = [one for name in names for one in (_matching(index, name) or [name])]
    found = [
        show_file(index, one) if one not in index.entries and Path(one).is_file() else show(index, one) for one in known
    ]
    if as_json:
        _write_json(found[0] if len(found) == 1 else found)
        return 0
    import yaml

    for one in found:
        text = yaml.safe_dump(one, sort_keys=False, allow_unicode=True, width=110)
        sys.stdout.write("\n".join(map(visible, text.split("\n"))))
    return 0


def _matching(index: TaskIndex, name: str) -> list[str]:
    return sorted(fnmatch.filter(index.entries, name)) if set(name) & set("*?[") else []


def check_names(index: TaskIndex, names: Sequence[str], *, as_json: bool) -> int:
    """Every problem; exit code 1 if any of them is an error."""
    from evalcore.shell.tasks.linter import check

    found = check(index, list(names) or None)
    if as_json:
        _write_json([msgspec.to_builtins(one) for one in found])
    else:
        ordered = sorted(found, key=lambda one: one.level)  # errors first
        sys.stdout.write("".join(visible(f"{one.level}: {one}") + "\n" for one in ordered))
        errors = sum(one.level == "error" for one in found)
        sys.stderr.write(f"errors: {errors}, warnings: {len(found) - errors}\n" if found else "no problems\n")
    return int(any(one.level == "error" for one in found))


def _write_json(value: object) -> None:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def _texts(value: object) -> list[str]:
    return list(map(str, value)) if isinstance(value, list | tuple | Mapping) else []
