"""Gates as tables: those with a limit, those against the baseline, those on documents unscored or unpaired."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.compare.gates import Gate, spell_number
from evalcore.shell.output.check.gate_text import Checked, shown_level, told_interval, told_number
from evalcore.shell.output.compare.pair_table import shown_p, signed
from evalcore.shell.output.terminal.flat import shown_percent
from evalcore.shell.output.terminal.grid import Grid, Page, Section, draw_page, write_markdown

__all__ = ["draw_gates"]

WORDS = {True: "passed", False: "FAILED", None: "skipped"}
SIGNS = {"min": "≥", "max": "≤", "unscored": "≤", "paired": "≥"}
SHARES = {
    "unscored": "the share of the baseline's scored documents that have no score in the run",
    "paired": "the smaller of the two runs' shares of documents that both have",
}


class Head(Struct, frozen=True):
    """A column: its head, its cell, what it means, whether it is a number, and when it gives way to a narrow screen."""

    head: str
    cell: Callable[[Gate], str]
    meaning: str = ""
    number: bool = True
    spare: int = 0


STATUS = Head("", lambda gate: WORDS[gate.passed])
NAMES = (
    Head("Tasks", lambda gate: gate.name, number=False),
    Head("Metric", lambda gate: gate.key.metric, number=False),
    Head("Filter", lambda gate: gate.key.filter, number=False),
)
NUMBER = Head(
    "number", lambda gate: spell_number((gate.name, gate.key))[2 if gate.key.filter == "none" else 3], number=False
)
"""All names in one column, as a limit would name it, where the screen is narrow."""
N = Head("n", lambda gate: f"{gate.n:,}" if gate.n else "", spare=3)
VERDICT = Head("verdict", lambda gate: gate.verdict, number=False)


def draw_gates(checked: Checked, *, width: int | None = None, colour: bool = False, markdown: bool = False) -> str:
    """The gates as tables, and in a line how it went.

    >>> draw_gates(Checked(run="new", gates=()))
    'passed: no gates\\n'
    """
    kinds = (
        (("min", "max"), _limits),
        (("baseline",), _against),
        (("unscored",), _shares),
        (("paired",), _shares),
    )
    found = [(page, [gate for gate in checked.gates if gate.kind in names]) for names, page in kinds]
    pages = [page(gates, checked) for page, gates in found if gates]
    counts = {word: sum(WORDS[gate.passed] == word for gate in checked.gates) for word in WORDS.values()}
    summary = ", ".join(f"{count:,} {word.lower()}" for word, count in counts.items() if count) or "no gates"
    notes = (Section("Notes:", checked.notes, "yellow"),) if checked.notes else ()
    if pages:
        pages[0] = replace(pages[0], lead=checked.lead, title=tuple(_title(checked)))
        pages[-1] = replace(pages[-1], sections=notes)
    drawn = [write_markdown(page) if markdown else draw_page(page, width=width, colour=colour) for page in pages]
    return "\n".join([*drawn, f"{'passed' if checked.passed else 'FAILED'}: {summary}\n"])


def _title(checked: Checked) -> Iterator[str]:
    for name, (path, model) in zip(("run", "baseline"), checked.runs, strict=False):
        yield f"{name}: {path}" + (f", {model}" if model else "")


def _limits(gates: Sequence[Gate], checked: Checked) -> Page:
    level = shown_level(checked.confidence)
    heads = (
        N,
        Head("Value", lambda gate: told_number(gate.value)),
        Head(f"{level} interval", lambda gate: told_interval(gate.ci), spare=2),
        Head("limit", _limit),
        VERDICT,
    )
    alpha = shown_percent(checked.alpha)
    if checked.strict:
        return _page(gates, heads, "a gate fails if the number itself is on the wrong side of the limit")
    rule = f"a gate fails if all of its {level} interval is on the wrong side of the limit"
    if len(gates) == 1:
        return _page(gates, heads, f"{rule}; a model exactly at the limit fails by luck in about {alpha} of all checks")
    luck = (
        f"not corrected for {len(gates):,} limits: each fails by luck in about {alpha} of all checks of a model that is"
        if checked.correction == "none"
        else f"corrected for {len(gates):,} limits (Bonferroni): some fails by luck in at most {alpha} of all checks of"
        " a model that is"
    )
    return _page(gates, heads, rule, f"{luck} exactly at all of them")


def _limit(gate: Gate) -> str:
    return f"{SIGNS[gate.kind]} {told_number(gate.limit)}"


def _against(gates: Sequence[Gate], checked: Checked) -> Page:
    level = shown_level(checked.difference_confidence or 0.0)
    tests = sum(gate.adjusted is not None for gate in gates)
    judged = sum(gate.difference_ci is not None for gate in gates)
    sure = (
        Head(f"{level} interval", lambda gate: " to ".join(map(signed, gate.difference_ci or ())), "of the change"),
    )
    tested = (
        Head(
            "p",
            lambda gate: shown_p(gate.p_value),
            "how often luck alone makes a run that is not worse look as much worse as this, or more so",
            spare=2,
        ),
        Head(
            "adjusted p",
            lambda gate: shown_p(gate.adjusted),
            f"corrected for {tests:,} {'test' if tests == 1 else 'tests together'} ({checked.correction}); a gate fails"
            f" if it is at most {checked.alpha:g}",
        ),
    )
    heads = (
        N,
        Head("run", lambda gate: told_number(gate.value), spare=1),
        Head("baseline", lambda gate: told_number(gate.baseline), spare=1),
        Head("change", lambda gate: signed(gate.difference), "run − baseline"),
        *(tested if checked.margin is None else sure),
        VERDICT,
    )
    corrected = "" if checked.correction == "none" else f", corrected for {judged:,} of them (Bonferroni)"
    rule = f"a gate fails if all of the interval is worse than the margin of {checked.margin or 0:g}{corrected}"
    return _page(gates, heads, *([rule] if checked.margin is not None else []))


def _shares(gates: Sequence[Gate], checked: Checked) -> Page:
    kind = gates[0].kind
    heads = (
        Head(kind, lambda gate: shown_percent(round(gate.value or 0.0, 4))),
        Head("limit", lambda gate: f"{SIGNS[kind]} {shown_percent(gate.limit or 0.0)}"),
        VERDICT,
    )
    return _page(gates, heads, f"{kind}: {SHARES[kind]}")


def _page(gates: Sequence[Gate], heads: Sequence[Head], *rules: str) -> Page:
    """From all columns to those that no verdict can do without, its names in one; no filters if all are ``none``."""
    filtered = any(gate.key.filter != "none" for gate in gates)
    names = [head for head in NAMES if head.head != "Filter" or filtered]
    levels = sorted({0, *(head.spare for head in heads)}, reverse=True)
    wide = (_grid(gates, [STATUS, *names, *_kept(heads, level)]) for level in levels[:-1])
    narrow = (_grid(gates, [STATUS, NUMBER, *_kept(heads, level)], 1, 20) for level in levels[1:] or levels)
    return Page(grids=(*wide, *narrow), legend=rules)


def _kept(heads: Sequence[Head], level: int) -> list[Head]:
    return [head for head in heads if head.spare <= level]


def _grid(gates: Sequence[Gate], heads: Sequence[Head], gap: int = 2, readable: int = 14) -> Grid:
    return Grid(
        heads=tuple(head.head for head in heads),
        numbers=tuple(head.number for head in heads),
        lines=tuple(tuple(head.cell(gate) for head in heads) for gate in gates),
        bold=tuple(gate.passed is False for gate in gates),
        gap=gap,
        legend=tuple(f"{head.head}: {head.meaning}" for head in heads if head.meaning),
        readable=readable,
    )
