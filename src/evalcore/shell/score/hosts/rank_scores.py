"""The scores of ranks, each of which scored some of the documents: through files, or through torch.distributed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Unpack

from msgspec.structs import replace

from evalcore.core.partials.partial import Partial, decode_partial, encode_partial
from evalcore.core.partials.span import Span
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict, freeze_dict
from evalcore.core.records.score import Scored
from evalcore.shell.config.values import RunPath
from evalcore.shell.logs.log import Logged, LogTask, Problem
from evalcore.shell.logs.readers import READERS
from evalcore.shell.run.run_result import RunResult
from evalcore.shell.safety.replacement import replace_with
from evalcore.shell.score.units.kept import SUFFIX, UNSAFE, list_makers
from evalcore.shell.score.units.log_head import LogHead, write_head
from evalcore.shell.score.units.merge import merge_parts
from evalcore.shell.score.units.score_keys import MergeKeys


def write_partial(place: RunPath, scored: Scored, *, rank: int, world: int) -> Path:
    """Write the scores of one of ``world`` ranks to a folder, or to a file with the ending ``.partial``.

    ``evalcore merge FOLDER``, or ``merge`` in Python, closes the files of all ranks.
    """
    content = encode_partial(make_partial(scored, rank, world))
    path = Path(place).expanduser()
    if path.suffix != SUFFIX:
        task = UNSAFE.sub("-", scored.task.name)[:60]
        path /= f"{task}-rank-{rank:06d}-{sha256(content).hexdigest()[:16]}{SUFFIX}"
    return replace_with(path, lambda part: part.write_bytes(content), shared=True)


def make_partial(scored: Scored, rank: int, world: int) -> Partial:
    """Make the partial of a rank."""
    if not 0 <= rank < world:
        raise EvalError(f"expected a rank from 0 to {world - 1} (of {world}), got {rank}")
    name = scored.task.name
    log = LogTask(name=name, path=Path(name), output_type=scored.task.output_type, rows=_no_rows)
    known = {"keys": {}, "code": {}, "policy": scored.tables}
    return Partial(
        scored=(replace(scored, provenance=()),),
        spans=(Span(name, "ranks", rank, rank + 1, world),),
        head=freeze_dict({**write_head(LogHead(log), READERS), **known}),
        made=list_makers(),
    )


def _no_rows() -> Iterator[Logged | Problem]:
    return iter(())


def gather_partials(
    scored: Scored | Sequence[Scored], *, group: object = None, **keys: Unpack[MergeKeys]
) -> RunResult | Mapping[str, object]:
    """Gather the scores of all ranks of torch.distributed: the first gets the numbers, the others an empty mapping.

    A document that several ranks scored, as padding makes it, counts once. The keys are those of ``merge``. Where
    torch.distributed was not set up, there is one rank.

    >>> from evalcore.core.pipeline import score_task
    >>> from evalcore.core.records.request import GENERATE_UNTIL, Answer, Generate, Instance, Sample
    >>> from evalcore.core.records.task import Task
    >>> answer = Answer(Instance("sums", 0, 0, Generate("2+2=")), ("4",))
    >>> scored = score_task(Task("sums", GENERATE_UNTIL), [Sample(0, gold="4")], [answer])
    >>> gather_partials(scored).report.tasks[0].n_docs
    1
    """
    start, own = time.time(), [scored] if isinstance(scored, Scored) else list(scored)
    torch: Any = sys.modules.get("torch.distributed")  # who set it up has imported it
    joined = torch is not None and torch.is_available() and torch.is_initialized()
    rank, world = (torch.get_rank(group), torch.get_world_size(group)) if joined else (0, 1)
    sent = _pack_scores(own, rank, world) if rank >= 0 else []
    heard = [sent] * world
    if joined:
        first = torch.get_global_rank(group, 0) if group is not None else 0
        torch.gather_object(sent, heard if rank == 0 else None, dst=first, group=group)
    for at, found in enumerate(heard):
        if isinstance(found, str):
            raise EvalError(f"{found} - at rank {at if rank == 0 else rank}")
    if rank != 0:
        return FrozenDict()
    parts = [
        decode_partial(data, f"rank {at}")
        for at, found in enumerate(heard)
        for data in found
        if isinstance(data, bytes)
    ]
    source = {"merged": [f"{one.task.name} of {world} ranks" for one in own]}
    return merge_parts(parts, source=source, start=start, own={one.task.name: one.task for one in own}, **keys)


def _pack_scores(scored: Sequence[Scored], rank: int, world: int) -> list[bytes] | str:
    """The partials of a rank or, so that no other rank waits forever, why there are none."""
    try:
        return [encode_partial(make_partial(one, rank, world)) for one in scored]
    except EvalError as wrong:
        return str(wrong)
