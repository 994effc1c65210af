"""The samples of a log, written piece by piece while it is scored, in a folder that may be written to."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.records.document import decode_doc
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD_ROLLING,
    Generate,
    LogLikelihood,
    Request,
    Rolling,
    Sample,
)
from evalcore.core.records.score import Scored
from evalcore.shell.config.values import RunPath
from evalcore.shell.data.wire import encode_line
from evalcore.shell.files.given import parse_path
from evalcore.shell.logs.log import Logged, LogTask
from evalcore.shell.output.files.run_files import Document, name_samples
from evalcore.shell.run.write import write_task
from evalcore.shell.score.carryover import add_unclosed
from evalcore.shell.score.stream import Piece

Plain = Mapping[str, object]


class WrittenTask(Struct, frozen=True):
    """The scores of a task whose samples were written, and lm-eval's hash of it."""

    scored: tuple[Scored, ...]
    hash: str


def claim_output(folder: Path, logs: Iterable[LogTask], given: Iterable[RunPath], *, overwrite: bool) -> None:
    """Refuse a folder that holds what is read or lies in a given one, or results that are not to be replaced."""
    target = folder.resolve()
    if any(path.resolve().parent == target for log in logs for path in log.paths):
        raise EvalError(f"{folder} holds what is scored; name another folder with --output_path")
    above = next((one for one in map(parse_path, given) if one.is_dir() and target.is_relative_to(one.resolve())), None)
    if above is not None:
        raise EvalError(f"{folder} lies in {above}, which is scored; name another folder with --output_path")
    if (target / "results.json").exists() and not overwrite:
        raise EvalError(f"{folder} holds results already; name another folder, or add --overwrite")


def write_pieces(folder: Path, task: str, pieces: Iterable[Piece], fields: frozenset[str] = frozenset()) -> WrittenTask:
    """Write the samples of a task while it is scored; nothing of a piece but its columns is held.

    ``fields`` of documents, which the model or a scorer wrote, are left out.
    """
    from evalcore.shell.output.files.plain_lines import list_lines  # only here: templates take time
    from evalcore.shell.output.files.sample_lines import find_targets, list_documents
    from evalcore.shell.prompts.ready_task import Built

    done: list[Scored] = []

    def documents() -> Iterator[Iterator[Document]]:
        known = None
        for piece in pieces:
            requests = [_request(piece, row, at) for row in piece.logged for at in range(len(row.replies) or 1)]
            samples = (_without_fields(one, fields) for one in piece.samples) if fields else piece.samples
            built = Built(piece.scored.task, piece.answers.asked, requests, tuple(samples), {})
            known = find_targets(built) if known is None else known  # a reader learns them from the first document
            if piece.kept is None:
                yield list_lines(piece.scored, built, piece.answers, known=known)
            else:
                rows = list_documents(piece.scored, built, piece.answers, known=known)
                yield (add_unclosed(document, piece.kept) for document in rows)
            done.append(replace(piece.scored, provenance=()))
            gc.collect(0)  # json leaves cycles behind where it indents, as for the hashes of documents

    digest = write_task(folder, task, documents())
    if not done:  # an empty file would not be read as a log
        name_samples(folder, task).unlink()
    return WrittenTask(tuple(done), digest)


def _without_fields(sample: Sample, fields: frozenset[str]) -> Sample:
    doc = decode_doc(sample)
    kept = {name: cell for name, cell in doc.items() if name not in fields} if isinstance(doc, dict) else doc
    return replace(sample, doc=encode_line(kept).rstrip(b"\n"))


def _request(piece: Piece, logged: Logged, at: int) -> Request:
    """The request of a row; logs of 2023 and tables may not have it."""
    if at < len(logged.requests):
        return logged.requests[at]
    kind = piece.scored.task.output_type
    if kind == GENERATE_UNTIL:
        return Generate("")
    end = logged.choices[at] if at < len(logged.choices) else ""
    return Rolling(end) if kind == LOGLIKELIHOOD_ROLLING else LogLikelihood("", end)
