"""What is left in a folder: samples, results, and nothing of an earlier run that is not of these results."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from evalcore.shell.output.files.environment import describe_run
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
