"""``evalcore diff``: which verdicts changed between two scorings of the same answers, and why."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from evalcore.shell.cli.inputs import add_columns, add_forms, add_timeout, new_parser

EXAMPLES = """examples:
  evalcore diff out/run out/rescored               what changed, document by document
  evalcore diff a b --task 'gsm8k*' --limit 100    more of the changes of some tasks
  evalcore diff runs/hf runs/llama                 one model on two backends: where they part first
  evalcore diff a b --json > changes.json          all of them, for a program

exit code: 0 if nothing changed, 1 if something did, 2 if the input is bad
"""


def build_parser() -> argparse.ArgumentParser:
    out = new_parser(
        "diff",
        "Which verdicts changed between two scorings of the same answers, with what was extracted before "
        "and after, and by which rule. For different answers, see `evalcore compare`.",
        EXAMPLES,
    )
    out.add_argument("a", metavar="A", help="before: a run folder, an output of lm-eval, or a sample log")
    out.add_argument("b", metavar="B", help="after: the same")
    out.add_argument("--task", action="append", default=[], metavar="GLOB", help="only these tasks, by name or alias")
    out.add_argument("--metric", action="append", default=[], metavar="NAME", help="only these: acc, or acc,none")
    out.add_argument(
        "--limit", type=_read_count, default=20, metavar="N", help="changes of each task to show closely (20)"
    )
    out.add_argument("--stages", action="store_true", help="where documents part first (shown anyway for two backends)")
    add_timeout(out)
    add_columns(out)
    add_forms(out, json="plain data", markdown="Markdown")
    return out


def main(argv: Sequence[str]) -> int:
    """Read both, pair their documents, print what changed."""
    keys = vars(build_parser().parse_args(argv))
    form = keys.pop("form")
    from evalcore.shell.explain.diff import diff_runs
    from evalcore.shell.output.explain.renderers import DIFF_RENDERERS
    from evalcore.shell.output.terminal.screen import print_form

    diffed = diff_runs(**keys)
    print_form(DIFF_RENDERERS, form, diffed)
    return int(diffed.changed)


def _read_count(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"expected an integer of at least 0, got {text!r}")
    return int(text)
