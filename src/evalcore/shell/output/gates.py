"""Gates for people and programs: a table with a verdict on each, and JSON.

JSON, its keys stable::

    run, baseline  as they were given; baseline is null without one
    passed         whether no gate failed
    alpha          how often a gate may fail by luck alone; limits are judged by intervals of confidence 1 - 2 alpha
    correction     of the p-values against the baseline
    strict         whether limits hold for the numbers themselves
    gates          {gate: min | max | baseline, task, metric, filter, passed (null: not judged), verdict, n, unscored,
                    value, ci_low, ci_high (of the value; for a baseline, of the difference), limit (the baseline's
                    number there), difference, p_value, p_adjusted (of a regression, one-sided)}
    notes          what else to know, in sentences
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from evalcore.core.comparison import Comparison
from evalcore.core.gates import Gate
from evalcore.shell.output.compared.pair import shown_p, signed
from evalcore.shell.output.flat import shown_number, shown_percent
from evalcore.shell.output.grid import Grid, Page, Section, draw_page
from evalcore.shell.output.strict import dump_json

__all__ = ["Checked", "tell_gate", "tell_missing", "write_gates", "write_gates_json"]

WORDS = {True: "passed", False: "FAILED", None: "skipped"}
SIGNS = {"min": "≥", "max": "≤"}
BOUNDS = {"min": "at least", "max": "at most"}


class Checked(Struct, frozen=True, kw_only=True):
    """A run's gates, and what else to know."""

    run: str
    gates: tuple[Gate, ...]
    baseline: str | None = None
    alpha: float = 0.05
    correction: str = "holm"
    strict: bool = False
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not any(gate.passed is False for gate in self.gates)


def tell_gate(gate: Gate, alpha: float) -> str:
    """A gate in a sentence with its numbers.

    >>> from evalcore.core.records import MetricKey
    >>> gate = Gate(kind="min", name="t", key=MetricKey("acc"), passed=False, verdict="below", value=0.5, limit=0.6)
    >>> tell_gate(gate, 0.05)
    't acc: expected at least 0.6000, got 0.5000 (n = 0): below'
    """
    metric = gate.key.metric if gate.key.filter == "none" else str(gate.key)
    value = "no value" if gate.value is None else shown_number(gate.value)
    if gate.kind == "baseline":
        change = f", changed by {signed(gate.difference)}" if gate.difference is not None else ""
        p = f", p of a regression {shown_p(gate.p_value)}, adjusted {shown_p(gate.adjusted)}" if gate.adjusted else ""
        return (
            f"{gate.name} {metric}: {value} (n = {gate.n:,}) against {_number(gate.limit)}{change}{p}: {gate.verdict}"
        )
    within = f", {shown_percent(1 - 2 * alpha)} interval {_interval(gate)}" if gate.ci is not None else ""
    wanted = f"expected {BOUNDS[gate.kind]} {_number(gate.limit)}"
    return f"{gate.name} {metric}: {wanted}, got {value} (n = {gate.n:,}{within}): {gate.verdict}"


def _number(value: float | None) -> str:
    return "no value" if value is None else shown_number(value)


def _interval(gate: Gate) -> str:
    if gate.ci is None:
        return ""
    return " to ".join(signed(end) if gate.kind == "baseline" else shown_number(end) for end in gate.ci)


def tell_missing(comparison: Comparison) -> tuple[str, ...]:
    """What of a run and its baseline could not be held against each other.

    >>> tell_missing(Comparison(names=("new", "old"), lines=(), tasks_only_b=("gsm8k",)))
    ('not compared, only in the baseline: gsm8k',)
    """
    sides = (("the run", comparison.tasks_only_a), ("the baseline", comparison.tasks_only_b))
    tasks = (f"not compared, only in {side}: {', '.join(names)}" for side, names in sides if names)
    documents = (
        f"{one.task}: not compared, {len(one.only_a):,} documents only in the run and {len(one.only_b):,} only in the"
        f" baseline; {one.both:,} are in both"
        for one in comparison.documents
        if one.only_a or one.only_b
    )
    return (*tasks, *documents, *comparison.warnings)


def write_gates(checked: Checked, *, width: int | None = None, colour: bool = False) -> str:
    """The gates as tables: those with a limit, those against the baseline; and in a line how it went."""
    limits = [gate for gate in checked.gates if gate.kind != "baseline"]
    against = [gate for gate in checked.gates if gate.kind == "baseline"]
    pages = [
        *([_limits(limits, checked)] if limits else []),
        *([_against(against, checked)] if against else []),
    ]
    counts = {word: sum(WORDS[gate.passed] == word for gate in checked.gates) for word in WORDS.values()}
    summary = ", ".join(f"{count:,} {word.lower()}" for word, count in counts.items() if count)
    notes = (Section("Notes:", checked.notes, "yellow"),) if checked.notes else ()
    last = pages[-1]
    pages[-1] = Page(grids=last.grids, title=last.title, legend=last.legend, sections=notes)
    drawn = "\n".join(draw_page(page, width=width, colour=colour) for page in pages)
    return f"{drawn}\n{'passed' if checked.passed else 'FAILED'}: {summary}\n"


def _limits(gates: Sequence[Gate], checked: Checked) -> Page:
    lines = tuple(
        (*_head(gate), _number(gate.value), _interval(gate), f"{SIGNS[gate.kind]} {_number(gate.limit)}", gate.verdict)
        for gate in gates
    )
    interval = f"{shown_percent(1 - 2 * checked.alpha)} interval"
    grid = _grid(("", "Tasks", "Metric", "Filter", "n", "Value", interval, "limit", "verdict"), lines)
    wrong = "the number itself" if checked.strict else f"all of its {interval}"
    luck = f"; a model exactly at the limit fails by luck in about {shown_percent(checked.alpha)} of all checks"
    rule = f"a gate fails if {wrong} is on the wrong side of the limit" + ("" if checked.strict else luck)
    return Page(grids=(grid,), legend=(rule,))


def _against(gates: Sequence[Gate], checked: Checked) -> Page:
    lines = tuple(
        (*_head(gate), _number(gate.value), _number(gate.limit), *_difference(gate), gate.verdict) for gate in gates
    )
    heads = ("", "Tasks", "Metric", "Filter", "n", "run", "baseline", "run − baseline", "p", "adjusted p", "verdict")
    tests = sum(gate.adjusted is not None for gate in gates)
    rules = (
        "p: how often luck alone makes a run that is not worse look as much worse as this, or more so",
        f"adjusted p: corrected for {tests:,} tests together ({checked.correction}); a gate fails if it is at most "
        f"{checked.alpha:g}",
    )
    return Page(grids=(_grid(heads, lines),), legend=rules)


def _head(gate: Gate) -> tuple[str, ...]:
    return WORDS[gate.passed], gate.name, gate.key.metric, gate.key.filter, f"{gate.n:,}"


def _difference(gate: Gate) -> tuple[str, ...]:
    return signed(gate.difference), shown_p(gate.p_value), shown_p(gate.adjusted)


def _grid(heads: tuple[str, ...], lines: tuple[tuple[str, ...], ...]) -> Grid:
    """Names are left-aligned, and there is no column of filters if all are ``none``."""
    at = heads.index("Filter")
    kept = [i for i in range(len(heads)) if i != at or any(line[at] != "none" for line in lines)]
    names = ("", "Tasks", "Metric", "Filter", "verdict")
    return Grid(
        heads=tuple(heads[i] for i in kept),
        numbers=tuple(heads[i] not in names for i in kept),
        lines=tuple(tuple(line[i] for i in kept) for line in lines),
        bold=tuple(line[0] == WORDS[False] for line in lines),
    )


def write_gates_json(checked: Checked) -> str:
    """The gates as strict JSON."""
    told = {
        "run": checked.run,
        "baseline": checked.baseline,
        "passed": checked.passed,
        "alpha": checked.alpha,
        "correction": checked.correction,
        "strict": checked.strict,
        "gates": [_data(gate) for gate in checked.gates],
        "notes": list(checked.notes),
    }
    return dump_json(told, indent=2) + "\n"


def _data(gate: Gate) -> dict[str, object]:
    low, high = gate.ci if gate.ci is not None else (None, None)
    return {
        "gate": gate.kind,
        "task": gate.name,
        "metric": gate.key.metric,
        "filter": gate.key.filter,
        "passed": gate.passed,
        "verdict": gate.verdict,
        "n": gate.n,
        "unscored": gate.unscored,
        "value": gate.value,
        "ci_low": low,
        "ci_high": high,
        "limit": gate.limit,
        "difference": gate.difference,
        "p_value": gate.p_value,
        "p_adjusted": gate.adjusted,
    }
