"""Gates for people and programs: what was checked, each gate in a sentence, tables (see ``gate_pages``), and JSON.

JSON, its keys stable::

    run, baseline  as they were given; baseline is null without one
    read           {path, model} of the run and of the baseline
    passed         whether no gate failed
    alpha          how often luck alone may fail some limit, and how often some number held against the baseline
    correction     for many gates: holm (limits: Bonferroni's), bh (the same), or none
    confidence     of the intervals that limits are judged by: 1 - 2 alpha / how many limits there are
    strict         whether limits hold for the numbers themselves
    margin         the drop that is allowed against the baseline, null for none
    difference_confidence  of difference_ci: 1 - 2 alpha, with a margin 1 - 2 alpha / how many numbers are judged
    gates          {gate: min | max | baseline | unscored | paired, task, metric, filter, passed (null: not judged),
                    verdict, n, unscored, value, limit, ci_low, ci_high (of the value; for limits), baseline (its
                    number), difference (value - baseline), difference_ci_low, difference_ci_high, p_value, p_adjusted
                    (of a regression, one-sided)}; what a kind of gate does not have is null. The value of an unscored
                    gate is the share of the baseline's scored documents that have no score in the run, that of a
                    paired gate the smaller of the two runs' shares of documents that both have
    notes          what else to know, in sentences; what leads the page comes first
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from evalcore.core.compare.gates import Gate
from evalcore.core.compare.lines import Comparison, Shared
from evalcore.shell.compare.alike import Alike
from evalcore.shell.compare.conditions import explain_pairing, model_of, tell_pairs, tell_settings
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.output.compare.pair_table import shown_p, signed
from evalcore.shell.output.files.strict_json import dump_json
from evalcore.shell.output.terminal.flat import shown_number, shown_percent

__all__ = [
    "Checked",
    "name_run",
    "tell_gate",
    "tell_missing",
    "tell_pairing",
    "tell_unlike",
    "write_gates",
    "write_gates_json",
]

BOUNDS = {"min": "at least", "max": "at most"}
SIDES = ("the run", "the baseline")


class Checked(Struct, frozen=True, kw_only=True):
    """A run's gates, and what else to know. ``runs`` are path and model of what was read.

    ``lead`` is what a reader must know before any gate.
    """

    run: str
    gates: tuple[Gate, ...]
    runs: tuple[tuple[str, str], ...] = ()
    baseline: str | None = None
    alpha: float = 0.05
    correction: str = "holm"
    confidence: float = 0.9
    difference_confidence: float | None = None
    strict: bool = False
    margin: float | None = None
    lead: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not any(gate.passed is False for gate in self.gates)


def name_run(run: Recorded) -> tuple[str, str]:
    """What was read: its path, in full where it has no name of its own, and its model."""
    return str(run.path if run.path.name else run.path.resolve()), model_of(run.results)


def tell_gate(gate: Gate, confidence: float = 0.9) -> str:
    """A gate in a sentence with its numbers.

    >>> from evalcore.core.records.task import MetricKey
    >>> gate = Gate(kind="min", name="t", key=MetricKey("acc"), passed=False, verdict="below", value=0.5, limit=0.6)
    >>> tell_gate(gate)
    't acc: expected at least 0.6000, got 0.5000 (n = 0): below'
    """
    metric = gate.key.metric if gate.key.filter == "none" else str(gate.key)
    named = f"{gate.name} {metric}"
    value = told_number(gate.value)
    if gate.kind == "unscored":
        return f"{named}: {gate.verdict}, expected at most {shown_percent(gate.limit or 0.0)}"
    if gate.kind == "paired":
        return f"{gate.name}: {gate.verdict}, expected at least {shown_percent(gate.limit or 0.0)}"
    if gate.kind == "baseline" and gate.value is None:
        return f"{named}: {gate.verdict}"
    if gate.kind == "baseline":
        change = f", changed by {signed(gate.difference)}" if gate.difference is not None else ""
        tested = gate.adjusted is not None
        p = f", p of a regression {shown_p(gate.p_value)}, adjusted {shown_p(gate.adjusted)}" if tested else ""
        return f"{named}: {value} (n = {gate.n:,}) against {told_number(gate.baseline)}{change}{p}: {gate.verdict}"
    within = f", {shown_level(confidence)} interval {told_interval(gate.ci)}" if gate.ci is not None else ""
    wanted = f"expected {BOUNDS[gate.kind]} {told_number(gate.limit)}"
    return f"{named}: {wanted}, got {value} (n = {gate.n:,}{within}): {gate.verdict}"


def shown_level(confidence: float) -> str:
    """A confidence as people read it.

    >>> shown_level(0.9), shown_level(1 - 0.1 / 21)
    ('90 %', '99.52 %')
    """
    return shown_percent(round(confidence, 4 if confidence < 0.9999 else 9))


def told_number(value: float | None) -> str:
    """A number, or that there is none.

    >>> told_number(0.5), told_number(None)
    ('0.5000', 'no value')
    """
    return "no value" if value is None else shown_number(value)


def told_interval(ci: tuple[float, float] | None) -> str:
    """Both ends.

    >>> told_interval((0.4, 0.6)), told_interval(None)
    ('0.4000 to 0.6000', '')
    """
    return "" if ci is None else " to ".join(map(shown_number, ci))


def tell_missing(comparison: Comparison) -> tuple[str, ...]:
    """What of a run and its baseline could not be held against each other.

    >>> tell_missing(Comparison(names=("new", "old"), lines=(), tasks_only_a=("gsm8k",)))
    ('not compared, only in the run: gsm8k',)
    """
    extra = comparison.tasks_only_a
    tasks = (f"not compared, only in the run: {', '.join(extra)}",) if extra else ()
    documents = (
        f"{one.task}: not compared, {len(one.only_a):,} documents only in the run and {len(one.only_b):,} only in the"
        f" baseline; {one.both:,} are in both"
        for one in comparison.documents
        if one.only_a or one.only_b
    )
    unscored = (
        f"{line.name} {line.key}: not compared, {line.unscored:,} documents without a score in one of the two"
        for line in comparison.lines
        if line.unscored and not line.group
    )
    return (*tasks, *documents, *unscored, *comparison.warnings)


def tell_unlike(run: Recorded, baseline: Recorded, comparison: Comparison) -> tuple[str, ...]:
    """By what else than their scores a run and its baseline differ."""
    return (*tell_settings(SIDES, (run, baseline)), *tell_pairs(comparison.documents))


def tell_pairing(
    run: Recorded, baseline: Recorded, documents: Iterable[Shared], alike: Mapping[str, Alike]
) -> tuple[str, ...]:
    """Tasks of which too few documents are in both, or by too little, and why."""
    return explain_pairing((SIDES[0], SIDES[1]), (run, baseline), documents, alike)


def write_gates(checked: Checked, *, width: int | None = None, colour: bool = False, markdown: bool = False) -> str:
    """The gates as tables, and in a line how it went."""
    from evalcore.shell.output.check.gate_tables import draw_gates  # draws with rich, which JSON does without

    return draw_gates(checked, width=width, colour=colour, markdown=markdown)


def write_gates_json(checked: Checked) -> str:
    """The gates as strict JSON."""
    read = zip(("run", "baseline"), checked.runs, strict=False)
    told = {
        "run": checked.run,
        "baseline": checked.baseline,
        "read": {name: {"path": path, "model": model or None} for name, (path, model) in read},
        "passed": checked.passed,
        "alpha": checked.alpha,
        "correction": checked.correction,
        "confidence": checked.confidence,
        "strict": checked.strict,
        "margin": checked.margin,
        "difference_confidence": checked.difference_confidence,
        "gates": [_data(gate) for gate in checked.gates],
        "notes": [*checked.lead, *checked.notes],
    }
    return dump_json(told, indent=2) + "\n"


def _data(gate: Gate) -> dict[str, object]:
    low, high = gate.ci if gate.ci is not None else (None, None)
    worst, best = gate.difference_ci if gate.difference_ci is not None else (None, None)
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
        "limit": gate.limit,
        "ci_low": low,
        "ci_high": high,
        "baseline": gate.baseline,
        "difference": gate.difference,
        "difference_ci_low": worst,
        "difference_ci_high": best,
        "p_value": gate.p_value,
        "p_adjusted": gate.adjusted,
    }
