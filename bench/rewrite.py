"""Sections of documentation that a bench command writes: between ``<!-- name -->`` and ``<!-- /name -->``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def write_section(path: Path, name: str, text: str) -> None:
    """Replace a section of a page, and leave everything else as it is."""
    page = path.read_text(encoding="utf-8")
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, found, rest = page.partition(start)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"{path}: expected a section between {start} and {end}")
    path.write_text(f"{before}{start}\n{text}\n{end}{after}", encoding="utf-8")


def write_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
