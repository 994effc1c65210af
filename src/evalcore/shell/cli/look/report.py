"""``evalcore report``: one or more runs as a page for a browser."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from evalcore.shell.cli.inputs import add_choice, add_columns, add_output, add_reading, new_parser
from evalcore.shell.safety.safe_text import shorten, visible

EXAMPLES = """examples:
  evalcore report runs/a                         report.html: numbers, intervals, outcomes, every sample
  evalcore report runs/a runs/b -o ab.html       and what differs between them
  evalcore report runs/a --no_samples            numbers alone, for sharing
"""


def build_parser() -> argparse.ArgumentParser:
    out = new_parser("report", "A page about one or more runs, in a file of its own that any browser opens.", EXAMPLES)
    out.add_argument("runs", nargs="+", metavar="RUN", help="run folders, lm-eval outputs or sample logs")
    add_output(out, "the page (report.html)", metavar="FILE", dest="output")
    out.set_defaults(output="report.html")
    out.add_argument("--no_samples", "--no-samples", dest="samples", action="store_false", help="without samples")
    out.add_argument("--redact", action="store_true", help="without prompts, replies, documents, paths")
    out.add_argument("--names", metavar="A,B", help="what to call the runs (from their paths)")
    out.add_argument("--confidence", type=float, metavar="P", help="of intervals (that of each run, else 0.95)")
    add_choice(out)
    add_reading(out)
    add_columns(out)
    return out


def main(argv: Sequence[str]) -> int:
    """Gather, write, and say where."""
    keys = vars(build_parser().parse_args(argv))
    from evalcore.shell.files.given import parse_path
    from evalcore.shell.output.terminal.screen import write_text
    from evalcore.shell.report.report import report

    before = parse_path(keys["output"]).exists()
    made = report(*keys.pop("runs"), **keys)
    sys.stdout.write(f"Written to {visible(made.path)}{', in place of what was there' * before}\n")
    write_text(sys.stderr, "".join(f"warning: {shorten(visible(one))}\n" for one in made.warnings))
    write_text(sys.stderr, f"\nNext: open it in a browser: {visible(Path(made.path).absolute().as_uri())}\n")
    return 0
