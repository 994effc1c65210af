"""Runs to a page for a browser: all that it shows is gathered here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from evalcore.core.aggregate.signature import VERSION
from evalcore.core.compare.gates import choose_numbers
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenRecord
from evalcore.shell.compare.conditions import tell_twins
from evalcore.shell.compare.run_names import agree_aliases, choose_names, find_aliased, label_runs
from evalcore.shell.compare.run_sides import ReadKeys
from evalcore.shell.config.values import Names, RunPath, list_names, split_names
from evalcore.shell.files.given import parse_path
from evalcore.shell.logs.runs.run_record import check_run_path
from evalcore.shell.output.report.bundle import PAGE, SERVED
from evalcore.shell.output.report.page import BESIDE, HtmlPage, build_page, refuse_place, write_page
from evalcore.shell.output.report.page_chunk import PageChunk
from evalcore.shell.report.comparison import compare_gathered
from evalcore.shell.report.gathered_run import GatheredRun, gather_runs
from evalcore.shell.report.one_run.run_charts import draw_run
from evalcore.shell.report.outcomes import describe_outcomes
from evalcore.shell.report.redaction import redact_head
from evalcore.shell.report.run_numbers import Chosen, Rows, explain_errata, list_entries, list_numbers, place_numbers
from evalcore.shell.report.samples.sample_chunks import pack_samples

Plain = dict[str, object]
FORMAT = 1


class Reported(FrozenRecord, frozen=True, kw_only=True):
    """A report that was written: the page, and the files that belong beside it."""

    path: Path
    files: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()


class ReportKeys(ReadKeys, total=False):
    """What a page shows: the flags of ``evalcore report`` but its file.

    A page that is ``served`` asks whether runs are still in the state of which it was made.
    """

    names: Names | None
    confidence: float | None
    task: Names
    metric: Names
    samples: bool
    redact: bool
    served: str


class DrawnReport(FrozenRecord, frozen=True):
    """A page about runs that is not written yet."""

    page: HtmlPage
    warnings: tuple[str, ...] = ()


def report(*runs: RunPath, output: RunPath = "report.html", **keys: Unpack[ReportKeys]) -> Reported:
    """Write a page about one or more runs; the keys are the flags of ``evalcore report``.

    >>> report()
    Traceback (most recent call last):
    evalcore.EvalError: expected one or more runs, got none
    """
    place = parse_path(output)
    refuse_place(place)  # before anything is gathered
    drawn = draw_report(*runs, beside=f"{place.name.removesuffix('.html')}_data", **keys)
    path, *beside = write_page(drawn.page, place)
    return Reported(path=path, files=tuple(beside), warnings=drawn.warnings)


def draw_report(
    *runs: RunPath,
    names: Names | None = None,
    confidence: float | None = None,
    task: Names = (),
    metric: Names = (),
    samples: bool = True,
    redact: bool = False,
    served: str = "",
    beside: str = BESIDE,
    **reading: Unpack[ReadKeys],
) -> DrawnReport:
    """Gather what a page shows of one or more runs; what one file cannot hold is for a folder ``beside`` it."""
    if not runs:
        raise EvalError("expected one or more runs, got none")
    if confidence is not None and not 0 < confidence < 1:
        raise EvalError(f"expected --confidence between 0 and 1, got {confidence:g}")
    paths = [check_run_path(run) for run in runs]
    named = choose_names(names, paths)
    gathered = gather_runs(paths, named, label_runs(len(paths)), confidence, reading)
    texts = samples and not redact
    numbers = [list_numbers(run) for run in gathered]
    compared, flips = compare_gathered(gathered, numbers, task, metric, reading, texts=texts, warnings=not redact)
    tasks = find_aliased(split_names(task), agree_aliases(run.results for run in gathered))
    chosen = choose_shown(numbers, tasks, list_names(metric))
    described = describe_runs(gathered, numbers, chosen)
    if compared is not None and "reason" in compared:
        compared |= place_numbers(gathered, numbers, chosen)
    head: Plain = {
        "format": FORMAT,
        "version": VERSION,
        "title": " and ".join(filter(None, [", ".join(named[:-1]), named[-1]])),
        "runs": described,
        "comparison": compared,
    }
    chunks: list[PageChunk] = [*flips]
    for run, shown in zip(gathered, described, strict=True):
        drawn, scores = draw_run(run, list_shown(shown), samples=samples, redact=redact)
        shown |= drawn
        chunks += scores
    if samples and any(run.sampled for run in gathered):
        tasks_shown = {
            name for rows in numbers for name, below in rows.items() if any(chosen((name, key)) for key in below)
        }
        head["samples"], packed = pack_samples(gathered, tasks_shown, chosen, redact=redact)
        chunks += packed
    if redact or not samples:
        head = redact_head(head, warnings=redact)
    twins = tell_twins(label_runs(len(paths)), paths)
    told = dict.fromkeys([*twins, *(one for run in gathered for one in run.source.warnings)])
    modules = SERVED if served else PAGE
    return DrawnReport(build_page(head, chunks, folder=beside, modules=modules, served=served), tuple(told))


def choose_shown(numbers: Sequence[Rows], tasks: Sequence[str], metrics: Sequence[str]) -> Chosen:
    """Which numbers the page shows."""
    keys = {key for rows in numbers for below in rows.values() for key in below}
    return choose_numbers(tasks, metrics, {name for rows in numbers for name in rows}, keys)


def describe_runs(runs: Sequence[GatheredRun], numbers: Sequence[Rows], chosen: Chosen) -> list[Plain]:
    """What the page's overview shows of each run."""
    return [_describe_run(run, rows, chosen) for run, rows in zip(runs, numbers, strict=True)]


def list_shown(described: Plain) -> frozenset[str]:
    """The tasks and groups that the page shows of a run."""
    tree = described["tree"]
    return frozenset(str(one["name"]) for one in tree) if isinstance(tree, list) else frozenset()


def _describe_run(run: GatheredRun, numbers: Rows, chosen: Chosen) -> Plain:
    entries = list_entries(run, numbers, chosen)
    shown = {str(one["name"]) for one in entries}
    return {
        "name": run.name,
        "label": run.label,
        "confidence": run.confidence,
        "sampled": run.sampled,
        "tree": entries,
        "errata": explain_errata(one for below in numbers.values() for one in below.values()),
        "outcomes": {name: one for name, one in describe_outcomes(run).items() if name in shown},
        "warnings": list(run.source.warnings),
    }
