"""Where runs are below a folder: run folders, outputs of lm-eval, sample logs and Inspect logs. No link is followed."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from evalcore.shell.files.confinement import find_inside
from evalcore.shell.logs.lm_eval.names import STAMP, find_stamp, is_sample_name
from evalcore.shell.logs.paths import EARLIER
from evalcore.shell.output.files.run_files import FILES
from evalcore.shell.run.live.progress_file import NAME as PROGRESS
from evalcore.shell.safety.safe_text import visible

MOST_FOLDERS, MOST_RUNS = 20_000, 2_000
"""How much is looked at; what is beyond that, the list says."""

RESULTS, LOG = FILES[0], FILES[-1]
SEEN_ALONE = ".eval"
"""The suffix of Inspect's logs, each of which is a run."""


LINKED = "is a link that leads out of the folder that is viewed"
SPECIAL = "is neither a file nor a folder"


class RunFile(NamedTuple):
    """A file as a folder lists it; one that has a ``flaw`` is not opened."""

    name: str
    size: int
    changed: int
    flaw: str


class RunPlace(NamedTuple):
    """A run as files. ``kept`` says whether results or samples are among them, ``flaw`` why none of them is opened.

    ``id`` is what addresses call it. It says nothing about paths, and only listed runs have one.
    """

    id: str
    name: str
    path: Path
    files: tuple[RunFile, ...]
    scored: bool
    kept: bool
    flaw: str

    @property
    def state(self) -> str:
        """A name for the state of what a page shows: another once any of it changes, but for answers that come in."""
        shown = [one for one in self.files if not one.name.startswith((".", LOG))]
        return sha256(repr(shown).encode("utf-8", "surrogateescape")).hexdigest()[:24]

    @property
    def changed(self) -> float:
        """When any of it last changed."""
        return max(one.changed for one in self.files) / 1e9


def find_places(folder: Path) -> tuple[tuple[RunPlace, ...], tuple[str, ...]]:
    """Find the runs below a folder, the newest first, and say what was not looked at.

    >>> find_places(Path("no/such/folder"))
    ((), ())
    """
    found: list[RunPlace] = []
    real, notes = os.path.realpath(folder), list[str]()
    for at, (here, files) in enumerate(_walk(folder, real)):
        if at == MOST_FOLDERS or len(found) >= MOST_RUNS:
            notes.append(f"only the first {MOST_FOLDERS:,} folders or {MOST_RUNS:,} runs are listed: view one of them")
            break
        found += _list_places(folder, here, files)
    return tuple(sorted(found, key=lambda one: (-one.changed, one.name))), tuple(notes)


def _walk(folder: Path, real: str) -> Iterator[tuple[Path, list[RunFile]]]:
    """Each folder with its files, outer folders first; none that is hidden or was set aside by later results."""
    waiting = deque([folder])
    while waiting:
        here = waiting.popleft()
        try:
            with os.scandir(here) as listed:
                entries = sorted(listed, key=lambda one: one.name)
        except OSError:  # that nobody may read, or that has just gone
            continue
        files = [file for one in entries if (file := _read_file(one, real)) is not None]
        yield here, files
        aside = (".", EARLIER) if any(one.name == RESULTS for one in files) else (".",)
        inner = (one for one in entries if one.is_dir(follow_symlinks=False))
        waiting += [here / one.name for one in inner if not one.name.startswith(aside)]


def _read_file(entry: os.DirEntry[str], real: str) -> RunFile | None:
    """What is there under a name; None of a folder, of what has just gone, and of a link that leads nowhere."""
    try:
        seen, link = entry.stat(), entry.is_symlink()
    except OSError:
        return None
    outside = link and find_inside(entry.path, [real]) is None
    if stat.S_ISDIR(seen.st_mode) and not outside:
        return None
    flaw = LINKED if outside else "" if stat.S_ISREG(seen.st_mode) else SPECIAL
    return RunFile(entry.name, seen.st_size, seen.st_mtime_ns, flaw)


def _list_places(folder: Path, here: Path, files: list[RunFile]) -> Iterator[RunPlace]:
    """The runs in a folder. Whoever reads one may look at its neighbours, so a flaw of one is a flaw of all."""
    names = {one.name for one in files}
    place = partial(_place, folder, flaw=next((f"{visible(one.name)} {one.flaw}" for one in files if one.flaw), ""))
    results = [one.name for one in files if _is_results(one.name)]
    if RESULTS in names or names & {LOG, PROGRESS, ".run"}:
        yield place(here, files, scored=RESULTS in names)
    elif results:
        for name in results:
            stamp = find_stamp(name)
            yield place(here / name, [one for one in files if find_stamp(one.name) == stamp], scored=True)
    elif any(is_sample_name(Path(name)) for name in names):
        yield place(here, files, scored=False)
    for one in files:
        if one.name.endswith(SEEN_ALONE):
            yield place(here / one.name, [one], scored=False)


def _is_results(name: str) -> bool:
    """Whether a file has a name that lm-eval gives to results."""
    stamped = STAMP.search(name) is not None and "samples_" not in name
    return name.endswith(".json") and (stamped or name.startswith("results_"))


def _place(folder: Path, path: Path, files: Sequence[RunFile], *, scored: bool, flaw: str) -> RunPlace:
    name = os.path.relpath(path, folder)
    told = visible(folder.resolve().name if name == "." else name)
    kept = scored or any(is_sample_name(Path(one.name)) or one.name.endswith(SEEN_ALONE) for one in files)
    return RunPlace(sha256(os.fsencode(name)).hexdigest()[:12], told, path, tuple(files), scored, kept, flaw)
