"""Where things are: a run's folder, the cache, and what a config's relative paths are relative to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from msgspec import to_builtins
from msgspec.json import decode, encode

from evalcore.core.errors import EvalError
from evalcore.shell.config.plan import Plan

__all__ = ["cache_folder", "claim_folder", "find_path", "log_path", "run_folder"]


def find_path(given: str, home: Path | None) -> str:
    """A path from a run config: as seen from the working directory, as in lm-eval, else from the config's folder.

    >>> find_path("/abs", None)
    '/abs'
    """
    if home is None or os.path.isabs(given) or os.path.exists(os.path.expanduser(given)):
        return given
    beside = home / given
    return str(beside) if beside.exists() else given


def cache_folder() -> Path:
    """Where an index of task files is kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "evalcore"


def run_folder(plan: Plan) -> Path:
    """``output_path`` (of a ``.json`` its folder, as in lm-eval), else a folder that the same plan finds again."""
    if plan.output_path:
        path = Path(plan.output_path).expanduser()
        return path.parent if path.suffix == ".json" else path
    return Path("runs") / f"{plan.model}-{sha256(encode(plan)).hexdigest()[:8]}"


def log_path(plan: Plan, folder: Path) -> Path:
    """The answer log: in the run's folder, or shared under ``use_cache``."""
    return Path(plan.use_cache).expanduser().with_suffix(".jsonl") if plan.use_cache else folder / "answers.jsonl"


IDENTIFYING = ("model", "model_args", "tasks")
"""A folder is for one model and one set of tasks; anything else may change, and costs no answer that still fits."""


def claim_folder(folder: Path, plan: Plan, home: Path | None, *, overwrite: bool = False) -> None:
    """Write the plan into its folder, unless the folder is another run's."""
    from evalcore.shell.output.files import write_config

    mine = settled(plan, home)
    theirs = _earlier(folder / "config.yaml")
    changed = [key for key in IDENTIFYING if theirs is not None and theirs.get(key) != mine.get(key)]
    if changed and not overwrite:
        raise EvalError(
            f"{folder} holds a run with another {' and '.join(changed)}; name another output_path, or add --overwrite "
            "(its answers stay in the log, its results are replaced)"
        )
    write_config(folder, mine)


def settled(plan: Plan, home: Path | None) -> dict[str, object]:
    """The plan as plain data that means the same from anywhere: with absolute paths."""
    out: dict[str, object] = decode(encode(plan))
    given = plan.model_args.get("path")
    found = {
        "include_path": [_absolute(one, home) for one in plan.include_path],
        "trust": [
            _absolute(one, home) if isinstance(one, str) else {**to_builtins(one), "path": _absolute(one.path, home)}
            for one in plan.trust
        ],
        "output_path": os.path.abspath(run_folder(plan)),
        "model_args": {**plan.model_args, **({"path": _absolute(given, home)} if isinstance(given, str) else {})},
    }
    return {**out, **{key: value for key, value in found.items() if value}}


def _absolute(given: str, home: Path | None) -> str:
    path, at, pin = find_path(given, home).partition("@sha256:")
    return os.path.abspath(os.path.expanduser(path)) + at + pin


def _earlier(path: Path) -> Mapping[str, object] | None:
    from evalcore.shell.config.documents import read_yaml

    if not path.exists():
        return None
    value = read_yaml(path.read_text("utf-8"), str(path)).value
    return value if isinstance(value, dict) else None
