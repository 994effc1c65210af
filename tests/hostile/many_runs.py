"""Runs in children of one process that has imported everything, so that hundreds of kills take seconds.

    python many_runs.py KIND FOLDER

prints a line of JSON for each run that was killed (``appends``, ``requests``) or that raced with others (``races``).
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyrsistent import pmap

import evalcore
from evalcore.core.records.errors import EvalError
from evalcore.extensions import Backend, Heard, Model
from evalcore.shell.answerlog import writer
from evalcore.shell.models.model import Question

FLIGHT = 3
DOCUMENTS = 8
MOMENTS = ("before", "torn", "written", "synced")


def kill_me() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Teller:
    """A model that writes down what it is asked, ``FLIGHT`` at a time, and is killed at the ``last`` question."""

    def __init__(self, folder: Path, last: int = -1) -> None:
        self.sent, self.last = folder / "sent", last

    def ask(self, questions: Sequence[Question]) -> Iterator[Heard]:
        for start in range(0, len(questions), FLIGHT):
            batch = questions[start : start + FLIGHT]
            for at, one in enumerate(batch, start):
                if at == self.last:
                    kill_me()
                with self.sent.open("a") as file:
                    file.write(f"{one.digest} {one.repeat}\n")
            for at, one in enumerate(batch, start):
                yield Heard(at, f" {one.digest[:1]}", more=at + 1 < start + len(batch))


def run(folder: Path, teller: Teller) -> None:
    told = Backend(lambda arguments: Model("told", "told", teller.ask), "", ())
    evalcore.run(folder / "run.yaml", models=pmap({"told": told}), output_path=str(folder / "out"))


def kill_at_append(number: int, moment: str) -> None:
    """Kill this process at its ``number``-th append to the answer log."""
    real_write, real_sync = os.write, os.fsync
    appends = [0]

    def append(fd: int, data: bytes) -> None:
        appends[0] += 1
        last = appends[0] == number
        if last and moment == "before":
            kill_me()
        real_write(fd, data[: len(data) // 2] if last and moment == "torn" else data)
        if last and moment in ("torn", "written"):
            kill_me()
        real_sync(fd)
        if last:
            kill_me()

    writer.append_bytes = append


def fork(work: object, *given: object) -> int:
    """Do something in a child; its exit code, negative for a signal."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work(*given)  # type: ignore[operator]
            code = 0
        except EvalError as wrong:
            sys.stderr.write(f"{wrong}\n")
            code = 2
        finally:
            os._exit(code)
    return child


def wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def prepare(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "docs.jsonl").write_text("".join(f'{{"n": {n}}}\n' for n in range(DOCUMENTS)))
    task = {
        "task": "letters",
        "output_type": "generate_until",
        "doc_to_text": "Letter {{n}}:",
        "doc_to_target": "a",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": "docs.jsonl"},
        "test_split": "train",
        "metric_list": [{"metric": "exact_match"}],
    }
    (folder / "run.yaml").write_text(json.dumps({"model": "told", "tasks": [task]}))
    return folder


def found(folder: Path) -> dict[str, object]:
    sent = Counter((folder / "sent").read_text().splitlines())
    results = json.loads((folder / "out/results.json").read_text())
    return {"asked": len(sent), "again": sum(sent.values()) - len(sent), "results": results["results"]}


def killed(home: Path, number: int, moment: str, asking: bool) -> dict[str, object] | None:
    """What a run that was killed and resumed found; None if it ended before it was to be killed."""
    folder = prepare(home / f"{number}-{moment}")

    def first() -> None:
        if not asking:
            kill_at_append(number, moment)
        run(folder, Teller(folder, number if asking else -1))

    if wait(fork(first)) == 0:
        return None
    assert wait(fork(run, folder, Teller(folder))) == 0
    return {"at": number, "moment": moment, **found(folder)}


def kill_everywhere(home: Path, *, asking: bool) -> Iterator[dict[str, object]]:
    for moment in ("asked",) if asking else MOMENTS:
        for number in range(0 if asking else 1, 1000):
            line = killed(home, number, moment, asking)
            if line is None:
                break
            yield line


def race(home: Path, rounds: int = 6, racers: int = 6) -> Iterator[dict[str, object]]:
    """Several runs on one folder at once, one of them killed at some moment; then one to the end."""
    dice = random.Random(0)
    for number in range(rounds):
        folder = prepare(home / f"race{number}")
        last = [dice.randrange(DOCUMENTS) if dice.random() < 0.5 else -1 for _ in range(racers)]
        children = [fork(run, folder, Teller(folder, at)) for at in last]
        codes = [wait(child) for child in children]
        assert wait(fork(run, folder, Teller(folder))) == 0
        yield {"codes": codes, **found(folder)}


KINDS = {
    "appends": lambda home: kill_everywhere(home, asking=False),
    "requests": lambda home: kill_everywhere(home, asking=True),
    "races": race,
}


def main() -> None:
    home = Path(sys.argv[2])
    run(prepare(home / "whole"), Teller(home / "whole"))
    sys.stdout.write(json.dumps(found(home / "whole")) + "\n")
    for line in KINDS[sys.argv[1]](home):
        sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
