"""Faults and attacks, each with the tests that inject it; ``python -m tests.hostile`` runs them and counts what held."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


class Fault(NamedTuple):
    """What is injected, what must come of it, and where: names of tests, or of whole files."""

    code: str
    injected: str
    expected: str
    tests: tuple[str, ...]


class Tally:
    """How many injections held, by test. A test that injects more than one says so: ``record_property("injected", n)``."""

    def __init__(self) -> None:
        self.held: dict[str, int] = {}
        self.broken: dict[str, int] = {}
        self.skipped: dict[str, int] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.outcome == "passed":
            return
        count = int(dict(report.user_properties).get("injected", 1))  # type: ignore[arg-type]
        into = {"passed": self.held, "failed": self.broken}.get(report.outcome, self.skipped)
        into[report.nodeid] = into.get(report.nodeid, 0) + count


def count(into: dict[str, int], names: Iterable[str]) -> int:
    """Count the injections of tests that go by these names."""
    wanted = tuple(names)
    return sum(n for node, n in into.items() if node.split("[")[0].startswith(wanted))


def run_table(faults: Iterable[Fault], arguments: list[str]) -> int:
    """Run every test of the table once and print a line for each fault; 1 if one did not hold or was not injected."""
    rows, tally = tuple(faults), Tally()
    names = dict.fromkeys(f"tests/{name}" for row in rows for name in row.tests)
    pytest.main(
        [
            "-q",
            "-m",
            "",
            "-p",
            "no:cacheprovider",
            "--no-header",
            "--tb=short",
            *(one for one in arguments if one != "--write"),
            *names,
        ],
        plugins=[tally],
    )
    bad, lines = 0, ["| | injected | times | held | must come of it |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        named = [f"tests/{name}" for name in row.tests]
        held, broken = count(tally.held, named), count(tally.broken, named)
        bad += bool(broken) or not held
        lines.append(f"| {row.code} | {row.injected} | {held + broken:,} | {held:,} | {row.expected} |")
    held, broken = sum(tally.held.values()), sum(tally.broken.values())
    lines += ["", f"{held + broken:,} injected, {held:,} held, {sum(tally.skipped.values())} skipped."]
    print("", *lines, sep="\n")
    if "--write" in arguments:
        text = PAGE.read_text()
        PAGE.write_text(
            re.sub(r"(?<=<!-- faults -->\n).*(?=\n<!-- /faults -->)", lambda found: "\n".join(lines), text, flags=re.S)
        )
    return 1 if bad else 0
