"""Gates as tables: those with a limit, those against the baseline, those on documents or rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from evalcore.core.compare.gates import Gate
from evalcore.shell.compare.check import Checked
from evalcore.shell.output.check.gate_text import show_level, show_value
from evalcore.shell.output.terminal.grid import Grid, GridColumn, Page, Section, draw_page, lay_grid, write_markdown
from evalcore.shell.output.terminal.number_text import (
    ADJUSTED_P,
    DETECTABLE,
    FILTER,
    METRIC,
    TASKS,
    VALUE,
    VERDICT,
    N,
    P,
    name_number,
    show_difference,
    show_interval,
    show_number,
    show_p,
    show_share,
)
from evalcore.shell.output.terminal.screen import PIPE, Screen

WORDS = {True: "passed", False: "FAILED", None: "skipped"}
SIGNS = {"min": "≥", "max": "≤", "unscored": "≤", "paired": "≥"}
SHARES = {
    "unscored": "the share of the baseline's scored documents that have no score in the run",
    "paired": "the smaller of the two runs' shares of documents in both",
}

FINDS = {
    False: "the smallest true drop that fails in 4 checks of 5",
    True: "the smallest margin that a run without any change is shown to keep in 4 checks of 5",
}

GateColumn = GridColumn[Gate]
STATUS = GateColumn("", lambda gate: WORDS[gate.passed])
NAMES = (
    GateColumn(TASKS, lambda gate: gate.name, number=False),
    GateColumn(METRIC, lambda gate: gate.key.metric, number=False),
    GateColumn(FILTER, lambda gate: gate.key.filter, number=False),
)
NUMBER = GateColumn(TASKS, lambda gate: name_number(gate.name, gate.key), number=False)
"""All names in one column, as a limit would name it, where the screen is narrow."""
COUNT = GateColumn(N, lambda gate: f"{gate.n:,}" if gate.n else "")
JUDGED = GateColumn(VERDICT, lambda gate: gate.verdict, number=False)


def draw_gates(checked: Checked, screen: Screen = PIPE) -> str:
    """The gates as tables, and in a line how it went.

    >>> draw_gates(Checked(run="new", gates=()))
    'passed: no gates\\n'
    """
    return "\n".join([*(draw_page(page, screen) for page in build_pages(checked)), summarise_gates(checked)])


def write_gates(checked: Checked) -> str:
    """The gates as tables of Markdown."""
    return "\n".join([*map(write_markdown, build_pages(checked)), summarise_gates(checked)])


def summarise_gates(checked: Checked) -> str:
    counts = {word: sum(WORDS[gate.passed] == word for gate in checked.gates) for word in WORDS.values()}
    summary = ", ".join(f"{count:,} {word.lower()}" for word, count in counts.items() if count) or "no gates"
    return f"{'passed' if checked.passed else 'FAILED'}: {summary}\n"


def build_pages(checked: Checked) -> list[Page]:
    kinds = (
        (("min", "max"), _show_limits),
        (("baseline",), _show_changes),
        (("unscored",), _show_shares),
        (("paired",), _show_shares),
        (("rules",), _show_rules),
    )
    sorted_gates = [(page, [gate for gate in checked.gates if gate.kind in names]) for names, page in kinds]
    pages = [page(gates, checked) for page, gates in sorted_gates if gates]
    if pages:
        pages[0] = replace(pages[0], lead=checked.lead, title=tuple(_list_runs(checked)))
        pages[-1] = replace(pages[-1], sections=(Section("Notes:", checked.notes, "yellow"),) if checked.notes else ())
    return pages


def _list_runs(checked: Checked) -> Iterator[str]:
    for name, (path, model) in zip(("run", "baseline"), checked.runs, strict=False):
        yield f"{name}: {path}" + (f", {model}" if model else "")


def _show_limits(gates: Sequence[Gate], checked: Checked) -> Page:
    level = show_level(checked.confidence)
    columns = (
        COUNT,
        GateColumn(VALUE, lambda gate: show_value(gate.value)),
        GateColumn(f"{level} interval", lambda gate: show_interval(*(gate.ci or (None, None)))),
        GateColumn("limit", lambda gate: f"{SIGNS[gate.kind]} {show_value(gate.limit)}"),
        JUDGED,
    )
    alpha = show_share(checked.alpha)
    if checked.strict:
        return _build_page(gates, columns, "a gate fails if the number itself is on the wrong side of the limit")
    rule = f"a gate fails if its whole {level} interval is on the wrong side of the limit"
    if len(gates) == 1:
        return _build_page(
            gates, columns, f"{rule}; a model exactly at the limit fails by luck in about {alpha} of all checks"
        )
    luck = (
        f"not corrected for {len(gates):,} limits: each fails by luck in about {alpha} of all checks of a model that is"
        if not checked.correction.corrects
        else f"corrected for {len(gates):,} limits (Bonferroni): any fails by luck in at most {alpha} of all checks of"
        " a model that is"
    )
    return _build_page(gates, columns, rule, f"{luck} exactly at all of them")


def _show_changes(gates: Sequence[Gate], checked: Checked) -> Page:
    level = show_level(checked.difference_confidence or 0.0)
    tests = sum(gate.adjusted is not None for gate in gates)
    judged = sum(gate.difference_ci is not None for gate in gates)
    sure = (
        GateColumn(
            f"{level} interval",
            lambda gate: " to ".join(map(show_difference, gate.difference_ci or ())),
            "of the change",
        ),
    )
    tested = (
        GateColumn(
            P,
            lambda gate: show_p(gate.p_value),
            "how often luck alone makes a run that is no worse look at least this much worse",
            spare=4,
        ),
        GateColumn(
            ADJUSTED_P,
            lambda gate: show_p(gate.adjusted),
            f"corrected for {tests:,} {'test' if tests == 1 else 'tests together'} ({checked.correction.name}); a gate"
            f" fails if it is at most {checked.alpha:g}",
            spare=3,
        ),
    )
    shown = (
        *sure,
        GateColumn(
            P,
            lambda gate: show_p(gate.p_value),
            "how often a run that is worse by exactly the margin looks at least this good; it is shown if that is at"
            f" most {checked.alpha:g}",
            spare=4,
        ),
    )
    columns = (
        COUNT,
        GateColumn("run", lambda gate: show_value(gate.value), spare=1),
        GateColumn("baseline", lambda gate: show_value(gate.baseline), spare=1),
        GateColumn("change", lambda gate: show_difference(gate.difference), "run − baseline"),
        *(tested if checked.margin is None else shown if checked.shown else sure),
        GateColumn(DETECTABLE, lambda gate: show_number(gate.detectable), FINDS[checked.shown], spare=2),
        JUDGED,
    )
    corrected = f", corrected for {judged:,} of them (Bonferroni)" if checked.correction.corrects else ""
    rule = f"a gate fails if the whole interval is worse than the margin of {checked.margin or 0:g}{corrected}"
    if checked.shown:
        rule = (
            f"a gate fails unless a drop of more than the margin of {checked.margin:g} is excluded; if any number is"
            f" worse by that much, all gates pass in at most {show_share(checked.alpha)} of all checks"
        )
    return _build_page(gates, columns, *([rule] if checked.margin is not None else []))


def _show_shares(gates: Sequence[Gate], checked: Checked) -> Page:
    kind = gates[0].kind
    columns = (
        GateColumn(kind, lambda gate: show_share(round(gate.value or 0.0, 4))),
        GateColumn("limit", lambda gate: f"{SIGNS[kind]} {show_share(gate.limit or 0.0)}"),
        JUDGED,
    )
    return _build_page(gates, columns, f"{kind}: {SHARES[kind]}")


def _show_rules(gates: Sequence[Gate], checked: Checked) -> Page:
    return _build_page(gates, (JUDGED,), "rules: what makes the scores must be the same (--rules-may-differ)")


def _build_page(gates: Sequence[Gate], columns: Sequence[GateColumn], *rules: str) -> Page:
    """From all columns to those that no verdict can do without, its names in one; no filters if all are ``none``."""
    filtered = any(gate.key.filter != "none" for gate in gates)
    names = NAMES if filtered else NAMES[:2]
    levels = sorted({0, *(column.spare for column in columns)}, reverse=True)
    wide = (_build_grid(gates, [STATUS, *names, *_keep_columns(columns, level)]) for level in levels[:-1] or levels)
    narrow = (
        _build_grid(gates, [STATUS, NUMBER, *_keep_columns(columns, level)], 1, 20) for level in levels[1:] or levels
    )
    return Page(grids=(*wide, *narrow), legend=rules)


def _keep_columns(columns: Sequence[GateColumn], level: int) -> list[GateColumn]:
    return [column for column in columns if column.spare <= level]


def _build_grid(gates: Sequence[Gate], columns: Sequence[GateColumn], gap: int = 2, readable: int = 14) -> Grid:
    return lay_grid(columns, gates, bold=lambda gate: gate.passed is False, gap=gap, readable=readable)
