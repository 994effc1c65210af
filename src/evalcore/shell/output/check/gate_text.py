"""A gate in a sentence, with its numbers as people read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evalcore.core.compare.gates import Gate
from evalcore.shell.output.terminal.number_text import (
    name_metric,
    show_difference,
    show_interval,
    show_number,
    show_p,
    show_share,
)


def tell_gate(gate: Gate, confidence: float = 0.9, *, shown: bool = False) -> str:
    """A gate in a sentence with its numbers; ``shown``: as one that passes only what is shown.

    >>> from evalcore.core.records.task import MetricKey
    >>> gate = Gate(kind="min", name="t", key=MetricKey("acc"), passed=False, verdict="below", value=0.5, limit=0.6)
    >>> tell_gate(gate)
    't acc: expected at least 0.6000, got 0.5000 (n = 0): below'
    """
    finds = "margin that can be shown" if shown else "detectable drop"
    told = f" ({finds}: {show_number(gate.detectable)})" if gate.detectable is not None else ""
    return SENTENCES[gate.kind](gate, confidence) + told


def _tell_limit(bound: str) -> Callable[[Gate, float], str]:
    def tell(gate: Gate, confidence: float) -> str:
        low, high = gate.ci if gate.ci is not None else (None, None)
        within = f"{show_level(confidence)} interval {show_interval(low, high)}" if gate.ci is not None else ""
        counted = f"got {_show_counted(gate, within)}"
        return f"{_name_gate(gate)}: expected {bound} {show_value(gate.limit)}, {counted}: {gate.verdict}"

    return tell


def _tell_change(gate: Gate, confidence: float) -> str:
    if gate.value is None:
        return f"{_name_gate(gate)}: {gate.verdict}"
    change = f", changed by {show_difference(gate.difference)}" if gate.difference is not None else ""
    tested = gate.adjusted is not None
    p = f", p of a regression {show_p(gate.p_value)}, adjusted {show_p(gate.adjusted)}" if tested else ""
    against = f"{_show_counted(gate)} against {show_value(gate.baseline)}"
    return f"{_name_gate(gate)}: {against}{change}{p}: {gate.verdict}"


SENTENCES: Mapping[str, Callable[[Gate, float], str]] = {
    "min": _tell_limit("at least"),
    "max": _tell_limit("at most"),
    "baseline": _tell_change,
    "unscored": lambda gate, _: f"{_name_gate(gate)}: {gate.verdict}, expected at most {show_share(gate.limit or 0.0)}",
    "paired": lambda gate, _: f"{gate.name}: {gate.verdict}, expected at least {show_share(gate.limit or 0.0)}",
    "rules": lambda gate, _: f"{gate.name}: {gate.verdict}",
}


def _show_counted(gate: Gate, within: str = "") -> str:
    """Show a value with what it rests on, as far as that is known."""
    known = ", ".join(filter(None, ("" if gate.n is None else f"n = {gate.n:,}", within)))
    return f"{show_value(gate.value)} ({known})" if known else show_value(gate.value)


def _name_gate(gate: Gate) -> str:
    return f"{gate.name} {name_metric(gate.key)}"


def show_level(confidence: float) -> str:
    """A confidence in percent.

    >>> show_level(0.9), show_level(1 - 0.1 / 21)
    ('90 %', '99.52 %')
    """
    return show_share(round(confidence, 4 if confidence < 0.9999 else 9))


def show_value(value: float | None, decimals: int = 4) -> str:
    """A number, or that there is none.

    >>> show_value(0.5), show_value(None)
    ('0.5000', 'no value')
    """
    return show_number(value, decimals, none="no value")
