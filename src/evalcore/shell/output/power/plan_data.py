"""Plans for the next run as data for programs: JSON, and CSV with a row for every number."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from evalcore.core.compare.power import Asked, Plan
from evalcore.shell.output.files.strict_json import dump_json
from evalcore.shell.output.power.plan_page import per_document, question_part
from evalcore.shell.output.terminal.flat import csv_cell

__all__ = ["data_of", "write_csv", "write_json"]


def write_json(plans: Sequence[Plan], asked: Asked, read: Sequence[str], notes: Sequence[str] = ()) -> str:
    """The plans as strict JSON."""
    return dump_json(data_of(plans, asked, read, notes), indent=2) + "\n"


def write_csv(plans: Sequence[Plan], asked: Asked) -> str:
    r"""A row for every number, with a column for every number of repeats that was asked about.

    >>> write_csv([], Asked(repeats=(1, 8))).strip().split(",")[-5:]
    ['n_needed', 'n_needed_with_1', 'n_needed_with_8', 'repeats_needed', 'reason']
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*ROW[:-2], "n_needed", *(f"n_needed_with_{k}" for k in asked.repeats), *ROW[-2:]])
    for plan in plans:
        row, counts = _row(plan), dict(plan.documents)
        cells = [*(row[name] for name in ROW[:-2]), counts.get(None), *(counts.get(k) for k in asked.repeats)]
        writer.writerow([csv_cell(cell) for cell in (*cells, *(row[name] for name in ROW[-2:]))])
    return out.getvalue()


def data_of(
    plans: Sequence[Plan], asked: Asked, read: Sequence[str], notes: Sequence[str] = ()
) -> Mapping[str, object]:
    """The plans as plain data; standard deviations are those of one document.

    >>> data_of([], Asked(), ["out/results.json"])["rows"]
    []
    """
    return {
        "read": list(read),
        "warnings": list(notes),
        "asked": {name: getattr(asked, name) for name in asked.__struct_fields__},
        "rows": [_row(plan) for plan in plans],
    }


def _row(plan: Plan) -> Mapping[str, object]:
    known = plan.known
    return {
        "name": known.name,
        "kind": "group" if known.group else "task",
        "metric": known.key.metric,
        "filter": known.key.filter,
        "paired": known.paired,
        "n": known.n,
        "clusters": known.units if known.units != known.n else None,
        "repeats": known.repeats,
        "sd": per_document(plan, known.stderr),
        "question_sd": per_document(plan, question_part(plan)) if known.sampling is not None else None,
        "sampling_sd": per_document(plan, known.sampling),
        "half_width": plan.half_width,
        "detectable": plan.finds,
        "at_best": plan.best,
        "documents": {"as now" if k is None else str(k): count for k, count in plan.documents},
        "repeats_needed": plan.more_repeats,
        "reason": known.reason or None,
    }


ROW = (
    "name",
    "kind",
    "metric",
    "filter",
    "paired",
    "n",
    "clusters",
    "repeats",
    "sd",
    "question_sd",
    "sampling_sd",
    "half_width",
    "detectable",
    "at_best",
    "repeats_needed",
    "reason",
)
"""What a row of CSV has of one of JSON."""
