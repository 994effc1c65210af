"""What is known of a log besides its documents, as data: enough to close its scores where the log is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from pyrsistent import PMap

from evalcore.core.partials.check import check_record
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import freeze_dict
from evalcore.shell.files.given import parse_path
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.logs.log import Logged, LogTask, Problem, Reader
from evalcore.shell.score.labels import find_recorded_name
from evalcore.shell.score.recipes import looks_wide
from evalcore.shell.score.units.log_plan import LogPlan

Plain = Mapping[str, object]
PLAIN = ("name", "output_type", "config", "model", "recorded", "warnings")
TOLD = ("scores", "wide", "told", "shares", "hints")


class LogHead(Struct, frozen=True):
    """A log without its documents, and what its recipe says: the recorded scores it measures by, whether a filter
    looks at all documents, its warnings, the scores that are 0 or 1 throughout, and which warnings are hints.
    """

    log: LogTask
    scores: tuple[str, ...] = ()
    wide: bool = False
    told: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


def take_head(planned: LogPlan) -> LogHead:
    """Take what is known of a log before it is scored."""
    recipe = planned.recipe
    scores = tuple(dict.fromkeys(key.metric for key in recipe.scores))
    wide = looks_wide(recipe.task, planned.asked.tables)
    return LogHead(planned.log, scores, wide, recipe.warnings, recipe.shares, recipe.hints)


def write_head(head: LogHead, readers: PMap[str, Reader]) -> Plain:
    """Write a head as plain data. Of the results beside a log, the configs of other tasks are left out."""
    log = head.log
    reader = next((name for name, one in readers.items() if one == log.reader), "")
    own, configs = find_recorded_name(log), find_part(log.results, "configs")
    kept = {"configs": {name: config if name == own else {} for name, config in configs.items()}} if configs else {}
    return freeze_dict(
        {name: getattr(log, name) for name in PLAIN}
        | {name: getattr(head, name) for name in TOLD}
        | {"path": str(log.path), "paths": [str(path) for path in log.paths], "reader": reader}
        | {"results": {**log.results, **kept}}
    )


def read_head(given: Plain, readers: PMap[str, Reader]) -> LogHead:
    """Read a head that ``write_head`` wrote; its log has no documents."""
    paths = given.get("paths")
    log = LogTask(
        path=parse_path(str(given["path"])),
        paths=tuple(parse_path(str(path)) for path in paths) if isinstance(paths, tuple) else (),
        rows=_no_rows,
        reader=readers.get(str(given.get("reader")), Reader()),
        results=find_part(given, "results"),
        **{name: given[name] for name in PLAIN},  # type: ignore[arg-type]  # as they were written
    )
    return LogHead(log, **{name: given[name] for name in TOLD})  # type: ignore[arg-type]


class HeadFields(Struct, frozen=True, kw_only=True):
    """What a written head holds at least."""

    name: str
    path: str
    output_type: str
    wide: bool
    config: Plain
    model: Plain
    recorded: Plain
    results: Plain
    keys: Plain
    warnings: tuple[str, ...]
    scores: tuple[str, ...]
    told: tuple[str, ...]
    shares: tuple[str, ...]
    hints: tuple[str, ...]


def check_head(given: Plain, where: str) -> None:
    """Refuse a head that ``write_head`` cannot have written."""
    try:
        check_record(HeadFields(**{name: given.get(name) for name in HeadFields.__struct_fields__}))  # type: ignore[arg-type]
        _check_names(given, "")
    except EvalError as wrong:
        raise EvalError(f"{where}: what it says of its log is damaged: {wrong}; score its log again") from wrong


def _check_names(given: object, place: str) -> None:
    """Refuse a mapping whose keys are not texts, however deep."""
    if isinstance(given, Mapping):
        for name, value in given.items():
            if not isinstance(name, str):
                raise EvalError(f"expected names{place}, got {str(name)[:60]!r}")
            _check_names(value, f" in {name}")
    elif isinstance(given, tuple | list):
        for value in given:
            _check_names(value, place)


def _no_rows() -> Iterator[Logged | Problem]:
    return iter(())
