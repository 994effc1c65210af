"""Every fenced block of the documentation, run in order in a folder of its page.

What a block is, its language says: ``sh`` is typed, ``console`` typed and compared with what it shows, ``python`` run (as a
doctest where it has prompts), ``yaml``, ``json``, ``jsonl`` and ``csv`` read, and a file where the fence has a
``title="name"``; ``text`` is neither. A comment right before a fence says more:

``<!-- exit code 1 -->``       the commands of this block end so
``<!-- output -->``            what the block before printed; ``...`` stands for what is left out
``<!-- not run: why -->``      it needs what is not here; its flags, keys and syntax are checked all the same
"""

from __future__ import annotations

import contextlib
import csv
import doctest
import importlib
import io
import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from evalcore.shell.cli import COMMANDS, main
from evalcore.shell.cli.flags import refuse_rest, spell_keys
from evalcore.shell.config.keys import KEYS
from evalcore.shell.config.plan import make_plan
from evalcore.shell.models import list_backends
from evalcore.shell.safety.exit_codes import Exit
from evalcore.shell.tasks.task_keys import TASK_KEYS

FENCE = re.compile(r"(?ms)^( *)(`{3,})([\w-]*)(?: +title=\"([^\"]+)\")? *\n(.*?)^\1\2 *$")
NOTES = re.compile(r"((?: *<!-- [^\n]*? -->\n)*)\Z")
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
OURS = ("evalcore ", "python -m evalcore ")
SERVES = "view"
"""A command that goes on until it is interrupted."""
OPERATORS = frozenset("|&;<>")
SERVER = re.compile(r"http://localhost:\d+")


class Block(NamedTuple):
    """A fenced block: where it is, what its fence says, and the comments right before it."""

    page: str
    line: int
    language: str
    title: str
    body: str
    notes: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def not_run(self) -> str:
        return self.find_note("not run: ")

    def find_note(self, begins: str) -> str:
        """What follows these words in a comment before the block, if any does."""
        return next((note.removeprefix(begins) or begins for note in self.notes if note.startswith(begins)), "")


def find_blocks(text: str, page: str = "") -> Iterator[Block]:
    """Find the fenced blocks of a page.

    >>> text = '<!-- exit code 1 -->\\n```sh\\nevalcore diff a b\\n```\\n\\n  ```csv title="a.csv"\\n  x,y\\n  ```\\n'
    >>> for block in find_blocks(text):
    ...     block.line, block.language, block.title, block.body, block.notes
    (2, 'sh', '', 'evalcore diff a b\\n', ('exit code 1',))
    (6, 'csv', 'a.csv', 'x,y\\n', ())
    """
    for found in FENCE.finditer(text):
        indent, _, language, title, body = found.groups()
        before = NOTES.search(text, 0, found.start())
        notes = tuple(re.findall(r"<!-- (.*?) -->", before[1])) if before else ()
        plain = re.sub(rf"(?m)^{indent}", "", body)
        yield Block(page, text.count("\n", 0, found.start()) + 1, language, title or "", plain, notes)


def join_lines(body: str) -> list[str]:
    """Commands, each a line; comments and empty lines are none.

    >>> join_lines("a \\\\\\n  b\\n\\n# c\\nd")
    ['a   b', 'd']
    """
    whole = body.replace("\\\n", " ")
    return [line for line in whole.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def is_ours(line: str) -> bool:
    """Whether a line is a command of evalcore and nothing else, which needs no process.

    >>> is_ours("evalcore show 'a|b'  # c"), is_ours("evalcore show a | head"), is_ours("ls")
    (True, False, False)
    """
    lexer = shlex.shlex(line, posix=False, punctuation_chars=True)
    lexer.whitespace_split = True
    return line.startswith(OURS) and not any(set(word) <= OPERATORS for word in lexer)


def split_words(line: str, home: Path | None = None) -> list[str]:
    """The arguments of a command of evalcore, as the shell gives them.

    >>> split_words("evalcore score 'a b' --filter x  # c")
    ['score', 'a b', '--filter', 'x']
    """
    told = ["bash", "-c", f"printf '%s\\0' {line.split('evalcore ', 1)[1]}"]
    done = subprocess.run(told, capture_output=True, text=True, check=True, cwd=home)
    return done.stdout.split("\0")[:-1]


class Walk:
    """A reader who types a page, block by block, in a folder; ``url`` is a server in place of the one that pages name."""

    def __init__(self, home: Path, url: str) -> None:
        self.home, self.url, self.said = home, url, ""
        self.names: dict[str, object] = {"__name__": "page"}

    def take_all(self, blocks: Iterable[Block]) -> None:
        """Go through a page."""
        for block in blocks:
            self.take(block)

    def take(self, block: Block) -> None:
        """Do what a block says, or check it."""
        if block.not_run:
            return check_block(block)
        if block.title:
            path = self.home / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.point(block.body), "utf-8")
        if block.find_note("output"):
            return compare_output(block.body, self.said, block.where)
        return HANDLERS[block.language](self, block)

    def point(self, text: str) -> str:
        """Lead to the server that is there."""
        return SERVER.sub(self.url, text)

    def type_all(self, block: Block) -> None:
        """Type commands; what they print is kept."""
        lines = join_lines(self.point(block.body))
        expected = int(block.find_note("exit code ") or 0)
        self.said = ""
        if not all(map(is_ours, lines)):
            return self.type_script(self.point(block.body), expected, block.where)
        for line in lines:
            self.type(line, expected, block.where)
        return None

    def type(self, line: str, expected: int, where: str) -> str:
        """Type a command of evalcore, in this process."""
        words = split_words(line, self.home)
        if words[0] == SERVES:
            return self.serve(words, where)
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(words)
            except SystemExit as left:
                code = left.code if isinstance(left.code, int) else 0
        printed = [one.buffer.getvalue().decode("utf-8") for one in (out, err)]  # type: ignore[attr-defined]
        assert code == expected, f"{where}: {line}\nexit code {code}, expected {expected}\n{''.join(printed)}"
        self.said += printed[0]
        return printed[0]

    def serve(self, words: list[str], where: str) -> str:
        """Type a command that serves, and Ctrl-C once it has said where."""
        told = [sys.executable, "-m", "evalcore", *words, "--no_browser"]
        with subprocess.Popen(told, stdout=subprocess.PIPE, text=True, cwd=self.home) as process:
            try:
                assert process.stdout is not None
                said = process.stdout.readline()
                process.send_signal(signal.SIGINT)
                assert "http://" in said, f"{where}: {said}"
                assert process.wait(60) == Exit.INTERRUPTED, where
            finally:
                process.kill()
        return said

    def type_script(self, script: str, expected: int, where: str) -> None:
        """Type what is for the shell; ``evalcore`` is this checkout's."""
        told = (
            f'evalcore() {{ "{sys.executable}" -m evalcore "$@"; }}; python() {{ "{sys.executable}" "$@"; }}\n{script}'
        )
        done = subprocess.run(["bash", "-ec", told], capture_output=True, text=True, check=False, cwd=self.home)
        assert done.returncode == expected, f"{where}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        self.said = done.stdout

    def type_console(self, block: Block) -> None:
        """Type what stands after ``$``, and compare what it prints with what is shown."""
        for told in re.split(r"(?m)^\$ ", block.body)[1:]:
            command, _, shown = re.sub(r"\\\n", " ", told).partition("\n")
            printed = self.type(command, int(block.find_note("exit code ") or 0), block.where)
            if shown.strip():
                compare_output(shown, printed, block.where)

    def run_python(self, block: Block) -> None:
        """Run a block; where it has prompts, compare what it shows."""
        if not block.body.startswith(">>> "):
            exec(compile(block.body, block.where, "exec", dont_inherit=True), self.names)
            return
        test = doctest.DocTestParser().get_doctest(block.body, {}, block.where, block.page, block.line)
        test.globs = self.names
        told: list[str] = []
        doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=told.append, clear_globs=False)
        assert not told, "".join(told)

    def read_yaml(self, block: Block) -> None:
        """Read a task, which is checked as the linter does, or keys of a run config, which make a plan."""
        check_yaml(block)
        value = yaml.safe_load(re.sub(r"!function ", "", block.body))
        if isinstance(value, dict) and isinstance(value.get("task"), str) and not value.keys() & {"model", "tasks"}:
            path = self.home / (block.title or f"block-{block.line}.yaml")
            path.write_text(block.body, "utf-8")
            self.type(f"evalcore tasks check {shlex.quote(str(path))}", 0, block.where)


def compare_output(shown: str, printed: str, where: str) -> None:
    """What a page shows is what was printed, but for white space and ``...``."""
    want, got = (re.sub(r"\n\s*\n", "\n", text).strip() + "\n" for text in (shown, printed))
    alike = doctest.OutputChecker().check_output(want, got, FLAGS)
    assert alike, f"{where} shows\n{shown}\nbut this was printed\n{printed}"


def check_block(block: Block) -> None:
    """Check what cannot be run: flags of our commands, syntax and keys of the rest."""
    if block.language in ("python", "py"):
        compile(block.body, block.where, "exec", dont_inherit=True)
    elif block.language == "yaml":
        check_yaml(block)
    elif block.language in ("sh", "console"):
        lines = [line.removeprefix("$ ") for line in join_lines(block.body)]
        lines = lines if block.language == "sh" else [line for line in lines if line.startswith(OURS)]
        subprocess.run(["bash", "-nc", "\n".join(lines)], check=True)
        for line in lines:
            for command in re.findall(r"(?:^|&& )((?:python -m )?evalcore [^&|]*)", line):
                check_command(command, block.where)


def check_command(line: str, where: str) -> None:
    """Parse a command as it would be, and do nothing."""
    name, *words = shlex.split(line.split("evalcore ", 1)[1], comments=True)
    assert name in COMMANDS, f"{where}: no command {name!r}"
    parser = importlib.import_module(f"evalcore.shell.cli.{COMMANDS[name].room}.{name}").build_parser()
    try:
        _, rest = parser.parse_known_args(spell_keys(words))
        refuse_rest(rest)
    except SystemExit as left:
        raise AssertionError(f"{where}: {line}") from left


def check_yaml(block: Block) -> None:
    """A mapping of keys of a run config makes a plan, and its model knows the arguments; one of a task has known keys."""
    value = yaml.safe_load(re.sub(r"!function ", "", block.body))
    if not isinstance(value, dict):
        return
    if set(value) <= set(KEYS):
        make_plan({"model": "dummy", "tasks": "any", **value}, block.where, block.body)
        known = (
            {key for key, _ in list_backends(value["model"])[value["model"]].arguments} if "model" in value else set()
        )
        unknown = set(value.get("model_args") or {}) - known
        assert not unknown, f"{block.where}: no arguments of {value['model']}: {sorted(unknown)}"
    elif "task" in value or "output_type" in value:
        assert set(value) <= TASK_KEYS.keys(), f"{block.where}: unknown keys {sorted(value.keys() - TASK_KEYS.keys())}"


def read_json(_: Walk, block: Block) -> None:
    """One value, or one a line."""
    try:
        json.loads(block.body)
    except json.JSONDecodeError:
        for line in block.body.splitlines():
            json.loads(line)


def read_csv(_: Walk, block: Block) -> None:
    """Rows of as many cells as the first."""
    assert len({len(row) for row in csv.reader(block.body.splitlines())}) == 1, block.where


def leave(_: Walk, block: Block) -> None:
    """A drawing, or an extract: nothing to run."""


HANDLERS: dict[str, Callable[[Walk, Block], None]] = {
    "sh": Walk.type_all,
    "console": Walk.type_console,
    "python": Walk.run_python,
    "": leave,
    "pycon": Walk.run_python,
    "yaml": Walk.read_yaml,
    "json": read_json,
    "jsonl": read_json,
    "csv": read_csv,
    "text": leave,
}
