"""Any sequence of answers, failures, crashes, full disks, damage, changed configs and resumed runs keeps the invariant.

Every document is exactly one of scored, unscorable, failed, not emitted; what was acknowledged is never lost, never
asked again and never counted twice; the numbers are those of the replies that the server gave.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec import Struct
from pyrsistent import pmap
from simulated_disk import Crash, SimulatedDisk

import evalcore
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure, Generate, Reply
from evalcore.extensions import Backend, Heard, Model
from evalcore.shell.answerlog.fold import read_log
from evalcore.shell.answerlog.writer import LogWriter
from evalcore.shell.models.model import Question
from evalcore.shell.run.run_result import RunResult

COLOURS = ("green", "red", "blue", "green")
DOCUMENTS, REPEATS = 4, 2


SOURCE = {"dataset_path": "json", "dataset_kwargs": {"data_files": "docs.jsonl"}, "test_split": "train"}
TASKS: list[dict[str, object]] = [
    {
        "task": "colours",
        "output_type": "generate_until",
        "doc_to_text": "{{'Name a colour' + '!' * n}}",
        "doc_to_target": "green",
        "repeats": REPEATS,
        "repeat_cfg": {"reducer": "mean"},
        "generation_kwargs": {"until": ["\n"], "do_sample": True, "temperature": 1.0},
        "metric_list": [{"metric": "exact_match"}],
    },
    {
        "task": "places",
        "output_type": "multiple_choice",
        "doc_to_text": "Place {{n}} is a",
        "doc_to_choice": ["city", "river"],
        "doc_to_target": 0,
        "metric_list": [{"metric": "acc"}],
    },
]
TASKS = [{**task, **SOURCE} for task in TASKS]


def truth_of(question: Question) -> Reply:
    """What the model says, which depends on nothing but the question."""
    request = question.request
    if isinstance(request, Generate):
        return COLOURS[(len(request.prompt) + question.repeat) % len(COLOURS)]
    return -1.0 - len(str(request)) % 7 / 10, False


class Script(Struct, frozen=True):
    """What the server and the disk do in one run. ``ends`` after so many replies: it is gone, stopped, or crashes."""

    seed: int = 0
    failing: frozenset[int] = frozenset()
    twice: int = -1
    ends: tuple[int, str] = (-1, "")
    disk: tuple[int, str] = (-1, "")
    luck: float = 0.0


SCRIPTS = st.builds(
    Script,
    seed=st.integers(0, 99),
    failing=st.frozensets(st.integers(0, 11), max_size=3),
    twice=st.just(-1) | st.integers(0, 11),
    ends=st.just((-1, "")) | st.tuples(st.integers(0, 12), st.sampled_from(["gone", "stop", "crash"])),
    disk=st.just((-1, "")) | st.tuples(st.integers(1, 40), st.sampled_from(["full", "broken", "crash"])),
    luck=st.floats(0, 1),
)

CLEAN = Script()


class Server:
    """Answers by script; ``asked`` are the questions it was asked in this run."""

    def __init__(self, script: Script) -> None:
        self.script, self.asked = script, list[Question]()

    def ask(self, questions: Sequence[Question]) -> Iterator[Heard]:
        self.asked += questions
        script, dice = self.script, random.Random(self.script.seed)
        order = dice.sample(range(len(questions)), len(questions))
        for count, at in enumerate(order):
            if count == script.ends[0]:
                raise {"gone": EvalError("the server is gone"), "stop": KeyboardInterrupt(), "crash": Crash()}[
                    script.ends[1]
                ]
            reply = Failure("no answer") if at in script.failing else truth_of(questions[at])
            yield Heard(at, reply, more=dice.random() < 0.5)
            if at == script.twice:
                yield Heard(at, reply)


class RunMachine(RuleBasedStateMachine):
    """``kept`` is the oracle: the replies that were durable when the writer returned, by key."""

    def __init__(self) -> None:
        super().__init__()
        self.home = tempfile.TemporaryDirectory()
        self.folder = Path(self.home.name).resolve() / "out"
        self.disk = SimulatedDisk(self.folder)
        self.kept: dict[str, Reply] = {}
        self.keys: dict[str, object] = {}

    def teardown(self) -> None:
        self.home.cleanup()

    @initialize()
    def write_documents(self) -> None:
        home = Path(self.home.name)
        (home / "docs.jsonl").write_text("".join(f'{{"n": {n}}}\n' for n in range(DOCUMENTS)))
        (home / "run.yaml").write_text(json.dumps({"model": "told", "tasks": TASKS}))

    @rule(script=SCRIPTS)
    def run(self, script: Script) -> None:
        self.go(script)

    @rule()
    def run_to_the_end(self) -> None:
        done, _ = self.go(CLEAN)
        assert done is not None
        assert done.complete

    @rule(limit=st.sampled_from([None, 2]), length=st.sampled_from([8, 16]))
    def change_the_config(self, limit: int | None, length: int) -> None:
        self.keys = {"limit": limit, "gen_kwargs": {"max_gen_toks": length}}

    @rule(share=st.floats(0, 0.9))
    def tear(self, share: float) -> None:
        lines = self.log.read_bytes().splitlines() if self.log.exists() else []
        if lines:
            last = lines[-1]
            with self.log.open("ab") as file:
                file.write(last[: int(share * len(last))])
            self.disk.synced[str(self.log)] = self.log.read_bytes()

    @rule(at=st.floats(0, 1))
    def flip_a_byte(self, at: float) -> None:
        """What the damage hits is no longer known; all else is."""
        data = bytearray(self.log.read_bytes() if self.log.exists() else b"")
        first = data.find(b"\n") + 1
        if len(data) > first > 0:
            place = first + int(at * (len(data) - 1 - first))
            data[place] ^= 1
            self.log.write_bytes(data)
            self.disk.synced[str(self.log)] = bytes(data)
            left = read_log(self.log).answers
            self.kept = {key: reply for key, reply in self.kept.items() if key in left and left[key].failure is None}

    @property
    def log(self) -> Path:
        return self.folder / "answers.jsonl"

    def go(self, script: Script) -> tuple[RunResult | None, Server]:
        """Run once, as scripted. Whatever happens, what was kept before is not asked again."""
        before = dict(self.kept)
        server = Server(script)
        real = LogWriter.append_all

        def append_all(writer: LogWriter, answers: object) -> None:
            group = list(answers)  # type: ignore[call-overload]
            real(writer, group)
            self.kept |= {key: reply for key, _, _, reply, *_ in group if not isinstance(reply, Failure)}

        done = None
        with patch.object(LogWriter, "append_all", append_all), self.disk.mounted(script.disk):
            try:
                done = self.evaluate(server)
            except Crash:
                pass
            except (EvalError, KeyboardInterrupt):
                if script == CLEAN:
                    raise
                if script.luck < 0.5:  # the power goes later
                    return None, server
        if done is None:
            self.disk.lose_power(script.luck)
            return None, server
        asked = {f"{one.digest} {one.repeat}" for one in server.asked}
        assert len(asked) == len(server.asked)
        known = {f"{one.request} {one.repeat}" for key, one in read_log(self.log).answers.items() if key in before}
        assert not asked & known
        self.check_numbers(done, server)
        return done, server

    def evaluate(self, server: Server) -> RunResult:
        told = Backend(lambda arguments: Model("told", "told", server.ask), "", ())
        config = Path(self.home.name) / "run.yaml"
        return evalcore.run(config, models=pmap({"told": told}), output_path=str(self.folder), **self.keys)  # type: ignore[arg-type]

    def check_numbers(self, done: RunResult, server: Server) -> None:
        """Each document once; failures are those of the script; the rest has the scores of what the server says."""
        size = self.keys.get("limit") or DOCUMENTS
        for task in done.report.tasks:
            for _, estimate in task.estimates:
                counts = estimate.counts
                assert counts.scored + counts.unscorable + counts.failed + counts.not_emitted == size
                assert counts.unscorable == counts.not_emitted == 0
                if not server.script.failing:
                    assert counts.failed == 0
        if not server.script.failing:
            (_, found), *_ = done.report.tasks[0].estimates
            lengths = [len("Name a colour") + n for n in range(int(str(size)))]
            right = [COLOURS[(one + repeat) % len(COLOURS)] == "green" for one in lengths for repeat in range(REPEATS)]
            assert found.value == sum(right) / len(right)

    @invariant()
    def nothing_acknowledged_is_lost(self) -> None:
        if self.kept:
            answers = read_log(self.log).answers
            for key, reply in self.kept.items():
                stored = answers[key].reply
                assert (stored if isinstance(stored, str) else tuple(stored)[:2]) == reply  # type: ignore[arg-type]


TestRunMachine = RunMachine.TestCase
TestRunMachine.settings = settings(max_examples=12, stateful_step_count=12)


@pytest.mark.slow
class TestLongRunMachine(RunMachine.TestCase):
    settings = settings(max_examples=60, stateful_step_count=25)


def test_the_disk_keeps_what_was_synced(tmp_path: Path) -> None:
    disk = SimulatedDisk(tmp_path)
    with disk.mounted((4, "crash")), suppress(Crash), open(tmp_path / "a", "wb", buffering=0) as file:
        import os

        os.write(file.fileno(), b"one")
        os.fsync(file.fileno())
        os.write(file.fileno(), b"two")
        os.fsync(file.fileno())
    disk.lose_power(0.4)
    assert (tmp_path / "a").read_bytes() == b"onet"
