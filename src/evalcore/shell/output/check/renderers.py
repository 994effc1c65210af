"""How gates are shown: tables, and JSON.

JSON, its keys stable::

    run, baseline  as they were given; baseline is null without one
    read           {path, model} of the run and of the baseline
    passed         whether no gate failed
    alpha          how often luck alone may fail some limit, and how often some number held against the baseline
    correction     for many gates: holm (limits: Bonferroni's), bh (the same), or none
    confidence     of the intervals that limits are judged by: 1 - 2 alpha / how many limits there are
    strict         whether limits hold for the numbers themselves
    margin         the drop that is allowed against the baseline, null for none
    shown          whether it must be shown that no drop is larger
    difference_confidence  of difference_ci: 1 - 2 alpha, with a margin 1 - 2 alpha / how many numbers are judged
    gates          {gate: min | max | baseline | unscored | paired | rules, task, metric, filter, passed (null: not
                    judged), verdict, n, unscored, value, limit, ci_low, ci_high (of the value; for limits), baseline
                    (its number), difference (value - baseline), difference_ci_low, difference_ci_high, p_value,
                    p_adjusted (of a regression, one-sided; if shown, p_value is that of "not worse by more than the
                    margin"), detectable (the drop that fails in 4 checks of 5; if shown, the margin that a run without
                    any change is shown to keep that often)}; what a kind of gate does not have is null. The value of an
                    unscored gate is the share of the baseline's scored documents that have no score in the run, that
                    of a paired gate the smaller of the two runs' shares of documents that both have
    notes          what else to know, in sentences; what leads the page comes first
"""

from __future__ import annotations

from pyrsistent import PMap, pmap

from evalcore.core.compare.gates import Gate
from evalcore.shell.compare.check import Checked
from evalcore.shell.output.check.gate_tables import draw_gates, write_gates
from evalcore.shell.output.terminal.screen import Renderer, plain_form
from evalcore.shell.safety.strict_json import dump_page


def _write_json(checked: Checked) -> str:
    """The gates as strict JSON."""
    read = zip(("run", "baseline"), checked.runs, strict=False)
    return dump_page(
        {
            "run": checked.run,
            "baseline": checked.baseline,
            "read": {name: {"path": path, "model": model or None} for name, (path, model) in read},
            "passed": checked.passed,
            "alpha": checked.alpha,
            "correction": checked.correction.name,
            "confidence": checked.confidence,
            "strict": checked.strict,
            "margin": checked.margin,
            "shown": checked.shown,
            "difference_confidence": checked.difference_confidence,
            "gates": [_describe_gate(gate) for gate in checked.gates],
            "notes": [*checked.lead, *checked.notes],
        }
    )


def _describe_gate(gate: Gate) -> dict[str, object]:
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
        "detectable": gate.detectable,
    }


RENDERERS: PMap[str, Renderer[Checked]] = pmap(
    {"table": Renderer(draw_gates), "markdown": plain_form(write_gates), "json": plain_form(_write_json)}
)
