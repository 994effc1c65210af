"""``score --partial-only``: the units of logs scored and kept, for ``merge`` to close wherever that is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from msgspec.structs import replace

from evalcore.core.records.errors import EvalError
from evalcore.shell.config.values import RunPath
from evalcore.shell.output.terminal.progress import UNSEEN, Progress
from evalcore.shell.score.scored_log import open_chosen, plan_each
from evalcore.shell.score.units.gather import score_in_units
from evalcore.shell.score.units.score_keys import OutputKeys, ScoreKeys, plan_scoring

WRITING = frozenset(("output_path", "parquet", "overwrite"))
PART = re.compile(r"([1-9]\d*)/([1-9]\d*)")


def score_partials(
    logs: RunPath | Sequence[RunPath], *, part: str | None = None, shown: Progress = UNSEEN, **keys: Unpack[ScoreKeys]
) -> tuple[Path, ...]:
    """Score units of logs and keep their partial scores in the folder ``partials``; return the files.

    ``part`` is a share of all units: of ``"2/8"``, every eighth unit, from the second on. Units that are kept there
    already are not scored again. ``merge`` closes them once all are there.

    >>> score_partials("no/such/log", partials="here", part="9/8")
    Traceback (most recent call last):
    evalcore.EvalError: expected a part such as 2/8, got '9/8'
    """
    paths = [logs] if isinstance(logs, str | Path) else list(logs)
    found = PART.fullmatch(part or "1/1")
    own, count = (int(found[1]), int(found[2])) if found else (1, 0)
    if own > count:
        raise EvalError(f"expected a part such as 2/8, got {part!r}")
    given = [f"--{key}" for key in OutputKeys.__annotations__ if key in WRITING and keys.get(key)]
    if given:
        raise EvalError(f"{', '.join(given)}: partial scores have no numbers to write yet; give it to `evalcore merge`")
    if not keys.get("partials"):
        raise EvalError("expected a folder for partial scores (--partials FOLDER), got none")
    chosen, asked, selected = open_chosen(paths, replace(plan_scoring(keys), folder=None))
    plans = list(plan_each(chosen, asked, selected.configs if selected else {}))
    return score_in_units(plans, asked, shown, (own, count))[1]
