"""Logs opened, and each scored by its recipe; its samples are written as they are scored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.partials.partial import Partial
from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.score import Scored
from evalcore.shell.config.values import RunPath
from evalcore.shell.engines.engines import BY_SIZE, choose_engine
from evalcore.shell.engines.interface import SERIAL
from evalcore.shell.files.given import parse_path
from evalcore.shell.logs.log import LogTask, Problem
from evalcore.shell.logs.open import open_logs
from evalcore.shell.output.terminal.progress import UNSEEN, Progress
from evalcore.shell.score.labels import find_recorded_name
from evalcore.shell.score.pieces import claim_output
from evalcore.shell.score.recipes import choose_config
from evalcore.shell.score.units.gather import gather_scores, score_whole
from evalcore.shell.score.units.log_head import LogHead, take_head
from evalcore.shell.score.units.log_plan import LogPlan, ScorePlan, plan_log, select_chosen
from evalcore.shell.score.verdicts import share_scores

if TYPE_CHECKING:
    from evalcore.shell.run.prepare import Selected

Plain = Mapping[str, object]


class ScoredLog(Struct, frozen=True):
    """A log after scoring: its task, or a task for each value of a field, and the warnings.

    ``shares`` are recorded scores that are 0 or 1 throughout, whatever a reducer makes of them.
    """

    log: LogTask
    scored: Mapping[str, Scored]
    hashes: Mapping[str, str]
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


def score_logs(
    paths: Sequence[RunPath], asked: ScorePlan, shown: Progress
) -> tuple[tuple[ScoredLog, ...], Selected | None]:
    """Score every log that the paths hold; also return the tasks chosen for them, if any."""
    logs, asked, selected = open_chosen(paths, asked)
    parts = tuple(score_each(logs, asked, selected.configs if selected else {}, shown))
    if asked.group_by is not None:
        refuse_namesakes(parts)
    return parts, selected


def open_chosen(paths: Sequence[RunPath], asked: ScorePlan) -> tuple[tuple[LogTask, ...], ScorePlan, Selected | None]:
    """Open the logs that the paths hold; the plan then has the engine for their size and knows trusted code."""
    selected = select_chosen(asked) if asked.tasks else None
    logs = open_logs(
        paths,
        mapping=asked.columns,
        keep_going=asked.keep_going,
        scores=bool(asked.rules.scores),
        requests=asked.written is not None,  # only written down, never scored
        readers=asked.readers,
    )
    if asked.folder is not None:
        claim_output(asked.folder, logs, paths, overwrite=asked.overwrite)
    logs = tuple(choose_logs(logs, asked.only))
    engine = choose_engine(sum_sizes(logs)) if asked.engine is BY_SIZE else asked.engine
    return logs, replace(asked, engine=engine, code=FrozenDict(selected.trusted if selected else {})), selected


def sum_sizes(logs: Iterable[LogTask]) -> int:
    """Add up the bytes of the files of logs."""
    return sum(path.stat().st_size for log in logs for path in log.paths if path.is_file())


def plan_each(logs: Sequence[LogTask], asked: ScorePlan, configs: Mapping[str, Plain]) -> Iterator[LogPlan]:
    """Plan each log by the config chosen for it, if any, and by those of the recorded scores that it has."""
    for log, scores in zip(logs, share_scores(logs, asked.rules.scores), strict=True):
        own = replace(asked, rules=replace(asked.rules, scores=scores))
        yield plan_log(log, own, choose_config(log, configs))


def score_each(
    logs: Sequence[LogTask], asked: ScorePlan, configs: Mapping[str, Plain], shown: Progress = UNSEEN
) -> Iterator[ScoredLog]:
    """Score each log by its plan."""
    plans = plan_each(logs, asked, configs)
    if asked.engine is SERIAL and asked.kept is None:
        shown.stage("scoring", len(logs))
        for planned in plans:
            yield describe_scored(take_head(planned), score_whole(0, planned))
            shown.advance()
        return
    listed = list(plans)
    for planned, done in zip(listed, gather_scores(listed, asked, shown), strict=True):
        yield describe_scored(take_head(planned), done)


def refuse_namesakes(parts: Sequence[ScoredLog]) -> None:
    """Refuse values of a field that give a task the name of another log, or of a task of another log."""
    owner = {part.log.name: part.log.name for part in parts}
    for part in parts:
        for name in part.scored:
            other = owner.setdefault(name, part.log.name)
            if other != part.log.name:
                raise EvalError(
                    f"--group_by: {other} and {part.log.name} both have a task or group {name}; score these logs one "
                    f"at a time (--only {other}, then --only {part.log.name})"
                )


def choose_logs(logs: Sequence[LogTask], only: Sequence[str]) -> Sequence[LogTask]:
    """Choose the logs that match any glob; all if none is given."""
    for glob in only:
        if not any(_matches(glob, log) for log in logs):
            raise unknown("task of the logs", glob, [log.name for log in logs])
    return [log for log in logs if not only or any(_matches(glob, log) for glob in only)]


def _matches(glob: str, log: LogTask) -> bool:
    return fnmatchcase(log.name, glob) or fnmatchcase(find_recorded_name(log), glob)


def describe_scored(head: LogHead, done: Partial) -> ScoredLog:
    """Describe the scores of a log, with what was noticed on the way."""
    log = head.log
    wide = f"{log.name}: a filter looks at all documents at once, so all were held in memory"
    warnings = (*log.warnings, *head.told, *([wide] if head.wide else []), *tell_lost(log, dict(done.lost)))
    if not done.scored:  # how nothing was scored is of no use
        warnings = log.warnings if done.problems else (*log.warnings, f"{log.name}: {log.path} has no documents")
    shares = tuple(dict.fromkeys((*head.shares, *(name for name in head.scores if name not in done.beyond))))
    problems = tuple(Problem(parse_path(one[0]), *one[1:]) for one in done.problems)
    scored = FrozenDict((one.task.name, one) for one in done.scored)
    return ScoredLog(log, scored, FrozenDict(done.hashes), problems, warnings, shares, head.hints)


def tell_lost(log: LogTask, lost: Mapping[int, int]) -> list[str]:
    """Warn of epochs that ended in an error, and of repeats without a score.

    >>> from evalcore.shell.logs.log import Reader
    >>> reader = Reader(harness="Inspect")
    >>> log = LogTask(name="t", path=parse_path("t"), output_type="x", rows=lambda: iter(()), reader=reader)
    >>> tell_lost(log, {0: 1, 4: 2})
    ['t: epochs without an answer and a score: 3, in 2 documents, which count by their other epochs, as in Inspect']
    """
    if not lost:
        return []
    count = f"{sum(lost.values()):,}, in {len(lost):,} document{'s' * (len(lost) != 1)}"
    if not log.reader.harness:
        return [f"{log.name}: repeats without a score: {count}, which count by their other repeats"]
    epochs = f"epochs without an answer and a score: {count}, which count by their other epochs"
    return [f"{log.name}: {epochs}, as in {log.reader.harness}"]
