"""Durable answers through the real answer log: 64 in flight, whose replies share a sync, against one by one.

Times are the clock's, for what is waited for is the disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from bench.rows import Row, at_most
from evalcore.core.records.request import Generate
from evalcore.extensions import Heard, Model, Question
from evalcore.shell.answerlog.fold import read_log
from evalcore.shell.output.terminal.progress import UNSEEN
from evalcore.shell.run.ask import ask_agenda
from evalcore.shell.run.questions.agenda import Agenda, Item


def list_items(count: int) -> Agenda:
    keys = [f"{n:064x}" for n in range(count)]
    items = {key: Item(key, Question(Generate(f"question {n}"), 0, key[32:])) for n, key in enumerate(keys)}
    return Agenda(items, {"t": tuple(keys)})


def measure(folder: Path, agenda: Agenda, in_flight: int) -> tuple[float, int]:
    """Seconds to ask all and have every reply on the disk, and how often the disk was waited for."""

    def ask(questions: Iterable[Question]) -> Iterator[Heard]:
        for at, _ in enumerate(questions):
            yield Heard(at, "a reply of some length " * 8, more=(at + 1) % in_flight != 0)

    syncs, sync = 0, os.fsync

    def counted(handle: int) -> None:
        nonlocal syncs
        syncs += 1
        sync(handle)

    path = folder / f"answers{in_flight}.jsonl"
    os.fsync = counted
    try:
        start = perf_counter()
        ask_agenda(Model("told", "told", ask), agenda, path, UNSEEN)
        seconds = perf_counter() - start
    finally:
        os.fsync = sync
    assert len(read_log(path).answers) == len(agenda.items)
    return seconds, syncs


def measure_rows(*, answers: int = 20_000, in_flight: int = 64, folder: str = "") -> Iterator[Row]:
    """``folder`` is on the disk that is meant."""
    with TemporaryDirectory(dir=folder or None) as name:
        for at_once, count, targets in (
            (in_flight, answers, (at_most(50),)),
            (1, max(answers // 10, 1), ()),
        ):
            seconds, syncs = measure(Path(name), list_items(count), at_once)
            note = f"{count / seconds:,.0f} a second, {syncs:,} syncs for {count:,}"
            what = f"{at_once} in flight"
            yield Row(what=what, ours=seconds / count * 1e6, unit="µs an answer", targets=targets, note=note)
