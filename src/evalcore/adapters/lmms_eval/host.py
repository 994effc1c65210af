"""What of lmms-eval's objects the adapter reads, as small protocols."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

__all__ = ["Key", "LmmsGroup", "LmmsOutput", "LmmsTask", "Row"]

Key = tuple[str, str]
"""A metric and a filter."""

Row = Mapping[str, object]
"""What lmms-eval logs of a document: its number, the document, and its metrics by name."""


class LmmsTask(Protocol):
    """A task's directions and how it makes one number of the scores of its documents."""

    def aggregation(self) -> Mapping[str, Callable[..., object]]: ...
    def higher_is_better(self) -> Mapping[str, bool]: ...


class LmmsOutput(Protocol):
    """lmms-eval's ``TaskOutput``: what one rank, or all of them gathered, found out about a task."""

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
