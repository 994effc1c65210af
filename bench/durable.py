"""Durable answers a second through the real answer log: 64 in flight, whose replies share a sync, against one by one.

python bench/durable.py [ANSWERS] [--in-flight N] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from evalcore.core.records.request import Generate
from evalcore.extensions import Heard, Model
from evalcore.shell.answerlog.fold import read_log
from evalcore.shell.models.model import Question
from evalcore.shell.output.terminal.progress import UNSEEN
from evalcore.shell.run.ask import Agenda, Item, ask_agenda


def list_items(count: int) -> Agenda:
    keys = [f"{n:064x}" for n in range(count)]
    items = {key: Item(key, Question(Generate(f"question {n}"), 0, key[32:])) for n, key in enumerate(keys)}
    return Agenda(items, {"t": tuple(keys)})


def measure(folder: Path, agenda: Agenda, in_flight: int) -> tuple[float, int]:
    """Seconds to ask all and have every reply on the disk, and how often the disk was waited for."""

    def ask(questions):
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
        start = time.perf_counter()
        ask_agenda(Model("told", "told", ask), agenda, path, UNSEEN)
        seconds = time.perf_counter() - start
    finally:
        os.fsync = sync
    assert len(read_log(path).answers) == len(agenda.items)
    return seconds, syncs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=int, nargs="?", default=20_000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--folder", default=None, help="a folder on the disk that is meant")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        for in_flight, count in ((given.in_flight, given.answers), (1, max(given.answers // 10, 1))):
            seconds, syncs = measure(Path(name), list_items(count), in_flight)
            print(f"{in_flight:3} in flight: {count / seconds:10,.0f} durable answers a second ({syncs:,} syncs)")


if __name__ == "__main__":
    main()
