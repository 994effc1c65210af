"""The machine, its packages and the clock, for ``run.json``."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from evalcore.core.aggregate.signature import VERSION

PACKAGES = ("numpy", "msgspec", "lm_eval", "datasets", "transformers", "torch", "llama-cpp-python", "sacrebleu")
COMMIT = re.compile(r"[0-9a-f]{40,64}")


def describe_run(start: float, end: float, **more: object) -> dict[str, object]:
    """lm-eval's keys that differ by run, from the clock at its start and end; ``more`` is added as it is.

    >>> describe_run(10.0, 12.5, asked=3)["total_evaluation_time_seconds"]
    '2.5'
    """
    machine = describe_environment()
    packages = machine["packages"]
    versions = packages if isinstance(packages, dict) else {}
    return {
        "date": start,
        "start_time": start,
        "end_time": end,
        "total_evaluation_time_seconds": str(end - start),
        "git_hash": find_commit(Path.cwd()),
        "upper_git_hash": find_commit(Path.cwd().parent),
        "transformers_version": versions.get("transformers"),
        "lm_eval_version": versions.get("lm_eval"),
        "pretty_env_info": f"{machine['platform']}, Python {machine['python']}, {machine['processors']} processors",
        **machine,
        **more,
    }


def describe_environment() -> dict[str, object]:
    """Versions and the kind of machine; neither its name nor its user's."""
    return {
        "evalcore_version": VERSION,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": {name: known for name in PACKAGES if (known := _find_version(name)) is not None},
    }


def _find_version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version  # only here: it takes time, and few commands ask

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def find_commit(folder: Path) -> str | None:
    """The commit that a folder is checked out at, read from its repository's own files: nothing is run."""
    home = next((one / ".git" for one in (folder, *folder.parents) if (one / ".git").is_dir()), None)
    head = _read_first_line(home / "HEAD") if home else ""
    if home is None or not head.startswith("ref: "):
        return head if COMMIT.fullmatch(head) else None
    name = head.removeprefix("ref: ")
    loose = _read_first_line(home / name) if ".." not in name and not name.startswith("/") else ""
    if COMMIT.fullmatch(loose):
        return loose
    packed = re.search(rf"^({COMMIT.pattern}) {re.escape(name)}$", _read_text(home / "packed-refs"), re.MULTILINE)
    return packed[1] if packed else None


def _read_first_line(path: Path) -> str:
    return _read_text(path).partition("\n")[0].strip()


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
