"""The answer log: what was acknowledged is kept, what was torn or damaged is named, and nobody else writes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from counting import count_steps
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore.core.records.document import digest_request as request_hash
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure, Generate, Likelihood
from evalcore.shell.answerlog import writer
from evalcore.shell.answerlog.fold import read_log
from evalcore.shell.answerlog.line import HEADER, encode_record, is_intact, make_record
from evalcore.shell.answerlog.writer import open_log

REPLIES = [
    "four",
    "",
    "line\nbreak \u2028 \x85 \r \x00 é 😀",
    "half a pair \ud83d",
    Likelihood(-1.25, True, 3),
    Likelihood(-math.inf, False, 2),
    -12.5,
    -math.inf,
    Failure("time-out after 3 tries"),
]


def fill(path: Path, count: int = 3) -> bytes:
    with open_log(path, "m@1") as log:
        for n in range(count):
            log.append(f"k{n}", f"r{n}", 0, f"reply {n}", "stop")
    return path.read_bytes()


def replies(path: Path) -> dict[str, object]:
    return {key: one.reply for key, one in read_log(path).answers.items()}


def test_every_reply_comes_back_as_it_was(tmp_path: Path) -> None:
    with open_log(tmp_path / "new" / "answers.jsonl", "m@1") as log:
        for n, reply in enumerate(REPLIES):
            log.append(f"k{n}", "r", n, reply, "length")
    state = read_log(tmp_path / "new" / "answers.jsonl")
    assert [one.reply for one in state.answers.values()] == REPLIES
    assert {one.finish for one in state.answers.values()} == {"length"}
    assert [one.repeat for one in state.answers.values()] == list(range(len(REPLIES)))
    assert list(state.models.values()) == ["m@1"]
    assert (state.problems, state.torn) == ((), b"")


def test_nan_comes_back(tmp_path: Path) -> None:
    with open_log(tmp_path / "a") as log:
        log.append("k", "r", 0, math.nan)
        log.append("l", "r", 0, Likelihood(math.nan))
    first, second = replies(tmp_path / "a").values()
    assert math.isnan(first)
    assert math.isnan(second.value)


def test_every_line_is_strict_json(tmp_path: Path) -> None:
    import json

    def refuse(word: str) -> object:
        raise AssertionError(word)

    with open_log(tmp_path / "a", "m") as log:
        for n, reply in enumerate(REPLIES):
            log.append(f"k{n}", "r", 0, reply)
    lines = (tmp_path / "a").read_bytes().split(b"\n")[:-1]
    assert len(lines) == len(REPLIES) + 2
    for line in lines:
        assert next(iter(json.loads(line, parse_constant=refuse))) == "sum"


def test_truncated_at_every_byte_of_the_last_record(tmp_path: Path) -> None:
    whole = fill(tmp_path / "whole")
    before = len(whole) - len(whole.splitlines(keepends=True)[-1])
    path, torn = tmp_path / "answers.jsonl", tmp_path / "answers.jsonl.torn"
    for end in range(before, len(whole) + 1):
        path.write_bytes(whole[:end])
        torn.unlink(missing_ok=True)
        kept = end >= len(whole) - 1  # all but the newline is a whole record
        with open_log(path, "m@1") as log:
            assert list(log.state.answers) == (["k0", "k1", "k2"] if kept else ["k0", "k1"])
            assert log.state.problems == ()
            log.append("k9", "r9", 0, "after")
        assert list(replies(path)) == (["k0", "k1", "k2", "k9"] if kept else ["k0", "k1", "k9"])
        assert read_log(path).torn == b""
        assert read_log(path).problems == ()
        if kept or end == before:
            assert not torn.exists()
        else:
            assert torn.read_bytes() == whole[before:end] + b"\n"


def test_truncated_in_the_header(tmp_path: Path) -> None:
    for end in range(len(HEADER) + 1):
        path = tmp_path / f"{end}"
        path.write_bytes(HEADER[:end])
        assert list(replies_after_append(path)) == ["k"]


def replies_after_append(path: Path) -> dict[str, object]:
    with open_log(path) as log:
        log.append("k", "r", 0, "x")
    assert read_log(path).problems == ()
    return replies(path)


def test_any_flipped_byte_of_a_middle_line_is_named(tmp_path: Path) -> None:
    whole = fill(tmp_path / "whole")
    lines = whole.splitlines(keepends=True)
    start = sum(map(len, lines[:3]))  # header, model, k0, then k1
    path = tmp_path / "a"
    for at in range(start, start + len(lines[3]) - 1):
        for mask in (1, 0x20, 0xFF, whole[at] ^ 0x0A, whole[at]):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
            state = read_log(path)
            assert sorted(state.answers) == ["k0", "k2"]
            assert any(f"{path}:4: damaged" in one for one in state.problems)
    with open_log(path) as log:  # never fatal, and still said after more was written
        log.append("k1", "r1", 0, "again")
    assert sorted(replies(path)) == ["k0", "k1", "k2"]
    assert read_log(path).problems


def test_nul_block_at_the_end_is_torn(tmp_path: Path) -> None:
    whole = fill(tmp_path / "a")
    (tmp_path / "a").write_bytes(whole + b"\0" * 4096)
    assert list(replies_after_append(tmp_path / "a")) == ["k0", "k1", "k2", "k"]
    assert (tmp_path / "a.torn").stat().st_size == 4097


def test_damaged_header_is_named_and_not_fatal(tmp_path: Path) -> None:
    whole = fill(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"X" + whole[1:])
    state = read_log(tmp_path / "a")
    assert len(state.answers) == 3
    assert "a:1: damaged" in state.problems[0]


def test_later_reply_counts_and_the_conflict_is_said(tmp_path: Path) -> None:
    with open_log(tmp_path / "a") as log:
        log.append("k", "r", 0, "one")
        log.append("k", "r", 0, "one")
        log.append("k", "r", 0, "two")
    state = read_log(tmp_path / "a")
    assert state.answers["k"].reply == "two"
    assert len(state.problems) == 1
    assert "a:5: another reply" in state.problems[0]


def test_a_failure_never_undoes_a_success(tmp_path: Path) -> None:
    with open_log(tmp_path / "a") as log:
        log.append("k", "r", 0, Failure("first"))
        log.append("k", "r", 0, "good")
        log.append("k", "r", 0, Failure("later"))
        log.append("l", "r", 0, Failure("one"))
        log.append("l", "r", 0, Failure("two"))
    assert replies(tmp_path / "a") == {"k": "good", "l": Failure("two")}
    assert read_log(tmp_path / "a").problems == ()


@pytest.mark.parametrize("content", [b"hello", b"hello\n", b'{"a": 1}\n' * 3, b"\x7fELF"])
def test_another_file_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(EvalError, match="not an answer log"), open_log(tmp_path / "a"):
        pass
    assert (tmp_path / "a").read_bytes() == content


def test_an_intact_line_of_another_shape_is_named(tmp_path: Path) -> None:
    fill(tmp_path / "a")
    from zlib import crc32

    with open(tmp_path / "a", "ab") as file:
        for rest in (b'"key":1}', b'"key":"k","request":"r"}', b'"x":' + b"[" * 100_000 + b"}", b'"x":"\xff"}'):
            file.write(b'{"sum":"%08x",' % crc32(rest) + rest + b"\n")
    state = read_log(tmp_path / "a")
    assert len(state.answers) == 3
    assert len(state.problems) == 4
    assert all("\n" not in one and len(one) < 400 for one in state.problems)


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    from evalcore.shell.answerlog.line import Header

    (tmp_path / "a").write_bytes(encode_record(Header(version=2)))
    with pytest.raises(EvalError, match="a:1: evalcore-answers 2; expected evalcore-answers 1"):
        read_log(tmp_path / "a")


def test_many_problems_are_counted_not_listed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(HEADER + b"bad\n" * 1000)
    problems = read_log(tmp_path / "a").problems
    assert len(problems) == 101
    assert problems[-1].endswith("and 900 more such lines")


# --- laws ------------------------------------------------------------------------------------------------------


@given(
    st.text()
    | st.floats()
    | st.tuples(st.floats(), st.booleans(), st.integers(0, 2**40)).map(lambda t: Likelihood(*t)),
    st.text(),
)
@settings(deadline=None)
def test_encode_then_decode_is_the_same(reply: object, finish: str) -> None:
    from evalcore.shell.answerlog.line import decode_record

    line = encode_record(make_record("k", "r", 3, "m", reply, finish))  # type: ignore[arg-type]
    assert line.count(b"\n") == 1
    assert is_intact(line[:-1])
    back = decode_record(line[:-1])
    assert repr((back.reply, back.finish)) == repr((reply, finish))  # type: ignore[union-attr]


def test_request_hash_tells_requests_apart() -> None:
    hashes = {request_hash(Generate(p, o)) for p in ("a", "b", "\ud83d") for o in ({}, {"until": ["x"]})}  # type: ignore[arg-type]
    assert len(hashes) == 6


def test_a_large_log_is_read_in_a_few_steps_a_line(tmp_path: Path) -> None:
    steps = {}
    for count in (0, 1000, 2000):
        lines = [
            encode_record(make_record(f"{n:064x}", f"{n:032x}", 0, "0123456789ab", "x" * 100)) for n in range(count)
        ]
        path = tmp_path / str(count)
        path.write_bytes(HEADER + b"".join(lines))
        assert len(read_log(path).answers) == count
        steps[count] = count_steps(lambda path=path: read_log(path))
    assert steps[1000] - steps[0] < 60 * 1000  # 38 of them
    assert steps[2000] - steps[1000] < 60 * 1000


def test_answers_that_come_together_wait_for_the_disk_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(writer.os, "fsync", synced.append)
    with open_log(tmp_path / "a", "m") as log:
        before = len(synced)
        log.append_all((f"k{n}", "r", 0, f"reply {n}", "", None) for n in range(64))
        assert len(synced) == before + 1
    with open_log(tmp_path / "a", "m") as log:
        assert list(log.state.answers) == [f"k{n}" for n in range(64)]


def test_a_wait_that_fails_withdraws_all_that_came_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with open_log(tmp_path / "a", "m") as log:
        log.append("kept", "r", 0, "x")
        monkeypatch.setattr(writer.os, "fsync", fail)
        with pytest.raises(EvalError, match="cannot store the answer: Input/output error"):
            log.append_all((f"k{n}", "r", 0, "y", "", None) for n in range(5))
        monkeypatch.undo()
    with open_log(tmp_path / "a", "m") as log:
        assert list(log.state.answers) == ["kept"]
