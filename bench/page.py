"""Sections of documentation that a bench writes: between ``<!-- name -->`` and ``<!-- /name -->``."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path

from bench.measure import ROOT
from bench.rows import Row, Section, tabulate_rows
from bench.table import BENCHES, Bench

DOCS = ROOT / "docs"
PAGE = DOCS / "benchmarks.md"


def write_section(path: Path, name: str, text: str) -> None:
    """Replace a section of a page, and leave everything else as it is."""
    page = path.read_text(encoding="utf-8")
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, found, rest = page.partition(start)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{path}: expected a section between {start} and {end}")
    path.write_text(f"{before}{start}\n{text}\n{end}{after}", encoding="utf-8")


def add_section(path: Path, name: str) -> None:
    """Make room for a bench that the page does not have: behind the last before it in the table, or at the end."""
    page = path.read_text(encoding="utf-8")
    if f"<!-- {name} -->" in page:
        return
    ends = [f"<!-- /{one} -->\n" for one in takewhile(lambda one: one != name, BENCHES)]
    last = next((end for end in reversed(ends) if end in page), None)
    at = len(page) if last is None else page.index(last) + len(last)
    path.write_text(f"{page[:at]}\n<!-- {name} -->\n<!-- /{name} -->\n{page[at:]}", encoding="utf-8")


def write_bench(name: str, bench: Bench, found: Sequence[Row | Section], options: Sequence[str] = ()) -> None:
    """Write what a bench found: its rows into the page of benchmarks, sections where they belong."""
    add_section(PAGE, name)
    write_section(PAGE, name, describe_bench(name, bench, found, options))
    for one in found:
        if isinstance(one, Section) and one.name:
            write_section(DOCS / one.page, one.name, one.text)
        elif isinstance(one, Section) and one.page:
            (DOCS / one.page).write_text(one.text, encoding="utf-8")


def describe_bench(name: str, bench: Bench, found: Sequence[Row | Section], options: Sequence[str] = ()) -> str:
    rows = [one for one in found if isinstance(one, Row)]
    pages = dict.fromkeys(one.page for one in found if isinstance(one, Section) and one.name)
    links = ", ".join(f"[{page}]({page})" for page in pages)
    return "\n\n".join(
        filter(
            None,
            (
                f"## {name}",
                bench.says,
                tabulate_rows(rows) if rows else "",
                *(one.text for one in found if isinstance(one, Section) and not one.page),
                f"It writes its tables into {links}." if links else "",
                f"`{' '.join(['python -m bench', name, *options])}` on {describe_machine(bench.peers)}.",
            ),
        )
    )


def describe_machine(peers: Sequence[str] = ()) -> str:
    """What figures depend on: cores, Python, and the versions of numpy and of the peers."""
    names = {"sklearn": "scikit-learn"}
    libraries = [f"{name} {version(names.get(name, name))}" for name in ("numpy", *peers)]
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return ", ".join([f"{len(os.sched_getaffinity(0))} cores ({platform.machine()})", python, *libraries])
