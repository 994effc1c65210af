"""``evalcore view``: the pages of all runs below a folder, in a browser of this machine."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from evalcore.shell.cli.inputs import new_parser

EXAMPLES = """examples:
  evalcore view                                all runs below runs/ (where there is none, below this folder)
  evalcore view out --port 8642 --no_browser   at this port; from another machine, `ssh -L 8642:127.0.0.1:8642 HOST`

Ctrl-C ends it, with exit code 130.
"""


def build_parser() -> argparse.ArgumentParser:
    out = new_parser(
        "view",
        "The pages of all runs below a folder, those that go on included, in a browser of this machine. Nothing leaves "
        "it: the server listens on loopback, and every address has a token.",
        EXAMPLES,
    )
    out.add_argument("folder", nargs="?", metavar="FOLDER", help="where runs are, however deep (runs, else this one)")
    out.add_argument("--port", type=int, default=0, metavar="N", help="of the server (0: any that is free)")
    out.add_argument("--host", default="127.0.0.1", metavar="HOST", help="127.0.0.1 or ::1; no other")
    out.add_argument("--no_browser", "--no-browser", dest="browser", action="store_false", help="open no browser")
    return out


def main(argv: Sequence[str]) -> int:
    """Say where, and serve until Ctrl-C."""
    keys = vars(build_parser().parse_args(argv))
    from evalcore.shell.output.terminal.screen import write_text
    from evalcore.shell.view.viewer import view

    def tell(address: str) -> None:
        write_text(sys.stdout, f"{address}\n")
        write_text(sys.stderr, "Open it in a browser of this machine; Ctrl-C ends it.\n")

    view(keys.pop("folder"), tell=tell, **keys)
    return 0
