"""The parts of lmms-eval's objects that the adapter reads, as small protocols."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

Key = tuple[str, str]
"""A metric and a filter."""

Row = Mapping[str, object]
"""A document in lmms-eval's log: its number, the document, and its metrics by name."""


class LmmsTask(Protocol):
    """A task's directions, and how it makes one number of its documents' scores."""

    def aggregation(self) -> Mapping[str, Callable[..., object]]: ...
    def higher_is_better(self) -> Mapping[str, bool]: ...


class LmmsOutput(Protocol):
    """lmms-eval's ``TaskOutput``: the scores of a task on one rank, or gathered from all.

    ``per_sample_metrics``, ``agg_metrics``, ``group_name`` and ``group_alias`` are read if they are there.
    """

    @property
    def task(self) -> LmmsTask: ...
    @property
    def task_name(self) -> str: ...
    @property
    def task_config(self) -> Mapping[str, object] | None: ...
    @property
    def version(self) -> str | int | float | None: ...
    @property
    def n_shot(self) -> int | None: ...
    @property
    def logged_samples(self) -> Sequence[Row]: ...
    @property
    def sample_metrics(self) -> Mapping[Key, Sequence[object]]: ...


class LmmsGroup(Protocol):
    """A key of lmms-eval's nested task dict that stands for a group."""

    @property
    def group_name(self) -> str: ...
    @property
    def config(self) -> Mapping[str, object]: ...
