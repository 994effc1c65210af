"""``evalcore merge``: partial scores closed into a run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from evalcore.shell.cli.flags import read_flags, spell_keys
from evalcore.shell.cli.inputs import add_engine, add_forms, add_output, new_parser
from evalcore.shell.config.keys import KEYS
from evalcore.shell.safety.exit_codes import Exit

EXAMPLES = """examples:
  evalcore score samples_gsm8k.jsonl --partial_only --partials parts --part 1/2       on one machine
  evalcore score samples_gsm8k.jsonl --partial_only --partials parts --part 2/2       on another
  evalcore merge parts -o runs/whole                                                  the numbers of the whole log

The rules by which partials were scored are in them; flags say how their scores are closed.
exit codes: 0 done, 1 some documents have no score, 2 bad input, such as a missing or a contradictory partial
"""

CLOSING = ("confidence", "ci", "stderr", "on_unscorable", "bootstrap_iters", "trust", "allow_failures")


def build_parser() -> argparse.ArgumentParser:
    out = new_parser(
        "merge",
        "Merge partial scores, in any order, into the numbers of whole logs: the same, to the last bit.",
        EXAMPLES,
        usage="evalcore merge PARTIAL ... [--output_path FOLDER]",
    )
    out.allow_abbrev = False
    out.add_argument("partials", nargs="+", metavar="PARTIAL", help="files, folders or globs of partial scores")
    out.add_argument("--task", nargs="+", action="extend", default=[], metavar="TASK", help="task files with code")
    out.add_argument("--groups", metavar="FILE", help="YAML with groups over the tasks")
    for name in CLOSING:
        many = {"nargs": "+", "action": "extend"} if KEYS[name].kind == "names" else {}
        out.add_argument(f"--{name}", metavar="X", help=KEYS[name].help.replace("%", "%%"), **many)  # type: ignore[arg-type]
    add_engine(out)
    add_forms(out, json="the results as JSON", csv="a row per number", markdown="a Markdown table")
    add_output(out, "write results.json there")
    out.add_argument("--overwrite", action="store_true", help="replace results that are there")
    out.add_argument("--quiet", "-q", action="store_true", help="no progress")
    return out


def main(argv: Sequence[str]) -> int:
    """Merge, print; the exit code says whether anything was left out."""
    keys = vars(build_parser().parse_args(spell_keys(argv)))
    from evalcore.shell.output.terminal.progress import progress
    from evalcore.shell.output.terminal.show import show
    from evalcore.shell.score.units.merge import merge

    partials, form, quiet = keys.pop("partials"), keys.pop("form"), keys.pop("quiet")
    keys |= read_flags(argparse.Namespace(**{name: keys.get(name) if name in CLOSING else None for name in KEYS}))
    with progress(quiet) as shown:
        result = merge(partials, shown=shown, **keys)
    show(result.shown(), form)
    return Exit.DONE if result.complete else Exit.INCOMPLETE
