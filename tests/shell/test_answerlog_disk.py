"""The answer log on full disks, under two writers and under kill -9."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evalcore.core.records.errors import EvalError
from evalcore.shell.answerlog import lock as lock_module
from evalcore.shell.answerlog import writer as writer_module
from evalcore.shell.answerlog.fold import read_log
from evalcore.shell.answerlog.lock import Holder, is_gone
from evalcore.shell.answerlog.writer import open_log


def replies(path: Path) -> dict[str, object]:
    return {key: one.reply for key, one in read_log(path).answers.items()}


def replies_after_append(path: Path) -> dict[str, object]:
    with open_log(path) as log:
        log.append("k", "r", 0, "x")
    return replies(path)


# --- full disks and other trouble -------------------------------------------------------------------------


def test_file_size_limit_leaves_all_earlier_records(tmp_path: Path) -> None:
    script = f"""
import resource, sys
from evalcore.core.records.errors import EvalError
from evalcore.shell.answerlog.writer import open_log
with open_log({str(tmp_path / "a")!r}, "m") as log:
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
    for n in range(1000):
        try:
            log.append(f"k{{n}}", "r", 0, "x" * 300)
        except EvalError as wrong:
            try:
                log.append("again", "r", 0, "x")
            except EvalError as second:
                assert str(second) == str(wrong)
                print(n, wrong)
                sys.exit(74)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 74, done.stderr
    stored, message = done.stdout.split(" ", 1)
    assert str(tmp_path / "a") in message
    assert "File too large" in message
    assert list(replies(tmp_path / "a")) == [f"k{n}" for n in range(int(stored))]
    assert read_log(tmp_path / "a").torn == b""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 5000


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("call", ["write", "fsync"])
@pytest.mark.parametrize("can_truncate", [True, False])
def test_failed_disk_at_every_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, call: str, can_truncate: bool
) -> None:
    real: Callable[..., int] = getattr(os, call)
    for fail_at in range(1, 6):
        path, count = tmp_path / f"{fail_at}", 0

        def fail(fd: int, *rest: bytes, at: int = fail_at) -> int:
            nonlocal count
            count += 1
            if count < at:
                return real(fd, *rest)
            if call == "write" and count == at:
                return real(fd, rest[0][: len(rest[0]) // 2])  # half a record gets through
            raise OSError(code, os.strerror(code))

        def truncate(fd: int, size: int) -> None:
            raise OSError(errno.EIO, "no")

        acknowledged: list[str] = []
        with open_log(path, "m") as log, monkeypatch.context() as patch:
            patch.setattr(writer_module.os, call, fail)
            if not can_truncate:
                patch.setattr(writer_module.os, "ftruncate", truncate)
            said = ""
            while not said:
                try:
                    log.append(f"k{len(acknowledged)}", "r", 0, "some reply")
                    acknowledged.append(f"k{len(acknowledged)}")
                except EvalError as wrong:
                    said = str(wrong)
        assert f"{path}: cannot store the answer: {os.strerror(code)}" in said
        kept = list(replies_after_append(path))
        assert kept[: len(acknowledged)] == acknowledged
        assert len(kept) <= len(acknowledged) + 2


def test_devices_and_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    for path in (tmp_path / "full", tmp_path):
        with pytest.raises(EvalError, match=r"regular file|Is a directory"), open_log(path):
            pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(EvalError, match="cannot open the answer log for writing: Permission denied"):
        replies_after_append(tmp_path / "a")


def test_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(EvalError, match="No such file"):
        read_log(tmp_path / "none")


# --- one writer ----------------------------------------------------------------------------------------------


def test_second_writer_is_refused_with_the_holder(tmp_path: Path) -> None:
    with (
        open_log(tmp_path / "a") as log,
        pytest.raises(EvalError, match=rf"a: another run .*process {os.getpid()} on .*delete .*a\.lock"),
        open_log(tmp_path / "a"),
    ):
        log.append("k", "r", 0, "x")
    assert not (tmp_path / "a.lock").exists()
    assert list(replies_after_append(tmp_path / "a")) == ["k"]


def test_lock_of_another_host_is_respected(tmp_path: Path) -> None:
    (tmp_path / "a.lock").write_text('{"host":"elsewhere","pid":1,"started":"7"}')
    with pytest.raises(EvalError, match="process 1 on elsewhere"), open_log(tmp_path / "a"):
        pass
    assert (tmp_path / "a.lock").exists()


def test_a_silent_lock_of_another_host_is_taken_over_where_the_kernel_knows_of_no_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that was killed: its successor has another host name."""
    lock = tmp_path / "a.lock"
    for in_kernel, taken in ((True, True), (None, False)):
        monkeypatch.setattr(lock_module, "_lock_in_kernel", lambda fd, answer=in_kernel: answer)
        lock.write_text('{"host":"elsewhere","pid":1,"started":"7"}')
        os.utime(lock, (0, time.time() - 2 * lock_module.SILENT_SECONDS))
        with contextlib.ExitStack() as stack:
            if not taken:
                stack.enter_context(pytest.raises(EvalError, match="another run"))
            stack.enter_context(open_log(tmp_path / "a", "m"))


def test_a_writer_touches_its_lock(tmp_path: Path) -> None:
    with open_log(tmp_path / "a", "m") as log:
        os.utime(tmp_path / "a.lock", (0, 0))
        log.append("k", "r", 0, "text")
        assert (tmp_path / "a.lock").stat().st_mtime > 0


@pytest.mark.parametrize(
    "content", ["", "{", '{"host":"HOST","pid":DEAD,"started":"7"}', '{"host":"HOST","pid":ME,"started":"7"}']
)
def test_lock_of_a_dead_process_is_taken_over(tmp_path: Path, content: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    text = content.replace("HOST", socket.gethostname()).replace("DEAD", str(child.pid)).replace("ME", str(os.getpid()))
    (tmp_path / "a.lock").write_text(text)
    assert list(replies_after_append(tmp_path / "a")) == ["k"]
    assert not (tmp_path / "a.lock").exists()


def test_without_kernel_locks_the_lock_file_alone_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "_lock_in_kernel", lambda fd: None)
    with (
        open_log(tmp_path / "a"),
        pytest.raises(EvalError, match=f"process {os.getpid()} on"),
        open_log(tmp_path / "a"),
    ):
        pass
    (tmp_path / "a.lock").write_text(f'{{"host":"{socket.gethostname()}","pid":999999999,"started":"1"}}')
    assert list(replies_after_append(tmp_path / "a")) == ["k"]
    (tmp_path / "a.lock").write_text("")  # perhaps being written at this moment, on another host
    with pytest.raises(EvalError, match="another process"), open_log(tmp_path / "a"):
        pass


def test_a_zombie_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has asked how
    assert is_gone(Holder(socket.gethostname(), child.pid))
    child.wait()


WRITER = """
import itertools, sys
from evalcore.shell.answerlog.writer import open_log
path, start = sys.argv[1], int(sys.argv[2])
with open_log(path, "m") as log:
    for n in itertools.count(start):
        log.append(f"k{n}", f"r{n}", 0, "reply " * (n % 50))
        sys.stdout.write(f"{n}\\n"); sys.stdout.flush()
"""


def test_killed_at_any_moment_loses_nothing_acknowledged(tmp_path: Path) -> None:
    path, start = tmp_path / "answers.jsonl", 0
    for turn in range(12):
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(start)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        first = child.stdout.readline()
        time.sleep(0.003 * turn)
        os.kill(child.pid, signal.SIGKILL)
        said = (first + child.stdout.read()).split()
        child.wait()
        state = read_log(path)
        assert said
        assert int(said[-1]) + 1 <= len(state.answers) <= int(said[-1]) + 2
        assert state.problems == ()
        assert all(one.reply == "reply " * (n % 50) for n, one in enumerate(state.answers.values()))
        start = len(state.answers)


def test_only_one_of_many_gets_in(tmp_path: Path) -> None:
    script = """
import sys
from evalcore.core.records.errors import EvalError
from evalcore.shell.answerlog.writer import open_log
sys.stdin.readline()
try:
    with open_log(sys.argv[1], "m") as log:
        log.append(sys.argv[2], "r", 0, "x"); print("in", flush=True); sys.stdin.readline()
except EvalError:
    print("out", flush=True)
"""
    (tmp_path / "a.lock").write_text(f'{{"host":"{socket.gethostname()}","pid":999999999,"started":"1"}}')
    args = [sys.executable, "-c", script, str(tmp_path / "a")]
    children = [
        subprocess.Popen([*args, f"k{n}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for n in range(6)
    ]
    for child in children:
        child.stdin.write("go\n")  # type: ignore[union-attr]
        child.stdin.flush()  # type: ignore[union-attr]
    words = sorted(child.stdout.readline().strip() for child in children)  # type: ignore[union-attr]
    for child in children:
        child.communicate("end\n")
    assert words == ["in"] + ["out"] * 5
    assert len(read_log(tmp_path / "a").answers) == 1
