"""Gates as tables: those with a limit, those against the baseline, those on documents or rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from evalcore.core.compare.gates import Gate
from evalcore.shell.compare.check import Checked
from evalcore.shell.output.check.gate_text import show_level, show_value
from evalcore.shell.output.terminal.grid import Grid, GridColumn, Page, Section, draw_page, lay_grid, write_markdown
from evalcore.shell.output.terminal.number_table import NumberName, build_name_columns
from evalcore.shell.output.terminal.number_text import (
    ADJUSTED_P,
    DETECTABLE,
    VALUE,
    VERDICT,
    N,
    P,
    show_difference,
    show_ends,
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
        return _build_page(
            gates, checked, columns, "a gate fails if the number itself is on the wrong side of the limit"
        )
    rule = f"a gate fails if its whole {level} interval is on the wrong side of the limit"
    if len(gates) == 1:
        return _build_page(
            gates,
            checked,
            columns,
            f"{rule}; a model exactly at the limit fails by luck in about {alpha} of all checks",
        )
    luck = (
        f"not corrected for {len(gates):,} limits: each fails by luck in about {alpha} of all checks of a model that is"
        if not checked.correction.corrects
        else f"corrected for {len(gates):,} limits (Bonferroni): any fails by luck in at most {alpha} of all checks of"
        " a model that is"
    )
    return _build_page(gates, checked, columns, rule, f"{luck} exactly at all of them")


def _show_changes(gates: Sequence[Gate], checked: Checked) -> Page:
    judged = sum(gate.difference_ci is not None for gate in gates)
    corrected = f", corrected for {judged:,} of them (Bonferroni)" if checked.correction.corrects else ""
    rule = f"a gate fails if the whole interval is worse than the margin of {checked.margin or 0:g}{corrected}"
    if checked.shown:
        rule = (
            f"a gate fails unless a drop of more than the margin of {checked.margin:g} is excluded; if any number is"
            f" worse by that much, all gates pass in at most {show_share(checked.alpha)} of all checks"
        )
    rules = [rule] if checked.margin is not None else []
    wide, narrow = (_build_change_columns(gates, checked, decimals) for decimals in (4, 3))
    return _build_page(gates, checked, wide, *rules, narrow=narrow)


def _build_change_columns(gates: Sequence[Gate], checked: Checked, decimals: int) -> list[GateColumn]:
    """The change with its interval; on a narrow screen p-values go first, and the run's number is the last to stay."""
    alone = "; not corrected for the number of rows" if checked.margin is None and len(gates) > 1 else ""
    return [
        COUNT,
        GateColumn("run", lambda gate: show_value(gate.value, decimals)),
        GateColumn("baseline", lambda gate: show_value(gate.baseline, decimals), spare=1),
        GateColumn("change", lambda gate: show_difference(gate.difference, decimals), "run − baseline"),
        GateColumn(
            f"{show_level(checked.difference_confidence or 0.0)} interval",
            lambda gate: show_ends(gate.difference_ci, decimals),
            f"of the change{alone}",
        ),
        *_build_test_columns(gates, checked),
        GateColumn(DETECTABLE, lambda gate: show_number(gate.detectable, decimals), FINDS[checked.shown], spare=2),
        JUDGED,
    ]


def _build_test_columns(gates: Sequence[Gate], checked: Checked) -> list[GateColumn]:
    """The p-values by which gates are judged, if they are judged by any."""
    if checked.margin is not None and not checked.shown:
        return []
    tests = sum(gate.adjusted is not None for gate in gates)
    told = "how often luck alone makes a run that is no worse look at least this much worse"
    if checked.shown:
        told = (
            "how often a run that is worse by exactly the margin looks at least this good; it is shown if that is at"
            f" most {checked.alpha:g}"
        )
    together = (
        f"corrected for {tests:,} {'test' if tests == 1 else 'tests together'} ({checked.correction.name}); a gate"
        f" fails if it is at most {checked.alpha:g}"
    )
    adjusted = GateColumn(ADJUSTED_P, lambda gate: show_p(gate.adjusted), together, spare=3)
    return [
        GateColumn(P, lambda gate: show_p(gate.p_value), told, spare=4),
        *([] if checked.shown else [adjusted]),
    ]


def _show_shares(gates: Sequence[Gate], checked: Checked) -> Page:
    kind = gates[0].kind
    columns = (
        GateColumn(kind, lambda gate: show_share(round(gate.value or 0.0, 4))),
        GateColumn("limit", lambda gate: f"{SIGNS[kind]} {show_share(gate.limit or 0.0)}"),
        JUDGED,
    )
    return _build_page(gates, checked, columns, f"{kind}: {SHARES[kind]}")


def _show_rules(gates: Sequence[Gate], checked: Checked) -> Page:
    return _build_page(gates, checked, (JUDGED,), "rules: what makes the scores must be the same (--rules-may-differ)")


def _build_page(
    gates: Sequence[Gate],
    checked: Checked,
    columns: Sequence[GateColumn],
    *rules: str,
    narrow: Sequence[GateColumn] | None = None,
) -> Page:
    """From all columns to those that no verdict can do without, its names in one; no filters if all are ``none``."""
    aliases = checked.aliases

    def name(gate: Gate) -> NumberName:
        return NumberName(aliases.get(gate.name, gate.name), gate.key)

    names, joined = (build_name_columns(name, gates, joined=joined) for joined in (False, True))
    levels = sorted({0, *(column.spare for column in columns)}, reverse=True)
    few = columns if narrow is None else narrow
    return Page(
        grids=(
            *(_build_grid(gates, [STATUS, *names, *_keep_columns(columns, at)]) for at in levels[:-1] or levels),
            *(_build_grid(gates, [STATUS, *joined, *_keep_columns(few, at)], 1, 18) for at in levels[1:] or levels),
        ),
        legend=rules,
    )


def _keep_columns(columns: Sequence[GateColumn], level: int) -> list[GateColumn]:
    return [column for column in columns if column.spare <= level]


def _build_grid(gates: Sequence[Gate], columns: Sequence[GateColumn], gap: int = 2, readable: int = 14) -> Grid:
    return lay_grid(columns, gates, bold=lambda gate: gate.passed is False, gap=gap, readable=readable)
