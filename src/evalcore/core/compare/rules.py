"""Where the rules behind a run's scores come from, and a rule in which two runs differ."""

from __future__ import annotations

from msgspec import Struct

from evalcore.core.records.task import MetricKey
from evalcore.core.tables import EVALCORE, Tables


class RuleMismatch(Struct, frozen=True):
    """A rule behind numbers of a task that is not the same in two runs; ``a`` and ``b`` show it.

    ``keys`` are the numbers it is about; none if it is about all of the task's.
    """

    task: str
    part: str
    a: str
    b: str
    keys: tuple[MetricKey, ...] = ()


class RuleSource(Struct, frozen=True):
    """Where the rules behind a task's scores come from, besides the task itself.

    ``unknown`` says why they are not known, if they are not; ``unnamed`` are filters of which only the name is known.
    ``maker`` names the tables that made the scores (None: not ours), and ``tables`` are those that stand for them.
    ``code`` has the text, the name or the hash of each function, by what it is for.
    """

    unknown: str = ""
    maker: str | None = None
    tables: Tables = EVALCORE
    code: tuple[tuple[str, str], ...] = ()
    unnamed: frozenset[str] = frozenset()
