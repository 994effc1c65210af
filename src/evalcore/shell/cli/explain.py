"""``evalcore explain``: one document of a run, from its prompt to its part in every number."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalcore.shell.cli.inputs import COLUMNS, columns_of

if TYPE_CHECKING:
    from evalcore.shell.explain.explain import Explained

EXAMPLES = """examples:
  evalcore explain out/run --task gsm8k --doc 12            a run folder, or an output of lm-eval
  evalcore explain samples_gsm8k_2025-01-31.jsonl --doc 12  a sample log alone: what it says itself
  evalcore explain samples_gsm8k_2025-01-31.jsonl --doc 12 --task_file gsm8k.yaml    traced by these filters
  evalcore explain out/run --task gsm8k --doc hash:4b6d23   by the hash of what the document says
  evalcore explain answers.csv --answer reply --gold target --id name --doc q17    a plain table
"""


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        "evalcore explain",
        description="One document of a run: its prompt, its answers, what each filter made of them and by which rule, "
        "its scores and how they came about, and its part in the numbers of its task and of every group above.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    out.add_argument("run", metavar="RUN", help="a run folder, an output of lm-eval, a sample log, or a table")
    out.add_argument("--task", metavar="T", help="the task; may be left out where there is only one")
    out.add_argument(
        "--doc",
        required=True,
        metavar="N",
        help="the document: its id, else its number, else a name in its data; '#N' is its number for certain, "
        "hash:PREFIX the hash of its content",
    )
    out.add_argument("--filter", action="append", default=[], metavar="F", help="only these filters")
    out.add_argument("--metric", action="append", default=[], metavar="M", help="only these: acc, or acc,none")
    out.add_argument(
        "--task_file", "--task-file", type=Path, metavar="T.yaml", help="trace by the filters and metrics of this file"
    )
    tables = out.add_argument_group("columns of plain tables (JSONL, CSV, Parquet), as in score")
    for name, what in {**COLUMNS, "score": "a score that was given already"}.items():
        tables.add_argument(f"--{name}", metavar="COLUMN", help=what)
    out.add_argument("--full", action="store_true", help="prompts and answers in full")
    form = out.add_mutually_exclusive_group()
    for name, what in (("json", "plain data"), ("markdown", "Markdown")):
        form.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=f"print {what}")
    return out


def main(argv: Sequence[str]) -> int:
    """Find the document, trace it, print."""
    given = parser().parse_args(argv)
    from evalcore.shell.explain.explain import explain_document

    explained = explain_document(
        Path(given.run),
        given.task,
        given.doc,
        file=given.task_file,
        filters=given.filter,
        metrics=given.metric,
        columns=columns_of(given),
    )
    show(explained, given.form or "text", full=given.full)
    return 0


def show(explained: Explained, form: str, *, full: bool) -> None:
    """Print in the form asked for."""
    from evalcore.shell.output.terminal.show import terminal_width, wants_colour, write_text

    if form == "json":
        from evalcore.shell.output.explain.document_data import data_of
        from evalcore.shell.output.files.strict_json import dump_json

        write_text(sys.stdout, dump_json(data_of(explained), indent=2) + "\n")
        return
    from evalcore.shell.output.explain.blocks import draw_blocks, write_blocks
    from evalcore.shell.output.explain.document_page import blocks_of

    blocks = blocks_of(explained, full=full)
    drawn = draw_blocks(blocks, width=terminal_width(sys.stdout), colour=wants_colour(sys.stdout))
    write_text(sys.stdout, write_blocks(blocks) if form == "markdown" else drawn)
