"""Which files of sample logs are shards of one task: those of one run that share no document."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from evalcore.core.records.frozen_dict import thaw_dict, thaw_value
from evalcore.shell.data.wire import encode_line
from evalcore.shell.logs.head import LogFile
from evalcore.shell.logs.json_records import find_part, read_records
from evalcore.shell.logs.lm_eval.forms import read_place
from evalcore.shell.logs.lm_eval.names import find_stamp
from evalcore.shell.logs.lm_eval.results import NO_MODEL, Placed, Results, place_log
from evalcore.shell.logs.lm_eval.rows import read_near_row
from evalcore.shell.logs.log import Problem
from evalcore.shell.logs.paths import show_names

ASKED = (
    *("model_name", "system_instruction", "system_instruction_sha", "chat_template", "chat_template_sha"),
    "fewshot_as_multiturn",
)
SET = ("model", "model_args", "gen_kwargs", "random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
"""The keys of results, and of their config, that are the same in all files of one run."""


ADDRESS = re.compile(rb" at 0x[0-9a-f]+")


class Pool(Struct, frozen=True):
    """The files of one task of one run, the results beside the first, and the number of documents of several files."""

    files: tuple[LogFile, ...]
    placed: Placed
    documents: int = 0
    same: bool = True
    """Whether the results beside all of them are the same."""

    @property
    def told(self) -> tuple[str, ...]:
        """The warning that several files were taken as one task."""
        if len(self.files) < 2:
            return ()
        names = show_names([one.path for one in self.files])
        what = f"{len(self.files)} files were taken as one task of {self.documents:,} documents"
        return (f"{self.placed.task}: {what} (no document is in two of them): {names}",)


def pool_samples(files: Sequence[LogFile], results_in: Callable[[Path], Results]) -> list[Pool]:
    """Pool sample logs by task; files of one run that share no document are one task."""
    tasks: dict[str, dict[object, list[tuple[LogFile, Placed]]]] = {}
    for one in files:
        place = place_log(one.path, results_in)
        # Without a model, nothing but the same folder (without results: and time) tells that two files are of one run.
        run = identify_run(place) if place.results else find_stamp(one.path.name)
        where = None if names_model(place.results) else one.path.resolve().parent
        tasks.setdefault(place.task, {}).setdefault((where, run), []).append((one, place))
    return [pool for runs in tasks.values() for run in runs.values() for pool in _pooled(run)]


def _pooled(run: Sequence[tuple[LogFile, Placed]]) -> list[Pool]:
    files, placed = tuple(one for one, _ in run), run[0][1]
    count = count_apart(files) if len(files) > 1 else None
    if count is None:
        return [Pool((one,), place) for one, place in run]
    return [Pool(files, placed, count, all(place.results == placed.results for _, place in run))]


def names_model(results: Mapping[str, object]) -> bool:
    """Whether results name the model.

    >>> names_model({"model_name": "a"}), names_model({"config": {"model": "recorded"}}), names_model({})
    (True, False, False)
    """
    told = (results.get("model_name"), *map(find_part(results, "config").get, ("model", "model_args")))
    return any(one and one != NO_MODEL for one in told)


def identify_run(placed: Placed) -> bytes:
    """Identify a run by what the shards of a task share: model, prompts, config without memory addresses.

    >>> identify_run(Placed("t", {"model_name": "a"})) == identify_run(Placed("t", {"model_name": "b"}))
    False
    """
    given = find_part(placed.results, "config")
    asked = [*map(placed.results.get, ASKED), *map(given.get, SET)]
    return ADDRESS.sub(b"", encode_line(thaw_value([asked, placed.config])))


def read_first_row(file: LogFile) -> Mapping[str, object]:
    """Read the first intact row of a sample log, if it is near the beginning."""
    return thaw_dict(file.first) if file.first else read_near_row(file.path)


# --- shards ---------------------------------------------------------------------------------------------------------


def count_apart(files: Sequence[LogFile]) -> int | None:
    """Count the documents of files; None if two share one. Mostly the first documents show that they do; otherwise the
    files are read once.
    """
    starts = [read_first_row(one).get("doc_id") for one in files]
    if len(set(map(str, starts))) < len(starts):
        return None
    seen, count = Pages(), 0
    for number, one in enumerate(files, 1):
        for key in _ids(one.path):
            known = seen.get(key)
            if known not in (0, number):
                return None
            seen.put(key, number)
            count += not known
    return count


def _ids(path: Path) -> Iterator[int]:
    """The documents of a log; lines without one are reported when the log is read."""
    for one in read_records(path):
        if isinstance(one, Problem):
            return
        place = read_place(one.data)
        if place is not None:
            yield place.doc_id


BITS = 10
SIZE = 1 << BITS
MASK = SIZE - 1
FEW = 32
"""Up to this many keys of a page are kept one by one: sparse keys would each take a page."""


class Pages:
    """Integers by integers, kept in pages of 64-bit integers: 8 bytes for each of a run of keys.

    >>> pages = Pages()
    >>> pages.put(7, -3), pages.get(7), pages.get(8), pages.get(-1)
    (None, -3, 0, 0)
    """

    __slots__ = ("_counts", "_loose", "_pages")

    def __init__(self) -> None:
        self._pages: dict[int, array[int]] = {}
        self._loose: dict[int, int] = {}
        self._counts: dict[int, int] = {}

    def get(self, key: int) -> int:
        page = self._pages.get(key >> BITS)
        return self._loose.get(key, 0) if page is None else page[key & MASK]

    def put(self, key: int, value: int) -> None:
        page = self._pages.get(key >> BITS)
        if page is None:
            page = self._grown(key)
        if page is None:
            self._loose[key] = value
        else:
            page[key & MASK] = value

    def _grown(self, key: int) -> array[int] | None:
        """A page for a key without one, once enough keys share it."""
        high = key >> BITS
        if key in self._loose:
            return None
        self._counts[high] = self._counts.get(high, 0) + 1
        return self._new_page(high) if self._counts[high] > FEW else None

    def _new_page(self, high: int) -> array[int]:
        """A page with the values that were kept one by one."""
        page = self._pages[high] = array("q", bytes(8 * SIZE))
        for key in self._loose.keys() & range(high << BITS, (high + 1) << BITS):
            page[key & MASK] = self._loose.pop(key)
        del self._counts[high]
        return page

    def items(self) -> Iterator[tuple[int, int]]:
        """The keys that have a value other than zero."""
        for high, page in self._pages.items():
            yield from ((high << BITS | low, one) for low, one in enumerate(page) if one)
        yield from ((key, one) for key, one in self._loose.items() if one)
