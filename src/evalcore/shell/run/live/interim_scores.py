"""Numbers of the documents that are answered so far, by the code that makes the final ones. Provisional: a run asks
its longest questions first, so these documents are no random sample.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np
from msgspec import Struct
from toolz import unique

from evalcore.core.answers.table import AnswerTable, Requests
from evalcore.core.groups.edit import list_groups
from evalcore.core.groups.tree import Group, Tree, leaves
from evalcore.core.lm_eval.policy import POLICIES
from evalcore.core.pipeline import score_task
from evalcore.core.records.array import Array
from evalcore.core.records.report import TaskReport
from evalcore.core.records.request import Options, Reply, Sample
from evalcore.core.records.task import MetricKey, MetricSpec, Task
from evalcore.core.tables import Tables
from evalcore.shell.answerlog.line import Withdrawn
from evalcore.shell.config.plan import Plan
from evalcore.shell.output.terminal.number_rows import NumberRow, drop_repeats, list_rows
from evalcore.shell.output.terminal.number_text import name_metric, show_interval, show_number
from evalcore.shell.prompts.ready_task import Built
from evalcore.shell.run.close import close_groups, close_task
from evalcore.shell.safety.timer import TimeUp, reaches_timer, run_within

MOST = 4
"""How many numbers are shown: those of groups before those of their tasks."""

HEAD = "provisional, of the documents answered so far:"
UNHEARD = Withdrawn("not asked yet")


class InterimScores(Struct, frozen=True, eq=False):
    """Makes lines of the numbers so far, of tasks that no code of the user's scores: that has a budget of its own."""

    tasks: tuple[Built, ...]
    keys: Mapping[str, Sequence[str]]
    trees: tuple[Tree[Options], ...]
    plan: Plan
    tables: Tables

    def __call__(self, replies: Mapping[str, Reply], seconds: float) -> tuple[str, ...]:
        """A line for each number, within so many seconds; none where they cannot be made yet, or not in time."""
        if not reaches_timer():
            return ()
        try:
            return run_within(seconds, self._tell, replies)
        except (Exception, TimeUp):  # the run itself says what is wrong, when it scores
            return ()

    def _tell(self, replies: Mapping[str, Reply]) -> tuple[str, ...]:
        found = [self._close(built, replies) for built in self.tasks if is_ours(built.task, self.tables)]
        done = {one.name: one for one in found if one is not None}
        report = close_groups(done.values(), _list_ready(self.trees, done), self.plan, self.tables)
        numbers = [row for row in drop_repeats(list_rows(report)) if row.metric and row.value is not None]
        first = sorted(numbers, key=lambda row: row.depth)
        more = (f"and {len(numbers) - MOST} more numbers",) if len(numbers) > MOST else ()
        return (HEAD, *map(tell_number, first[:MOST]), *more) if numbers else ()

    def _close(self, built: Built, replies: Mapping[str, Reply]) -> TaskReport | None:
        samples, answers = take_answered(built, self.keys[built.task.name], replies)
        if not samples:
            return None
        return close_task(score_task(built.task, samples, answers, tables=self.tables), self.plan, self.tables)


def tell_number(row: NumberRow) -> str:
    """A number that is not final, in a line.

    >>> row = NumberRow(name="t", alias="t", metric="acc", filter="raw", value=0.6124, low=0.57, high=0.65, n=480)
    >>> tell_number(row)
    't acc,raw 0.612 (0.570 to 0.650), n 480'
    """
    interval = show_interval(row.low, row.high, 3)
    value = show_number(row.value, 3) + f" ({interval})" * bool(interval)
    return f"{row.alias} {name_metric(MetricKey(row.metric, row.filter))} {value}, n {row.n:,}"


def take_answered(built: Built, keys: Sequence[str], replies: Mapping[str, Reply]) -> tuple[list[Sample], AnswerTable]:
    """The documents whose every question has a reply, with these."""
    asked, docs, counts = built.asked, built.asked.docs.ints, built.asked.repeats.ints
    heard = np.array([not isinstance(replies.get(key, UNHEARD), Withdrawn) for key in keys], np.bool_)
    whole = ~np.isin(docs, docs.repeat(counts)[~heard])
    kept = Requests(asked.task, Array(docs[whole]), Array(asked.idxs.ints[whole]), Array(counts[whole]))
    answered = frozenset(docs[whole].tolist())
    texts = [replies[key] for key, here in zip(keys, whole.repeat(counts).tolist(), strict=True) if here]
    return [sample for sample in built.samples if sample.doc_id in answered], kept.answered(texts)


def is_ours(task: Task, tables: Tables) -> bool:
    """Whether nothing but evalcore's own code scores a task, document by document."""
    specs: list[MetricSpec] = [*task.metrics, *(spec for one in task.filters for spec in one.metrics or ())]
    steps = [step for one in task.filters for step in one.steps]
    own = (
        task.process_results,
        *(part for spec in specs for part in (spec.function, spec.aggregation, *spec.reducers)),
        *(option for step in steps for option in step.options.values()),
    )
    return any(tables is known for known in POLICIES.values()) and not any(map(callable, own))


def _list_ready(trees: Sequence[Tree[Options]], done: Container[str]) -> list[Group[Options]]:
    """The groups, parents first, each of whose tasks has a number, and that no code of the user's averages."""
    return [
        group
        for group in unique(list_groups(trees), key=lambda group: group.name)
        if all(leaf.name in done for leaf in leaves(group))
        and not any(callable(metric.aggregation) for one in list_groups([group]) for metric in one.metrics)
    ]
