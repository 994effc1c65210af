"""Partials kept in a folder, so that nothing is scored twice and any machine can merge them."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.aggregate.signature import VERSION
from evalcore.core.lm_eval.policy import POLICIES
from evalcore.core.partials.codec import pack
from evalcore.core.partials.partial import KNOWN, Partial, decode_partial, encode_partial
from evalcore.core.partials.span import Span
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict, freeze_dict
from evalcore.shell.safety.replacement import replace_with
from evalcore.shell.score.units.log_head import take_head, write_head
from evalcore.shell.score.units.log_plan import LogPlan

SUFFIX = ".partial"
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def list_makers() -> tuple[str, ...]:
    """List the programs on whose versions the bits of scores depend."""
    return f"evalcore {VERSION}", f"numpy {np.__version__}", f"a processor of type {platform.machine()}"


class Keep(Struct, frozen=True):
    """A folder of partials: for each log what its files say of it, and the hash of all that its scores depend on."""

    folder: Path
    heads: tuple[Mapping[str, object], ...]
    recipes: tuple[str, ...]

    def name(self, log: int, spans: Sequence[Span]) -> Path:
        """Name the file for a unit of a log, by the hash of what its scores are made from."""
        ranges = [replace(span, total=None, whole="") for span in spans]  # a log may grow beyond them
        made = sha256(pack([self.recipes[log], list_makers(), ranges], KNOWN)).hexdigest()
        task, first = UNSAFE.sub("-", str(self.heads[log]["name"]))[:60], spans[0]
        return self.folder / f"{task}-{self.recipes[log][:8]}-{first.start:012d}-{made[:16]}{SUFFIX}"

    def find(self, log: int, spans: Sequence[Span]) -> Partial | None:
        """Find the partial of a unit that was scored before; a damaged one, or one that was stopped, is made again."""
        path = self.name(log, spans)
        try:
            found = decode_partial(path.read_bytes(), str(path))
        except (OSError, EvalError):
            return None
        same = [(one.start, one.digest) for one in found.spans] == [(one.start, one.digest) for one in spans]
        if found.stopped or not same:
            return None
        known = replace(found, spans=tuple(spans))
        if known != found or found.head != self.heads[log]:  # what lies beside a log may change, and its size
            self.write(log, known)
        return replace(known, head=FrozenDict(), made=())

    def write(self, log: int, part: Partial) -> None:
        """Write the partial of a unit, at once."""
        content = encode_partial(replace(part, head=self.heads[log], made=list_makers()))
        replace_with(self.name(log, part.spans), partial(_write, content), shared=True)

    def drop_older(self, log: int, current: Sequence[Sequence[Span]]) -> None:
        """Drop partials of ranges as they were before a log grew."""
        names = {self.name(log, spans) for spans in current}
        starts = {name.name.rpartition("-")[0] for name in names}
        for path in self.folder.glob(f"*{SUFFIX}"):
            if path not in names and path.name.rpartition("-")[0] in starts:
                path.unlink(missing_ok=True)


def _write(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def open_keep(folder: Path, plans: Sequence[LogPlan]) -> Keep:
    """Open a folder for the partials of these logs."""
    return Keep(folder, tuple(map(describe_plan, count(), plans)), tuple(map(digest_recipe, plans)))


def describe_plan(order: int, planned: LogPlan) -> Mapping[str, object]:
    """Describe a log, the ``order``-th of those that are scored, and what is done with it, as its partials do."""
    asked, tables = planned.asked, planned.asked.tables
    if POLICIES.get(tables.name, tables) != tables:
        raise EvalError(f"partials go by the name of their tables; give yours another name than {tables.name!r}")
    own = {"order": f"{order:06d}", "keys": asked.keys, "code": asked.code, "policy": tables.name}
    return freeze_dict({**write_head(take_head(planned), asked.readers), **own})


def digest_recipe(planned: LogPlan) -> str:
    """Hash all that the scores of a log depend on besides its documents: the task, its code, the tables, the keys."""
    asked, recipe = planned.asked, planned.recipe
    keys = {key: value for key, value in asked.keys.items() if key not in CLOSING}
    parts = [recipe.task, recipe.scores, asked.tables.name, keys, asked.code, recipe.kept is not None]
    return sha256(pack(parts, KNOWN)).hexdigest()


CLOSING = frozenset(("confidence", "ci", "stderr", "on_unscorable", "bootstrap_iters", "weights", "groups", "only"))
"""The keys that say how columns are closed, not how documents are scored."""
