"""Print the INSTALL of a file of tests: what its tests need beyond [dev].  python -m tests.install_command FILE"""

from __future__ import annotations

import ast
import sys
from pathlib import Path


def find_install(path: Path) -> str:
    """The file's INSTALL, read without importing the file, whose imports may be what is to be installed."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "INSTALL":
            return str(ast.literal_eval(node.value))
    sys.exit(f"expected INSTALL = ... in {path}, found none")


if __name__ == "__main__":
    print(find_install(Path(sys.argv[1])))
