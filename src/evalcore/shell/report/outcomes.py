"""What became of the documents of each task of a run: scored or not, and why not."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import to_builtins

from evalcore.core.ledger import count_outcomes
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.output.terminal.losses import find_losses
from evalcore.shell.report.gathered_run import GatheredRun

Plain = dict[str, object]
KINDS = ("scored", "unscorable", "failed", "not_emitted", "not_run")
MOST = 20
"""How many reasons of a kind are named; the rest are counted."""


def describe_outcomes(run: GatheredRun) -> dict[str, Plain]:
    """The documents of each task by outcome, with the reasons, the most frequent first."""
    found = {task.name: _fill(to_builtins(count_outcomes(task))) for task in run.report.tasks}
    told = find_part(run.results, "evalcore", "documents")
    for name in told:
        if name not in found:
            found[name] = _fill(dict(find_part(told, name)))
    for lost in find_losses(run.report):
        reasons = [[reason, count] for reason, count in _cut(lost.reasons)]
        found[lost.task][f"{lost.kind}_reasons"] = reasons
    return found


def _fill(counts: Plain) -> Plain:
    return {kind: count if isinstance(count := counts.get(kind), int) else 0 for kind in KINDS}


def _cut(reasons: tuple[tuple[str, int], ...]) -> Iterable[tuple[str, int]]:
    """The most frequent reasons, the others counted together."""
    yield from reasons[:MOST]
    if len(reasons) > MOST:
        yield f"{len(reasons) - MOST:,} other reasons", sum(count for _, count in reasons[MOST:])
