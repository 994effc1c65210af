"""Rules that are not the same in two runs, in sentences and as gates; and rules that no log tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from evalcore.core.compare.gates import Gate, Number
from evalcore.core.compare.lines import Comparison
from evalcore.core.compare.mismatches import CHAIN, TABLES
from evalcore.core.compare.rules import RuleMismatch
from evalcore.core.records.task import MetricKey
from evalcore.shell.output.terminal.notes import group_texts

Labels = tuple[str, str]
OTHER_RULES = "so numbers may differ because of the rules, not of the models; --rules-may-differ makes this a note"
NAMED = 3
TOLD = {TABLES: "policy differs", CHAIN: "filters differ"}
"""How it is said that a rule differs, where not under its own name."""


def select_rules(comparison: Comparison, chosen: Callable[[Number], bool]) -> Comparison:
    """Keep the rules and doubts of the numbers that are chosen; of all if a group is, which rests on its tasks."""
    lines = comparison.lines
    if any(line.group for line in lines):
        return comparison
    tasks = {line.name for line in lines}

    def concerns(one: RuleMismatch) -> bool:
        return any(chosen((one.task, key)) for key in one.keys) if one.keys else one.task in tasks

    unknown = tuple(one for one in comparison.unknown_rules if one[0] in tasks)
    doubts = tuple((task, key, told) for task, key, told in comparison.doubts if chosen((task, key)))
    gone = {told for *_, told in comparison.doubts} - {told for *_, told in doubts}
    return replace(
        comparison,
        rules=tuple(filter(concerns, comparison.rules)),
        unknown_rules=unknown,
        doubts=doubts,
        warnings=tuple(told for told in comparison.warnings if told not in gone),
    )


def tell_rules(labels: Labels, mismatches: Iterable[RuleMismatch]) -> tuple[str, ...]:
    """Say in which rules two runs differ.

    >>> key = MetricKey("exact_match", "strict")
    >>> tell_rules(("A", "B"), [RuleMismatch("t", "regex_pattern of filter regex", "'a'", "'b'", (key,))])
    ("exact_match,strict: regex_pattern of filter regex differs: 'a' in A, 'b' in B (t)",)
    """
    return group_texts((one.task, tell_rule(labels, one)) for one in mismatches)


def tell_rule(labels: Labels, one: RuleMismatch) -> str:
    """Say in which rule two runs differ, and for which numbers."""
    left = len(one.keys) - NAMED
    keys = ", ".join(map(str, one.keys[:NAMED])) + (f" and {left} more" if left > 0 else "")
    about = f"{keys}: " if keys else ""
    return f"{about}{TOLD.get(one.part, f'{one.part} differs')}: {one.a} in {labels[0]}, {one.b} in {labels[1]}"


def tell_unknown_rules(labels: Sequence[str], comparison: Comparison) -> tuple[str, ...]:
    """Note whose rules could not be compared, and why.

    >>> one = Comparison(names=("a", "b"), lines=(), unknown_rules=(("t", 1, "no config"),))
    >>> tell_unknown_rules(("A", "B"), one)
    ('rules that could not be compared: B has no config (t)',)
    """
    reasons: dict[str, dict[str, list[str]]] = {}
    for task, at, why in comparison.unknown_rules:
        reasons.setdefault(task, {}).setdefault(why, []).append(labels[at])
    return group_texts(
        (task, "rules that could not be compared: " + "; ".join(_tell_owners(*one) for one in found.items()))
        for task, found in reasons.items()
    )


def _tell_owners(why: str, names: Sequence[str]) -> str:
    return f"{' and '.join(names)} {'has' if len(names) == 1 else 'have'} {why}"


def find_rule_gates(labels: Labels, mismatches: Iterable[RuleMismatch]) -> tuple[Gate, ...]:
    """Fail a gate for every task whose rules are not the same as those of the baseline."""
    about: dict[str, list[str]] = {}
    for one in mismatches:
        about.setdefault(one.task, []).append(tell_rule(labels, one))
    return tuple(
        Gate(kind="rules", name=task, key=MetricKey("rules"), passed=False, verdict="; ".join(found), n=None)
        for task, found in about.items()
    )
