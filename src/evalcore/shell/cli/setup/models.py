"""``evalcore models``: what can be asked, and how."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from evalcore.shell.cli.inputs import new_parser
from evalcore.shell.models import list_backends

EXAMPLES = """examples:
  evalcore models                        every backend
  evalcore models local-completions      one backend and its arguments
"""


def build_parser() -> argparse.ArgumentParser:
    out = new_parser("models", "List the model backends, or the arguments of one.", EXAMPLES)
    out.add_argument("name", nargs="?", help="show this backend alone")
    out.add_argument("--json", action="store_true", help="as JSON")
    return out


def main(argv: Sequence[str]) -> int:
    """List the backends, or show one."""
    given = build_parser().parse_args(argv)
    backends = list_backends(given.name)
    if given.json:
        plain = {
            name: {"summary": backend.summary, "arguments": dict(backend.arguments)}
            for name, backend in backends.items()
        }
        sys.stdout.write(json.dumps(plain, indent=2) + "\n")
        return 0
    width = max(map(len, backends))
    for name, backend in backends.items():
        sys.stdout.write(f"{name:{width}}  {backend.summary}\n")
        for key, meaning in backend.arguments if given.name else ():
            sys.stdout.write(f"    {key:18} {meaning}\n")
    return 0
