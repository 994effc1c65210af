"""A log that is appended to, torn, damaged and resumed in any order keeps exactly what was acknowledged."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure
from evalcore.shell.answerlog.fold import LogState, fold_lines, read_log
from evalcore.shell.answerlog.line import HEADER, encode_record, make_record
from evalcore.shell.answerlog.writer import open_log

keys = st.sampled_from("abcd")
texts = st.text(max_size=8)


class LogMachine(RuleBasedStateMachine):
    """``expected`` is the oracle: successes and failures acknowledged, by key."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "answers.jsonl"
        self.expected: dict[str, object] = {}
        self.torn = b""
        self.damaged = 0

    def teardown(self) -> None:
        self.folder.cleanup()

    @initialize()
    def create(self) -> None:
        with open_log(self.path, "m"):
            pass

    @rule(answers=st.lists(st.tuples(keys, texts | texts.map(Failure)), max_size=4))
    def run_and_stop(self, answers: list[tuple[str, str | Failure]]) -> None:
        with open_log(self.path, "m") as log:
            assert {key: one.reply for key, one in log.state.answers.items()} == self.expected
            for key, reply in answers:
                log.append(key, "r", 0, reply)
                if not (isinstance(reply, Failure) and isinstance(self.expected.get(key), str)):
                    self.expected[key] = reply
        self.torn = b""

    @rule(key=keys, text=texts, share=st.floats(0, 0.99))
    def crash_while_writing(self, key: str, text: str, share: float) -> None:
        if not self.torn:
            line = encode_record(make_record(key, "r", 0, "m", text))[:-1]
            self.torn = line[: int(share * len(line))]
            with open(self.path, "ab") as file:
                file.write(self.torn)

    @rule(junk=st.binary(min_size=1, max_size=20))
    def damage_a_new_line(self, junk: bytes) -> None:
        if not self.torn:
            with open(self.path, "ab") as file:
                file.write(junk.replace(b"\n", b" ") + b"\n")
            self.damaged += 1

    @invariant()
    def nothing_acknowledged_is_lost_and_nothing_else_counts(self) -> None:
        if self.path.exists():
            state = read_log(self.path)
            assert {key: one.reply for key, one in state.answers.items()} == self.expected
            assert state.torn == self.torn
            assert sum("damaged" in one for one in state.problems) == self.damaged


WRITTEN = {f"k{n}": f"reply {n} é" for n in range(4)}
WHOLE = HEADER + b"".join(encode_record(make_record(key, "r", 0, "m", text)) for key, text in WRITTEN.items())
EDITS = st.lists(
    st.tuples(st.integers(0, len(WHOLE)), st.integers(0, 30), st.binary(max_size=30)), min_size=1, max_size=4
)


@given(EDITS)
def test_no_damage_makes_an_answer_that_was_never_written(edits: list[tuple[int, int, bytes]]) -> None:
    data = WHOLE
    for at, gone, new in edits:
        data = data[:at] + new + data[at + gone :]
    try:
        state = fold_lines(io.BytesIO(data))
    except EvalError as wrong:
        state = LogState(problems=(str(wrong),))
    assert {key: one.reply for key, one in state.answers.items()}.items() <= WRITTEN.items()


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
