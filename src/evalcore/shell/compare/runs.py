"""A run to compare: the scores that its log has, or those that ``score`` gives its answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec.structs import replace
from pyrsistent import PMap

from evalcore.core.compare.lines import ComparisonSide
from evalcore.core.compare.rules import RuleSource
from evalcore.core.records.errors import EvalError
from evalcore.core.records.score import Scored
from evalcore.core.tables import Tables
from evalcore.shell.logs.lm_eval.rows import read_sample_rows, read_value
from evalcore.shell.logs.log import RECORDED, Logged, LogTask, Reader
from evalcore.shell.logs.open import open_logs
from evalcore.shell.logs.readers import READERS
from evalcore.shell.logs.runs.directions import point_column
from evalcore.shell.logs.runs.identity import Matching
from evalcore.shell.logs.runs.log_table import LogTable, drop_written, tabulate_log, write_target
from evalcore.shell.logs.runs.run_record import Recorded, cluster_documents, read_sample_run
from evalcore.shell.logs.runs.source import RunFiles, find_run, tell_newest
from evalcore.shell.logs.runs.tasks import TAKEN
from evalcore.shell.logs.search import Searched
from evalcore.shell.logs.tables.column_map import ColumnMap
from evalcore.shell.output.files.results import build_results
from evalcore.shell.run.close import close_groups
from evalcore.shell.score.labels import gather_facts
from evalcore.shell.score.report import close_logs, tell_numbers
from evalcore.shell.score.scored_log import ScoredLog, score_each
from evalcore.shell.score.units.score_keys import ScoreKeys, plan_scoring

IDLE_REDUCER = (
    "--reducer had no effect: the scores of this run are reduced; `evalcore score RUN --reducer` does it again"
)
RecordedDoc = tuple[int, object, object]
"""The number, the fields and the target of a document."""


def read_recorded(
    path: Path,
    *,
    cluster: str | None = None,
    match: Sequence[str] = (),
    texts: bool = True,
    columns: ColumnMap | None = None,
    reducers: Sequence[str] = (),
    readers: PMap[str, Reader] = READERS,
    tables: Tables | None = None,
    known_by: Literal["content", "bytes", "number"] = "content",
) -> Recorded:
    """Read a run with its scores: a run folder of evalcore, an output of lm-eval, or a log of any format.

    ``cluster`` names the field or template of a document by which documents belong together, where the run did not.
    ``match`` names the fields that make two documents the same; without any, ids, prompts and all that they say count.
    Without ``texts`` no line of a document is kept for people, which is quicker. ``columns`` declares those of a table,
    ``reducers`` what reduces several scores of a document; ``tables`` are a host's own, if the run was scored by them.
    Documents of sample logs may be ``known_by`` the bytes of their rows or their number alone, which is quicker.

    >>> read_recorded(Path("no/such/run"))
    Traceback (most recent call last):
    evalcore.EvalError: no/such/run: no such file or folder; expected an evalcore run folder, ...
    """
    matching = Matching(cluster, tuple(match), texts, known_by)
    searched = Searched(readers, columns, tables, tuple(reducers))
    files = find_run(path, searched)
    if files.others:
        return _score_run(path, files, matching, searched)
    run = read_sample_run(path, files, matching, tables)
    return replace(run, warnings=(*run.warnings, IDLE_REDUCER)) if searched.reducers else run


def _score_run(path: Path, files: RunFiles, matching: Matching, searched: Searched) -> Recorded:
    """The newest log of each task of a run, scored by the recipe that ``score`` chooses for it."""
    columns, requests = searched.columns, not matching.match
    scores = columns.scores if columns is not None else ()
    own: ScoreKeys = {} if searched.tables is None else {"tables": searched.tables}
    asked = replace(plan_scoring({"score": scores, "reducer": searched.reducers, **own}), columns=columns)
    opened = [
        log
        for file in files.others
        for log in open_logs([file], mapping=columns, scores=bool(scores), requests=requests, readers=searched.readers)
    ]
    logs = tuple({log.name: log for log in opened}.values())
    scored = {part.log.name: part for part in score_each(logs, asked, {})}
    read = {log.name: _tabulate(log, matching) for log in logs}
    tasks = close_logs(list(scored.values()), asked.plan, asked.tables)
    results = build_results(
        close_groups(tasks, (), asked.plan, asked.tables), gather_facts(logs, asked.plan, asked.tables, {})
    )
    newest = (tell_newest(path),) if len(logs) < len(opened) else ()
    warnings = [warning for part in scored.values() for warning in part.warnings if warning not in part.hints]
    warnings += tell_numbers(list(scored.values()), tasks, asked.tables) if asked.unchanged else ()
    return Recorded(
        name=files.name,
        path=path,
        side=ComparisonSide(
            files.name,
            tuple(_as_recorded(part, read[name], results, asked.tables) for name, part in scored.items()),
            {name: table.documents for name, table in read.items()},
            sources={name: _find_source(part, asked.tables) for name, part in scored.items()},
        ),
        results=results,
        texts={name: table.texts for name, table in read.items()},
        warnings=tuple(dict.fromkeys((*newest, *warnings))),
        fields={name: table.fields for name, table in read.items()},
        match=matching.match,
        files={log.name: log.paths for log in logs},
        searched=searched,
        tables=searched.tables,
        options={name: table.options for name, table in read.items()},
    )


def _tabulate(log: LogTask, matching: Matching) -> LogTable:
    table = tabulate_log(_documents(log), log.written, log.path, matching)
    if not table.documents:
        raise EvalError(f"{log.path}: no documents")
    return table


def _documents(log: LogTask) -> Iterator[Logged]:
    return (row for row in log.rows() if isinstance(row, Logged))


def _as_recorded(part: ScoredLog, table: LogTable, results: Mapping[str, object], tables: Tables) -> Scored:
    """The scores of a task with the directions that its results have."""
    name = part.log.name
    scored, known = part.scored[name], results.get("higher_is_better")
    own = known.get(name) if isinstance(known, Mapping) else None
    directions = own if isinstance(own, Mapping) else {}
    columns = tuple(point_column(column, directions, tables.metrics) for column in scored.columns)
    return replace(scored, columns=columns, clusters=cluster_documents(name, table.documents))


def _find_source(part: ScoredLog, tables: Tables) -> RuleSource:
    """Where the rules of a log come from that was scored here: they are its task's, unless it recorded the scores."""
    if part.scored[part.log.name].task.config.get("process_results") == RECORDED:
        return RuleSource(TAKEN)
    return RuleSource(maker=tables.name, tables=tables)


def read_docs(run: Recorded, task: str) -> Iterator[RecordedDoc]:
    """Read the documents of a task once more, each once."""
    if run.searched is None:
        yield from _read_sample_docs(run.files[task])
        return
    for log in open_logs(run.files[task], mapping=run.searched.columns, readers=run.searched.readers):
        if log.name == (run.renamed or task):
            for row in _documents(log):
                yield row.doc_id, drop_written(row, log.written), write_target(row.gold)


def _read_sample_docs(files: Sequence[Path]) -> Iterator[RecordedDoc]:
    seen: set[int] = set()
    for row in read_sample_rows(*files):
        if row.key not in seen:
            seen.add(row.key)
            yield row.key, read_value(row.fields, "doc"), read_value(row.fields, "target")
