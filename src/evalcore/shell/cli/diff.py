"""``evalcore diff``: which verdicts changed between two scorings of the same answers, and why."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalcore.shell.explain.diff import Diffed

EXAMPLES = """examples:
  evalcore diff out/run out/rescored               what changed, document by document
  evalcore diff a b --task 'gsm8k*' --limit 100    more of the changes of some tasks
  evalcore diff a b --json > changes.json          all of them, for a program

exit code: 0 if nothing changed, 1 if something did, 2 if the input is bad
"""


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        "evalcore diff",
        description="Which verdicts changed between two scorings of the same answers, with what was extracted before "
        "and after, and by which rule. For different answers, see `evalcore compare`.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    out.add_argument("a", metavar="A", type=Path, help="before: a run folder, an output of lm-eval, or a sample log")
    out.add_argument("b", metavar="B", type=Path, help="after: the same")
    out.add_argument("--task", action="append", default=[], metavar="GLOB", help="only these tasks")
    out.add_argument("--metric", action="append", default=[], metavar="NAME", help="only these: acc, or acc,none")
    out.add_argument("--limit", type=_count, default=20, metavar="N", help="changes of each task to show closely (20)")
    form = out.add_mutually_exclusive_group()
    for name, what in (("json", "plain data"), ("markdown", "Markdown")):
        form.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=f"print {what}")
    return out


def main(argv: Sequence[str]) -> int:
    """Read both, pair their documents, print what changed."""
    given = parser().parse_args(argv)
    from evalcore.shell.explain.diff import diff_runs

    diffed = diff_runs(given.a, given.b, tasks=given.task, metrics=given.metric, limit=given.limit)
    show(diffed, given.form or "text")
    return int(diffed.changed)


def show(diffed: Diffed, form: str) -> None:
    """Print in the form asked for."""
    from evalcore.shell.output.terminal.show import terminal_width, wants_colour, write_text

    if form == "json":
        from evalcore.shell.output.explain.diff_data import diff_data
        from evalcore.shell.output.files.strict_json import dump_json

        write_text(sys.stdout, dump_json(diff_data(diffed), indent=2) + "\n")
        return
    from evalcore.shell.output.explain.blocks import draw_blocks, write_blocks
    from evalcore.shell.output.explain.diff_page import diff_blocks

    blocks = diff_blocks(diffed)
    drawn = draw_blocks(blocks, width=terminal_width(sys.stdout), colour=wants_colour(sys.stdout))
    write_text(sys.stdout, write_blocks(blocks) if form == "markdown" else drawn)


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 0, got {text!r}")
    return int(text)
