"""Reports: the estimates of each task and of each group."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import field

from evalcore.core.groups.tree import Tree
from evalcore.core.plain_text import visible
from evalcore.core.records.column import Column
from evalcore.core.records.errors import EvalError, place, unknown
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.frozen_dict import Displayed, ShallowRecord
from evalcore.core.records.request import Options, freeze_options
from evalcore.core.records.task import MetricKey

Estimates = tuple[tuple[MetricKey, Estimate], ...]
Directions = tuple[tuple[str, bool | None], ...]
"""Whether more is better, by metric."""


class TaskReport(ShallowRecord, Displayed, frozen=True, kw_only=True):
    """A task's estimates in the order they were asked for, with the columns they rest on.

    ``directions`` are those that its results list, if other than its estimates'.
    """

    name: str
    estimates: Estimates = ()
    columns: tuple[tuple[MetricKey, Column], ...] = ()
    n_docs: int = 0
    n_original: int | None = None
    alias: str | None = None
    version: str | int | float | None = None
    num_fewshot: int | None = None
    config: Options = field(default_factory=freeze_options)
    directions: Directions | None = None
    warnings: tuple[str, ...] = ()

    @property
    def sample_len(self) -> int | None:
        """lm-eval's single count per task: the most documents that any metric was scored on; None if no metric says."""
        counts = [estimate.counts.scored or estimate.n for _, estimate in self.estimates] or [self.n_docs]
        return max((count for count in counts if count is not None), default=None)

    def get(self, key: MetricKey | str) -> Estimate | None:
        """The estimate under a key such as ``MetricKey("acc")`` or ``"acc,none"``."""
        return next((estimate for known, estimate in self.estimates if str(known) == str(key)), None)

    def __getitem__(self, key: MetricKey | str) -> Estimate:
        return _get_estimate(self.name, self.estimates, key)

    def column(self, key: MetricKey) -> Column | None:
        return next((column for known, column in self.columns if known == key), None)

    def __str__(self) -> str:
        return spell_estimates([self])

    def __repr__(self) -> str:
        return f"TaskReport({self.name!r}, {len(self.estimates)} estimates, n_docs={self.n_docs})"


class GroupReport(ShallowRecord, Displayed, frozen=True, kw_only=True):
    """A group's estimates, and what is missing."""

    name: str
    alias: str
    estimates: Estimates = ()
    sample_len: int | None = None
    version: str = "N/A"
    warnings: tuple[str, ...] = ()

    def get(self, key: MetricKey | str) -> Estimate | None:
        """The estimate under a key such as ``MetricKey("acc")`` or ``"acc,none"``."""
        return next((estimate for known, estimate in self.estimates if str(known) == str(key)), None)

    def __getitem__(self, key: MetricKey | str) -> Estimate:
        return _get_estimate(self.name, self.estimates, key)


class Report(ShallowRecord, Displayed, frozen=True, kw_only=True):
    """Everything: tasks in the order they were run, groups children first, and the trees they come from.

    >>> sums = TaskReport(name="sums", estimates=((MetricKey("acc"), Estimate(value=0.75, ci=(0.3006, 0.9544), n=4)),))
    >>> print(Report(tasks=(sums,)))
    task  metric  filter   value          interval  n
    sums  acc     none    0.7500  0.3006 to 0.9544  4
    """

    tasks: tuple[TaskReport, ...]
    groups: tuple[GroupReport, ...] = ()
    trees: tuple[Tree[TaskReport], ...] = ()

    def __str__(self) -> str:
        return spell_estimates([*reversed(self.groups), *self.tasks])

    def __repr__(self) -> str:
        return f"Report({len(self.tasks)} tasks, {len(self.groups)} groups)"

    def task(self, name: str) -> TaskReport:
        for task in self.tasks:
            if task.name == name:
                return task
        raise EvalError(f"no task {name!r} in this report; it has {', '.join(one.name for one in self.tasks)}")

    def group(self, name: str) -> GroupReport:
        for group in self.groups:
            if group.name == name:
                return group
        raise EvalError(f"no group {name!r} in this report; it has {', '.join(one.name for one in self.groups)}")


def _get_estimate(name: str, estimates: Estimates, key: MetricKey | str) -> Estimate:
    for known, estimate in estimates:
        if str(known) == str(key):
            return estimate
    raise unknown("metric", str(key), [str(known) for known, _ in estimates], place(name))


def spell_estimates(reports: Iterable[TaskReport | GroupReport]) -> str:
    """Every number of these reports as a small table, a line each; what a terminal would obey is escaped."""
    lines = [HEADS, *(_cells(one.name, key, estimate) for one in reports for key, estimate in one.estimates)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(cells, "<<<>>>", widths, strict=True))
        for cells in lines
    )


HEADS = ("task", "metric", "filter", "value", "interval", "n")


def _cells(name: str, key: MetricKey, estimate: Estimate) -> tuple[str, ...]:
    names = map(visible, (name, key.metric, key.filter))
    value = "-" if estimate.value is None else f"{estimate.value:.4f}"
    interval = "-" if estimate.ci is None else f"{estimate.ci[0]:.4f} to {estimate.ci[1]:.4f}"
    return (*names, value, interval, "-" if estimate.n is None else str(estimate.n))
