"""``evalcore completion``: commands, flags and names that a shell completes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from evalcore.shell.cli.inputs import new_parser

EXAMPLES = """examples:
  source <(evalcore completion bash)                            in ~/.bashrc
  source <(evalcore completion zsh)                             in ~/.zshrc, after compinit
  evalcore completion fish > ~/.config/fish/completions/evalcore.fish
"""


def build_parser() -> argparse.ArgumentParser:
    out = new_parser("completion", "A script by which a shell completes commands, flags, names and files.", EXAMPLES)
    out.add_argument("shell", choices=("bash", "fish", "zsh"), help="the shell that reads it")
    return out


def main(argv: Sequence[str]) -> int:
    """Print the script of a shell."""
    given = build_parser().parse_args(argv)
    from evalcore.shell.cli.shell_scripts import SHELLS
    from evalcore.shell.cli.suggestions import list_suggestions

    sys.stdout.write(SHELLS[given.shell](list_suggestions()))
    return 0
