"""What a run leaves in its folder while it goes on: for onlookers, at no cost to the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from evalcore.shell.output.terminal.progress import EstimateSoFar, Estimator, Unseen
from evalcore.shell.run.live.progress_file import NAME, RunProgress, leave_progress, read_progress


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(Unseen):
    """Shows numbers so far, as the forms of progress for people do."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.shown = clock, list[tuple[str, ...]]()

    def stage(self, name: str, total: int, *, known: int = 0, estimate: Estimator | None = None) -> None:
        self.so_far = EstimateSoFar(estimate, self.clock)

    def advance(self, n: int = 1, *, failed: Sequence[str] = ()) -> None:
        self.shown.append(self.so_far.renew())


def test_onlookers_read_what_is_done_and_the_numbers_so_far(tmp_path: Path) -> None:
    clock = Clock()
    with leave_progress(tmp_path, Unseen(), clock) as told:
        assert read_progress(tmp_path) is None
        told.stage("asking", 10, known=2, estimate=lambda seconds: [f"at {clock.now:g}\x1b"])
        assert read_progress(tmp_path) == RunProgress("asking", 10, 2)
        told.advance(3, failed=["timeout: not a byte for 9 s"])
        assert read_progress(tmp_path) == RunProgress("asking", 10, 5, (("timeout", 1),))
        clock.now = 3.0
        told.advance(-1)
        assert read_progress(tmp_path) == RunProgress("asking", 10, 4, (("timeout", 1),), ("at 3\\x1b",))
        told.stage("scoring", 4)
        assert read_progress(tmp_path) == RunProgress("scoring", 4, 0, (), ("at 3\\x1b",))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("terminal", [True, False])
def test_numbers_so_far_are_made_once_for_all(tmp_path: Path, terminal: bool) -> None:
    clock, made = Clock(), list[float]()

    def estimate(seconds: float) -> Sequence[str]:
        made.append(clock.now)
        clock.now += 0.01
        return [f"made {len(made)}"]

    shown = Terminal(clock) if terminal else Unseen()
    with leave_progress(tmp_path, shown, clock) as told:
        told.stage("asking", 1000, estimate=estimate)
        for _ in range(100):
            clock.now += 0.1
            told.advance()
        last = read_progress(tmp_path)
    assert last is not None
    assert last.lines == (f"made {len(made)}",)
    assert 4 <= len(made) <= 5
    if isinstance(shown, Terminal):
        assert shown.shown[-1] == last.lines


def test_a_run_that_is_stopped_leaves_how_far_it_was(tmp_path: Path) -> None:
    def work() -> None:
        with leave_progress(tmp_path, Unseen()) as told:
            told.stage("asking", 10, known=4)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert read_progress(tmp_path) == RunProgress("asking", 10, 4)


def test_a_folder_that_takes_no_file_stops_no_run(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    shown = Unseen()
    with leave_progress(tmp_path, shown) as told:
        assert told is shown
    full = tmp_path / "full"
    full.mkdir()
    (full / NAME).symlink_to("/dev/full")
    with leave_progress(full, shown) as told:
        told.stage("asking", 10)
        told.advance()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"total": "x"}', b"\xff", b'{"stage":1}\n'])
def test_what_is_no_progress_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    assert read_progress(tmp_path) is None


def test_a_shorter_line_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    with leave_progress(tmp_path, Unseen()) as told:
        told.stage("a" * 500, 1)
        told.stage("b", 1)
        assert (tmp_path / NAME).read_bytes().count(b"\n") == 1
        assert read_progress(tmp_path) == RunProgress("b", 1)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"total": "5"}',
        b'{"total": NaN}',
        b'{"total": -1}',
        b'{"total": 9007199254740993}',  # beyond what a browser counts exactly; with 400 zeros, it draws nothing at all
        b'{"total": 1' + b"0" * 400 + b"}",
        b'{"failed": [["x", -1]]}',
        b'{"stage": "\xff"}',
        b'{"stage": "\\ud800"}',
        b'{"more": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b'{"lines": ["' + b"a" * (1 << 20) + b'"]}',
    ],
)
def test_what_no_run_wrote_is_no_progress(content: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(content)
    assert read_progress(tmp_path) is None
