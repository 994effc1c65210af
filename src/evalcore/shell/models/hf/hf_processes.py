"""A model in several processes, each with subtrees of its own: questions are shared out, replies are joined."""

from __future__ import annotations

import os
import pickle
import subprocess
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from queue import SimpleQueue
from threading import Thread
from typing import IO, cast

import msgspec
from msgspec import Struct

from evalcore.core.prefixes import Sizes, Tokens, grow_tree, share_tree
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Generate, LogLikelihood, Request
from evalcore.shell.engines.interface import count_cores
from evalcore.shell.engines.processes import end_worker, start_process
from evalcore.shell.engines.worker import DONE, do_work, expect_done, open_pipes, read_frame, write_frame
from evalcore.shell.models.hf.hf_settings import HfSettings, read_settings
from evalcore.shell.models.hf.tokenizer import TextEncoder
from evalcore.shell.models.model import Heard, Model, Notice, Question

MODULE = "evalcore.shell.models.hf.hf_processes"
GRAIN = Sizes(256, 64)
"""The finest pieces in which subtrees are shared out."""

LOST = -1
Frame = tuple[int, int, bytes]
"""Which process, the kind of the message, its bytes."""


class ProcessPlace(Struct, frozen=True):
    """The first message to a process: the arguments of its model, its number, and how many threads it has."""

    given: dict[str, object]
    rank: int
    threads: int


def share_questions(encoder: TextEncoder, questions: Sequence[Question], parts: int) -> tuple[Tokens, ...]:
    """Share questions out at subtrees: a pure function of all of them, known ones among them, and of the number."""
    shared: list[list[int]] = [[] for _ in range(parts)]
    for texts in (False, True):
        ats = [at for at, one in enumerate(questions) if isinstance(one.request, Generate) is texts]
        tree = grow_tree([encoder.encode(_join_text(questions[at].request)) for at in ats], GRAIN)
        for part, places in zip(shared, share_tree(tree, parts), strict=True):
            part += [ats[place] for place in places]
    return tuple(tuple(sorted(part)) for part in shared)


def _join_text(request: Request) -> str:
    if isinstance(request, LogLikelihood):
        return request.context + request.continuation
    return request.prompt if isinstance(request, Generate) else request.text


# --- here -----------------------------------------------------------------------------------------------------------


class Processes:
    """The processes of a model: they are started with the first question, and end with this one."""

    def __init__(self, settings: HfSettings, encoder: TextEncoder) -> None:
        self.settings, self.encoder, self.count = settings, encoder, settings.num_processes
        self.told = False
        self.workers: list[subprocess.Popen[bytes]] = []
        self.inbox: SimpleQueue[Frame] = SimpleQueue()
        weakref.finalize(self, _end_all, self.workers)

    def ask(self, questions: Sequence[Question]) -> Iterator[Heard | Notice]:
        """Yield what all processes reply, each process one call ahead at most of what was taken."""
        self.encoder.announce(one.request for one in questions)
        parts = share_questions(self.encoder, questions, self.count)
        self._start()
        busy = [rank for rank, part in enumerate(parts) if not all(questions[at].known for at in part)]
        try:
            for rank in busy:
                tells = rank == busy[0] and not self.told  # all of them would say the same
                self._send(rank, pickle.dumps(([questions[at] for at in parts[rank]], tells)))
            self.told = True
            while busy:
                rank, kind, data = self.inbox.get()
                told = self._read(rank, kind, data)
                if not told:
                    busy.remove(rank)
                    continue
                yield from (one._replace(at=parts[rank][one.at]) if isinstance(one, Heard) else one for one in told)
                self._send(rank, b"")
        finally:
            if busy:  # whoever asked has gone: what is being computed is of no use
                self._stop()

    def _start(self) -> None:
        if self.workers:
            return
        given = {name: value for name, value in msgspec.to_builtins(self.settings).items() if value is not None}
        threads = max(1, count_cores() // self.count)
        for rank in range(self.count):
            self.workers.append(start_process(MODULE))
            self._send(rank, msgspec.json.encode(ProcessPlace({**given, "num_processes": 1}, rank, threads)))
            Thread(target=_read_all, args=(self.workers[rank], rank, self.inbox), daemon=True).start()

    def _stop(self) -> None:
        _end_all(self.workers)
        self.inbox = SimpleQueue()

    def _send(self, rank: int, data: bytes) -> None:
        with suppress(OSError, ValueError):  # its reader reports a process that is gone
            write_frame(cast("IO[bytes]", self.workers[rank].stdin), DONE, data)

    def _read(self, rank: int, kind: int, data: bytes) -> list[Heard | Notice]:
        if kind == LOST:
            code = end_worker(self.workers[rank])
            why = "killed, perhaps for lack of memory" if code < 0 else f"exit code {code}"
            raise EvalError(
                f"process {rank + 1} of {self.count} of the model was lost ({why}); the same command goes on from "
                "what is logged, with a smaller num_processes if need be"
            )
        told: list[Heard | Notice] = pickle.loads(expect_done(kind, data, f"process {rank + 1} of the model"))
        return told


def _end_all(workers: list[subprocess.Popen[bytes]]) -> None:
    while workers:
        end_worker(workers.pop())


def _read_all(worker: subprocess.Popen[bytes], rank: int, inbox: SimpleQueue[Frame]) -> None:
    """Pass on what a process says, and that it is gone."""
    try:
        while True:
            inbox.put((rank, *read_frame(cast("IO[bytes]", worker.stdout))))
    except (EOFError, OSError, ValueError):
        inbox.put((rank, LOST, b""))


# --- there ----------------------------------------------------------------------------------------------------------


def place_device(place: ProcessPlace, devices: int) -> Mapping[str, object]:
    """The arguments of a model in its process: on a device of its own where there are several.

    >>> place_device(ProcessPlace({"pretrained": "m"}, 3, 1), 2)["device"]
    'cuda:1'
    """
    spread = devices > 0 and place.given.get("device") in (None, "cuda")
    return {**place.given, **({"device": f"cuda:{place.rank % devices}"} if spread else {})}


def list_notices(model: Model, given: Mapping[str, object]) -> list[Notice]:
    """What is known once the weights are loaded; what the arguments alone say was said where the processes began."""
    known = read_settings(given).warnings
    return [Notice(one) for one in model.warnings if one not in known]


def group_replies(replies: Iterator[Heard | Notice]) -> Iterator[list[Heard | Notice]]:
    """Group what is at hand together."""
    group = list[Heard | Notice]()
    for one in replies:
        group.append(one)
        if isinstance(one, Notice) or not one.more:
            yield group
            group = []
    if group:
        yield group


def main() -> None:
    """Serve until the pipe is closed: load, then answer lists of questions, a group of replies whenever asked."""
    from evalcore.shell.models.hf.hf_loader import open_hf
    from evalcore.shell.models.hf.network import load_torch

    pipe_in, pipe_out = open_pipes()
    try:
        place = msgspec.json.decode(read_frame(pipe_in)[1], type=ProcessPlace)
        torch = load_torch()
        torch.set_num_threads(place.threads)
        opened = list[Model]()

        def load(given: Mapping[str, object]) -> bytes:
            opened.append(open_hf(given))
            return b""

        kind, told = do_work(load, place_device(place, torch.cuda.device_count() if torch.cuda.is_available() else 0))
        while True:
            questions, tells = pickle.loads(read_frame(pipe_in)[1])
            if kind != DONE:
                write_frame(pipe_out, kind, told)
                continue
            notices = list_notices(opened[0], place.given) if tells else ()
            groups = group_replies(chain(notices, opened[0].ask(questions)))
            while True:
                kind, told = do_work(lambda some: pickle.dumps(next(some, [])), groups)
                write_frame(pipe_out, kind, told)
                if kind != DONE or told == NOTHING:
                    break
                read_frame(pipe_in)
    except (EOFError, BrokenPipeError):
        os._exit(0)  # without waiting for what a library may have started


NOTHING = pickle.dumps([])

if __name__ == "__main__":
    main()
