"""``evalcore explain``: one document of a run, from its prompt to its part in every number."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from evalcore.shell.cli.inputs import add_columns, add_forms, add_timeout, new_parser

EXAMPLES = """examples:
  evalcore explain out/run --task gsm8k --doc 12            a run folder, or an output of lm-eval
  evalcore explain samples_gsm8k_2025-01-31.jsonl --doc 12  a sample log alone: what it says itself
  evalcore explain samples_gsm8k_2025-01-31.jsonl --doc 12 --task_file gsm8k.yaml    traced by these filters
  evalcore explain out/run --task gsm8k --doc hash:4b6d23   by the hash of what the document says
  evalcore explain answers.csv --answer reply --gold target --id name --doc q17    a plain table
"""


def build_parser() -> argparse.ArgumentParser:
    out = new_parser(
        "explain",
        "One document of a run: its prompt, its answers, what each filter made of them and by which rule, "
        "its scores and how they came about, and its part in the numbers of its task and of every group above.",
        EXAMPLES,
    )
    out.add_argument("run", metavar="RUN", help="a run folder, an output of lm-eval, a sample log, or a table")
    out.add_argument("--task", metavar="T", help="the task, by name or alias; may be left out where there is only one")
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
    add_timeout(out)
    add_columns(out)
    out.add_argument("--full", action="store_true", help="prompts and answers in full")
    add_forms(out, json="plain data", markdown="Markdown")
    return out


def main(argv: Sequence[str]) -> int:
    """Find the document, trace it, print."""
    keys = vars(build_parser().parse_args(argv))
    form = keys.pop("form")
    from evalcore.shell.explain.explain import explain_document
    from evalcore.shell.output.explain.renderers import RENDERERS
    from evalcore.shell.output.terminal.screen import print_form

    print_form(RENDERERS, form, explain_document(**keys))
    return 0
