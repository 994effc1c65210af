"""The keys of ``score``, and the plan they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict

from pyrsistent import PMap

from evalcore.core.lm_eval.policy import POLICIES
from evalcore.core.records.errors import EvalError, require, unknown
from evalcore.core.records.frozen_dict import freeze_dict
from evalcore.core.tables import Tables
from evalcore.shell.config.plan import GIVEN, Pin, make_plan
from evalcore.shell.config.values import Names, RunPath, list_names
from evalcore.shell.engines.engines import find_engine
from evalcore.shell.engines.interface import Engine, MapUnits, Means, spread_by
from evalcore.shell.files.address import show_address
from evalcore.shell.files.given import parse_output, parse_path
from evalcore.shell.logs.declarations import DeclaredKeys, read_declarations
from evalcore.shell.logs.lm_eval.results import NO_MODEL
from evalcore.shell.logs.log import Reader
from evalcore.shell.logs.readers import READERS
from evalcore.shell.logs.tables.column_map import ColumnKeys, declare_columns
from evalcore.shell.score.rules import read_file, read_rules
from evalcore.shell.score.units.log_plan import ScorePlan


class PlanKeys(TypedDict, total=False):
    """The keys of a run config that also say how recorded answers are scored."""

    cluster: str | None
    policy: str | None
    confidence: float | None
    ci: str | None
    stderr: str | None
    on_unscorable: str | None
    bootstrap_iters: int | None
    limit: float | None
    include_path: Names | None
    trust: Sequence[str | Pin] | str | None


class RuleKeys(TypedDict, total=False):
    """Rules (``filter`` to ``unparsed``), groups (``group_by`` to ``groups``), and how logs are read."""

    filter: Names
    filter_name: str
    metric: Names
    reducer: Names
    filters: RunPath | Mapping[str, object] | None
    unparsed: Literal["wrong", "unscorable"] | None
    group_by: str | None
    weights: Literal["size", "equal"] | None
    only: Names
    groups: RunPath | None
    keep_going: bool
    tally: bool


class EngineKeys(TypedDict, total=False):
    """Who does the work: an engine or a ``map`` of the caller's own, how many workers, at which address, how many bytes
    each unit of it has, and how many seconds a document may take.
    """

    engine: str | Engine | None
    map: MapUnits | None
    workers: int | None
    address: str | None
    unit: int | None
    doc_timeout: float | None


class TableKeys(PlanKeys, RuleKeys, ColumnKeys, DeclaredKeys, total=False):
    """The keys on which scores and numbers of a table depend, besides its task."""


class NumberKeys(TableKeys, total=False):
    """The keys on which scores and numbers depend."""

    task: Names


class OutputKeys(TypedDict, total=False):
    """Where to write, what counts as a failure, and a host's own readers and tables."""

    allow_failures: int | str | None
    output_path: RunPath | None
    log_samples: bool
    parquet: bool
    overwrite: bool
    readers: PMap[str, Reader]
    tables: Tables


class MergeKeys(NumberKeys, EngineKeys, OutputKeys, total=False):
    """The keys on which numbers depend, who does the work, and where to write."""


class ScoreKeys(MergeKeys, total=False):
    """These, and the folder that keeps partial scores."""

    partials: RunPath | None


def plan_scoring(keys: ScoreKeys | MergeKeys) -> ScorePlan:
    """Read what the keys ask for.

    >>> plan_scoring({"metric": ["f1"], "limit": 10}).rules.metrics[0].name
    'f1'
    """
    known = ScoreKeys.__annotations__
    for key in keys:
        if key not in known:
            raise unknown("key", key, known)
    if keys.get("parquet"):  # a package that is missing, before anything is scored
        require("pyarrow.parquet", "parquet")
    tasks = list_names(keys.get("task", ()))
    shared = {key: keys[key] for key in (*PlanKeys.__annotations__, "doc_timeout") if key in keys}  # type: ignore[literal-required]
    given = {"model": NO_MODEL, "tasks": tasks or ["-"], **shared, "allow_failures": keys.get("allow_failures")}
    tables = keys.get("tables")
    plan = make_plan(given, GIVEN, "", tables).plan
    folder, groups, given_filters = keys.get("output_path"), keys.get("groups"), keys.get("filters")
    filters = read_file(parse_path(given_filters)) if isinstance(given_filters, str | Path) else given_filters
    kept, (engine, means) = keys.get("partials"), plan_engine(keys)
    return ScorePlan(
        plan=plan,
        rules=read_rules(
            steps=list_names(keys.get("filter", ())),
            name=keys.get("filter_name"),
            metrics=list_names(keys.get("metric", ())),
            reducers=list_names(keys.get("reducer", ())),
            scores=list_names(keys.get("score", ())),
            unparsed=keys.get("unparsed") or "wrong",
            declared=read_declarations(keys),
            listed=filters or {},
            tables=tables or POLICIES[plan.policy],
        ),
        columns=declare_columns(keys),
        tasks=tasks,
        group_by=keys.get("group_by"),
        by_size=keys.get("weights") != "equal",
        groups=None if groups is None else parse_path(groups),
        only=list_names(keys.get("only", ())),
        folder=parse_output(folder) if folder else None,
        parquet=keys.get("parquet", False),
        overwrite=keys.get("overwrite", False),
        keep_going=keys.get("keep_going", False),
        tally=keys.get("tally", False),
        readers=keys.get("readers", READERS),
        samples=keys.get("log_samples", True),
        engine=engine,
        means=means,
        kept=parse_output(kept) if isinstance(kept, str | Path) else None,
        keys=freeze_dict({**_keep_numbers(keys), **({"filters": filters} if filters else {})}),
    )


def plan_engine(keys: EngineKeys) -> tuple[Engine, Means]:
    """Find the engine that the keys ask for, and its means."""
    workers, address, unit = keys.get("workers"), keys.get("address"), keys.get("unit")
    for name, given in (("workers", workers), ("unit", unit)):
        if given is not None and given < 1:
            raise EvalError(f"expected --{name} to be a positive integer, got {given}")
    own, means = keys.get("map"), Means(workers=workers, address=address, unit=unit)
    return spread_by(own) if own else find_engine(keys.get("engine")), means


def _keep_numbers(keys: NumberKeys) -> dict[str, object]:
    """Keep the keys on which numbers depend, as plain data."""
    found = {key: keys[key] for key in NumberKeys.__annotations__ if keys.get(key)}  # type: ignore[literal-required]
    return {key: show_address(str(value)) if isinstance(value, str | Path) else value for key, value in found.items()}
