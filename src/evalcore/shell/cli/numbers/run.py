"""``evalcore run``: a config, flags over it, and how to show the result."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from evalcore.core.records.errors import require
from evalcore.shell.cli.flags import add_flags, read_flags, refuse_rest, spell_keys
from evalcore.shell.cli.inputs import add_forms, new_parser
from evalcore.shell.safety.exit_codes import Exit

EXAMPLES = """examples:
  evalcore run config.yaml
  evalcore run config.yaml --limit 20 --num_fewshot 5
  evalcore run --model local-completions --model_args model=m,base_url=http://localhost:8000/v1 \\
      --tasks gsm8k --data '{"gsm8k": "my_questions.jsonl"}' --output_path runs/gsm8k

A run that was stopped goes on where it was: type the same command again.
exit codes: 0 done, 1 documents failed (more than --allow_failures) or tasks (with --keep_going), 2 bad input
"""


def build_parser() -> argparse.ArgumentParser:
    out = new_parser(
        "run",
        "Ask a model the questions of some tasks, score its answers, write results.",
        EXAMPLES,
        usage="evalcore run [CONFIG] [--json | --csv | --markdown] [--parquet] [--quiet] [--KEY VALUE ...]",
    )
    out.add_argument("config", nargs="?", help="run config (YAML, lm-eval's --config files as they are)")
    out.add_argument("--config", "-C", dest="config_flag", metavar="CONFIG", help=argparse.SUPPRESS)
    add_forms(out, json="the results as JSON", csv="a row per number", markdown="a Markdown table")
    out.add_argument(
        "--quiet", "-q", action="store_true", help="no progress, no table: the run folder's name, errors and warnings"
    )
    out.add_argument("--parquet", action="store_true", help="also write results.parquet and samples_<task>.parquet")
    out.add_argument("--overwrite", action="store_true", help="use a folder that holds the run of another config")
    add_flags(out)
    return out


def main(argv: Sequence[str]) -> int:
    """Run, print, and say by the exit code how it went."""
    given, rest = build_parser().parse_known_args(spell_keys(argv))
    refuse_rest(rest)
    flags: dict[str, Any] = read_flags(given)
    if given.parquet:  # a package that is missing, before anything else is imported
        require("pyarrow.parquet", "parquet")
    from evalcore.shell.output.terminal.progress import progress
    from evalcore.shell.output.terminal.screen import suggest_command
    from evalcore.shell.output.terminal.show import RENDERERS, show
    from evalcore.shell.run.run import run

    with progress(given.quiet) as shown:
        config = given.config or given.config_flag
        result = run(config, overwrite=given.overwrite, parquet=given.parquet, shown=shown, **flags)
    form = RENDERERS[given.form].quiet or given.form if given.quiet else given.form
    # Where warnings go to stderr at the end as well, those shown at the beginning are not repeated.
    show(result.shown(early=RENDERERS[form].aside is None), form)
    if RENDERERS[form].read and result.folder is not None:
        suggest_command("Next, as a page for a browser", "evalcore", "report", str(result.folder))
    return Exit.DONE if result.complete else Exit.INCOMPLETE
