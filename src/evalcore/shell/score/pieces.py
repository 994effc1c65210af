"""Scored logs on the disk: lm-eval's sample rows, written as they are scored, and its results."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
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
from evalcore.shell.config.plan import Plan
from evalcore.shell.data.wire import encode_line
from evalcore.shell.logs.log import Logged, LogTask
from evalcore.shell.output.files.results import RunFacts
from evalcore.shell.output.files.run_files import write_samples
from evalcore.shell.score.carryover import paths_of, with_unclosed
from evalcore.shell.score.labels import told_model
from evalcore.shell.score.stream import Piece

__all__ = ["Written", "claim_output", "facts_of", "write_pieces"]

Plain = Mapping[str, object]
ASKED = ("system_instruction", "chat_template", "fewshot_as_multiturn")
SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
"""What lm-eval's results, and their config, say of how a model was asked."""


class Written(Struct, frozen=True):
    """The scores of a task whose samples were written, and lm-eval's hash of it."""

    scored: tuple[Scored, ...]
    hash: str


def claim_output(folder: Path, logs: Iterable[LogTask], given: Iterable[str], *, overwrite: bool) -> None:
    """Refuse a folder that holds what is read or lies in a given one, or results that are not to be replaced."""
    target = folder.resolve()
    if any(path.resolve().parent == target for log in logs for path in paths_of(log)):
        raise EvalError(f"{folder} holds what is scored; name another folder with --output_path")
    above = next((one for one in given if Path(one).is_dir() and target.is_relative_to(Path(one).resolve())), None)
    if above is not None:
        raise EvalError(f"{folder} lies in {above}, which is scored; name another folder with --output_path")
    if (target / "results.json").exists() and not overwrite:
        raise EvalError(f"{folder} holds results already; name another folder, or add --overwrite")


def write_pieces(folder: Path, task: str, pieces: Iterable[Piece], fields: frozenset[str] = frozenset()) -> Written:
    """Write the samples of a task while it is scored; nothing of a piece but its columns is held.

    ``fields`` of documents, which the model or a scorer wrote, are left out.
    """
    from evalcore.shell.output.files.sample_lines import sample_lines, targets_of  # only here: templates take time
    from evalcore.shell.prompts.ready_task import Built

    digest = sha256()
    done: list[Scored] = []

    def lines() -> Iterator[Plain]:
        known = None
        for piece in pieces:
            requests = [_request(piece, one, at) for one in piece.logged for at in range(len(one.replies) or 1)]
            samples = (_without_fields(one, fields) for one in piece.samples) if fields else piece.samples
            built = Built(piece.scored.task, piece.answers.asked, requests, tuple(samples), {})
            known = targets_of(built) if known is None else known  # a reader learns them from the first document
            for row in sample_lines(piece.scored, built, piece.answers, known=known):
                digest.update(f"{row['doc_hash']}{row['prompt_hash']}{row['target_hash']}".encode())
                yield with_unclosed(row, piece.kept)
            done.append(replace(piece.scored, provenance=()))
            gc.collect(0)  # json leaves cycles behind where it indents, as for the hashes of documents

    path = write_samples(folder, task, lines())
    if not done:  # an empty file would not be read as a log
        path.unlink()
    return Written(tuple(done), digest.hexdigest())


def _without_fields(sample: Sample, fields: frozenset[str]) -> Sample:
    doc = decode_doc(sample)
    kept = {name: cell for name, cell in doc.items() if name not in fields} if isinstance(doc, dict) else doc
    return replace(sample, doc=encode_line(kept).rstrip(b"\n"))


def _request(piece: Piece, one: Logged, at: int) -> Request:
    """What was asked; logs of 2023 and tables may not say it."""
    if at < len(one.requests):
        return one.requests[at]
    kind = piece.scored.task.output_type
    if kind == GENERATE_UNTIL:
        return Generate("")
    end = one.choices[at] if at < len(one.choices) else ""
    return Rolling(end) if kind == LOGLIKELIHOOD_ROLLING else LogLikelihood("", end)


def facts_of(logs: Iterable[LogTask], plan: Plan, trusted: Mapping[str, str]) -> RunFacts:
    """What new results say of how the answers came to be: what the old ones do, as far as all of them say the same."""
    told = agreed(map(told_run, logs))
    given, gen_kwargs = told.get("model"), told.get("gen_kwargs")
    model, args = (given.get(key) for key in ("model", "model_args")) if isinstance(given, Mapping) else (None, None)
    system, template, turns = (told.get(key) for key in ASKED)
    python, numpy, torch, fewshot = (one if type(one) is int else None for one in map(told.get, SEEDS))
    return RunFacts(
        model=str(model or plan.model),
        model_args=args if isinstance(args, Mapping | str) else {},
        gen_kwargs=gen_kwargs if isinstance(gen_kwargs, Mapping | str) else None,
        seeds=(python, numpy, torch, fewshot),
        system_instruction=system if isinstance(system, str) else None,
        chat_template=template if isinstance(template, str) else None,
        fewshot_as_multiturn=turns if isinstance(turns, bool) else None,
        limit=plan.limit,
        bootstrap_iters=plan.bootstrap_iters,
        confidence=plan.confidence,
        ci=plan.ci,
        on_unscorable=plan.on_unscorable,
        policy=plan.policy,
        trusted=trusted,
    )


def told_run(log: LogTask) -> Plain:
    """How the answers of a log were asked for, as far as what lies beside it tells."""
    config = log.results.get("config")
    known = config if isinstance(config, Mapping) else {}
    asked = {key: log.results.get(key) for key in ASKED}
    return {**asked, **{key: known.get(key) for key in ("gen_kwargs", *SEEDS)}, "model": told_model(log)}


def agreed(told: Iterable[Plain]) -> Plain:
    """What all of them say alike.

    >>> agreed([{"a": 1, "b": 2}, {"a": 1, "b": 3}])
    {'a': 1}
    """
    first, *others = list(told) or [{}]
    return {key: value for key, value in first.items() if all(key in one and one[key] == value for one in others)}
