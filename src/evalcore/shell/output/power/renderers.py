"""How plans for the next run are shown: pages, JSON, and CSV with a row for every number."""

from __future__ import annotations

from collections.abc import Mapping

from pyrsistent import PMap

from evalcore.core.compare.power import Known, PowerPlan
from evalcore.core.records.task import MetricKey
from evalcore.shell.compare.power import Planned
from evalcore.shell.output.power.plan_page import build_page, find_question_part, spread_of_document
from evalcore.shell.output.terminal.flat import write_csv_rows
from evalcore.shell.output.terminal.grid import build_renderers
from evalcore.shell.output.terminal.screen import Renderer, plain_form
from evalcore.shell.safety.strict_json import dump_page


def _write_json(planned: Planned) -> str:
    """The plans as strict JSON; standard deviations are those of one document."""
    asked = planned.asked
    return dump_page(
        {
            "read": planned.read,
            "warnings": (*planned.lead, *planned.notes),
            "asked": {name: getattr(asked, name) for name in asked.__struct_fields__},
            "rows": [_describe_plan(plan) for plan in planned.plans],
        }
    )


def _write_csv(planned: Planned) -> str:
    r"""A row for every number, with a column for every number of repeats that was asked about.

    >>> from evalcore.core.compare.power import PowerGoal
    >>> _write_csv(Planned(plans=(), asked=PowerGoal(repeats=(1, 8)), read=())).strip().split(",")[-5:]
    ['n_needed', 'n_needed_with_1', 'n_needed_with_8', 'repeats_needed', 'reason']
    """
    needed = {"n_needed": None, **{f"n_needed_with_{k}": k for k in planned.asked.repeats}}
    rows = [_spread_row(plan, needed) for plan in planned.plans]
    return write_csv_rows(list(_spread_row(EMPTY, needed)), (row.values() for row in rows))


EMPTY = PowerPlan(known=Known(name="", key=MetricKey("")))


def _spread_row(plan: PowerPlan, needed: Mapping[str, int | None]) -> dict[str, object]:
    """The row of JSON, a cell for every count of documents in place of all."""
    counts, row = dict(plan.documents), _describe_plan(plan)
    spread = {"documents": {name: counts.get(k) for name, k in needed.items()}}
    return {head: cell for name, value in row.items() for head, cell in spread.get(name, {name: value}).items()}


def _describe_plan(plan: PowerPlan) -> dict[str, object]:
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
        "sd": spread_of_document(plan, known.stderr),
        "question_sd": spread_of_document(plan, find_question_part(plan)) if known.sampling is not None else None,
        "sampling_sd": spread_of_document(plan, known.sampling),
        "half_width": plan.half_width,
        "detectable": plan.finds,
        "at_best": plan.best,
        "documents": {"as now" if k is None else str(k): count for k, count in plan.documents},
        "repeats_needed": plan.more_repeats,
        "reason": known.reason or None,
    }


RENDERERS: PMap[str, Renderer[Planned]] = (
    build_renderers(build_page).set("json", plain_form(_write_json)).set("csv", plain_form(_write_csv))
)
