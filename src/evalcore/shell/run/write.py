"""What is left in a folder: samples, results, and nothing of an earlier run that is not of these results."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.groups.tree import Tree
from evalcore.core.records.report import Report, TaskReport
from evalcore.core.records.request import Options
from evalcore.core.records.score import Scored
from evalcore.core.tables import Tables
from evalcore.shell.config.plan import Plan
from evalcore.shell.files.given import parse_path
from evalcore.shell.output.files.environment import describe_run
from evalcore.shell.output.files.results import RunFacts, build_results
from evalcore.shell.output.files.run_files import (
    Document,
    DocumentLines,
    list_files,
    name_samples,
    write_lines,
    write_results,
    write_run,
    write_samples,
)
from evalcore.shell.run.close import close_groups, close_task
from evalcore.shell.run.folder import earlier_run

Plain = Mapping[str, object]


def write_task(folder: Path, task: str, pieces: Iterable[Iterable[Document]]) -> str:
    """Write the samples of a task as they come; the hash that lm-eval gives it, of documents, prompts and targets."""
    digest = sha256()

    def hashed(piece: Iterable[Document]) -> Iterator[DocumentLines]:
        hashes, filters = list[str](), 0
        for document in piece:
            lines = document if isinstance(document, DocumentLines) else write_lines(document)
            filters = len(lines.ends)
            hashes.append(lines.hashes)
            yield lines
        for _ in range(filters):  # as often as there are lines
            digest.update("".join(hashes).encode())

    write_samples(folder, task, map(hashed, pieces))
    return digest.hexdigest()


def write_folder(
    folder: Path,
    results: Plain,
    sampled: Collection[str],
    *,
    source: Plain,
    start: float,
    parquet: bool = False,
    **counts: object,
) -> tuple[str, ...]:
    """Write results beside the samples that were written of these tasks, in place of older ones, and last of all.

    ``run.json`` says the ``source`` of the answers and these ``counts``. The files that are there come back.
    """
    written = [name_samples(folder, task).name for task in sampled]
    _drop_stale_samples(folder, written)
    write_run(folder, describe_run(start, time.time(), **source, samples=written, **counts))
    write_results(folder, results)
    return (*list_files(folder, sampled), *_renew_parquet(folder, asked=parquet))


class ScoredTask(Struct, frozen=True):
    """A task that is scored, its samples on the disk. ``documents`` is how many there are to score, ``digest`` tells
    them, their prompts and their targets from others: where samples are kept, by the hash that lm-eval gives them.
    """

    scored: Scored
    config: Mapping[str, object]
    n_original: int | None
    documents: int
    digest: str


Finish = Callable[[ScoredTask], None]
"""What is done with a task before the next is scored."""


def keeps_samples(plan: Plan) -> bool:
    """Answers that are not measured are worth nothing unless they are written down."""
    return plan.log_samples or plan.predict_only


FEW, PATIENCE = 8, 50
"""How many tasks are written at once, each; later the share of the time, one in so many, that goes into writing."""


class ResultsSoFar:
    """Results of finished tasks, on the disk while others are still to be scored.

    All that is finished is written each time, so of many tasks not each can wait for that: what results lack then, the
    samples have.
    """

    def __init__(self, write: Callable[[], object]) -> None:
        self._write, self._finished, self._written = write, 0, 0
        self._took, self._ended = 0.0, 0.0

    def add(self, *, last: bool = False) -> None:
        """One more is finished; the last is written with all else."""
        self._finished += 1
        if last:
            return
        if self._finished <= FEW or time.perf_counter() - self._ended > PATIENCE * self._took:
            self.flush()

    def flush(self) -> None:
        """Write what is finished, if that is not written yet."""
        if self._finished > self._written:
            start = time.perf_counter()
            self._write()
            self._written, self._ended = self._finished, time.perf_counter()
            self._took = self._ended - start


class Closing:
    """Tasks closed one by one as they are scored, with results on the disk before the next is scored.

    ``left`` are the tasks to score, with their documents where their number is known.
    """

    def __init__(
        self,
        folder: Path,
        plan: Plan,
        tables: Tables,
        trees: Sequence[Tree[Options]],
        facts: RunFacts,
        left: Mapping[str, int | None],
    ) -> None:
        self.folder, self.plan, self.tables, self.trees, self.facts = folder, plan, tables, trees, facts
        self.left, self.tasks, self.so_far = dict(left), dict[str, TaskReport](), ResultsSoFar(self._write)
        self.configs, self.inputs = dict[str, Plain](), dict[str, str]()

    def finish(self, one: ScoredTask) -> None:
        """Close a task whose samples are written."""
        name = one.scored.task.name
        self.tasks[name] = close_task(
            one.scored, self.plan, self.tables, n_original=one.n_original, documents=one.documents
        )
        self.configs[name], self.inputs[name] = one.config, one.digest
        self.left.pop(name, None)
        self.so_far.add(last=not self.left)

    def close_groups(self) -> Report:
        return close_groups(self.tasks.values(), self.trees, self.plan, self.tables)

    def build_results(self, report: Report, facts: RunFacts, warnings: Iterable[str] = ()) -> dict[str, object]:
        return build_results(report, facts, configs=self.configs, hashes=self.sampled, warnings=warnings)

    @property
    def sampled(self) -> Mapping[str, str]:
        """The tasks whose samples are kept, with lm-eval's hashes of them."""
        return self.inputs if keeps_samples(self.plan) else {}

    def _write(self) -> None:
        """Write the tasks that are finished, and name those that are not; groups are closed when all are."""
        report, facts = Report(tasks=tuple(self.tasks.values())), replace(self.facts, not_run=self.left)
        write_results(self.folder, self.build_results(report, facts))


STALE = re.compile(r"samples_[^/\\\0]+\.jsonl")


def _drop_stale_samples(folder: Path, written: Sequence[str]) -> None:
    """Samples that an earlier run of this folder wrote, and this one did not, are not of these results."""
    earlier = earlier_run(folder).get("samples")
    for name in earlier if isinstance(earlier, list) else ():
        if isinstance(name, str) and name not in written and STALE.fullmatch(name):
            (folder / name).unlink(missing_ok=True)


def _renew_parquet(folder: Path, *, asked: bool) -> tuple[str, ...]:
    """Write a run's Parquet files if they are asked for, or of an earlier run; what to say about them."""
    if not asked and not (folder / "results.parquet").is_file():
        return ()
    from evalcore.shell.output.files.parquet import write_parquet

    written = write_parquet(folder)
    return (f"{len(written)} .parquet files",) if len(written) > 1 else (written[0].name,)


def find_page(wanted: bool | str, folder: Path) -> Path | None:
    """Where the page of a run goes: into its folder, or where it is wanted; what it may not replace is refused."""
    if not wanted:
        return None
    from evalcore.shell.output.report.page import refuse_place

    page = folder / "report.html" if wanted is True else parse_path(str(wanted))
    refuse_place(page)
    return page


def write_page(page: Path, folder: Path) -> str:
    """Write the page of a run, and name it as seen from its folder."""
    from evalcore.shell.report.report import report  # a page is made of a finished run, as anyone reads it

    made = report(folder, output=page).path
    return made.name if made.parent == folder else str(made)
