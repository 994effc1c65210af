"""The pages that are made from tables, and llms.txt.

python -m tests.docs            names those that are not as they would be made
python -m tests.docs --write    makes them
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.docs.nav import ROOT, write_llms
from tests.docs.reference import PAGES


def make_files() -> dict[Path, str]:
    """Every file that is made, with what it should hold."""
    pages = {ROOT / "docs" / "reference" / name: write() for name, write in PAGES.items()}
    for path, text in pages.items() if "--write" in sys.argv else ():
        path.write_text(text, "utf-8")  # before llms.txt, which reads them
    return {**pages, ROOT / "docs" / "llms.txt": write_llms()}


def main(arguments: list[str]) -> int:
    """Write the files, or say which are stale."""
    made = make_files()
    stale = [path for path, text in made.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        if arguments == ["--write"]:
            path.write_text(made[path], "utf-8")
        print(path.relative_to(ROOT))
    return 0 if arguments == ["--write"] else len(stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
