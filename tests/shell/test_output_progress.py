"""Progress: right counts, on stderr only, in the form that suits it."""

from __future__ import annotations

import io

import pytest

from evalcore.shell.output.terminal.progress import Stage, describe_stage, progress


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(stream: io.StringIO, *, quiet: bool = False, every: float = 10.0) -> None:
    clock = Clock()
    with progress(quiet, stream=stream, every=every, clock=clock) as shown:
        shown.stage("asking \x1b[31m[red]", 100, known=40)
        for i in range(60):
            clock.now += 0.5
            shown.advance(failed=["http_429: slow \x1b down"] if i == 7 else ())
        shown.stage("scoring", 2)
        shown.advance(2)


def test_lines_now_and_then_and_at_the_end_of_each_stage() -> None:
    out = io.StringIO()
    work(out)
    lines = out.getvalue().splitlines()
    assert lines == [
        r"asking \x1b[31m[red]: 60/100 (60 %), 40 from the log, 20 now, 1 failed (1 HTTP 429), 2.0/s, 20 s left",
        r"asking \x1b[31m[red]: 80/100 (80 %), 40 from the log, 40 now, 1 failed (1 HTTP 429), 2.0/s, 10 s left",
        r"asking \x1b[31m[red]: 100/100 (100 %), 40 from the log, 60 now, 1 failed (1 HTTP 429), 2.0/s",
        "scoring: 2/2 (100 %)",
    ]


def test_quiet_says_nothing_and_nothing_reaches_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    work(out, quiet=True)
    assert out.getvalue() == ""
    work(Terminal())
    work(io.StringIO())
    assert capsys.readouterr().out == ""


def test_bars_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    work(out)
    assert r"asking \x1b[31m[red]" in out.getvalue()
    assert "100/100 (100 %), 2.0/s" in out.getvalue()
    assert "  40 from the log, 60 now" in out.getvalue()
    assert "  1 failed (1 HTTP 429)" in out.getvalue()
    assert "scoring" in out.getvalue()


def test_printing_while_bars_are_shown_goes_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(stream=Terminal()) as shown:
        shown.stage("asking", 1)
        print("data")
        shown.advance()
    assert capsys.readouterr().out == "data\n"


def test_an_error_passes_and_the_last_line_is_still_said() -> None:
    out = io.StringIO()

    def stopped() -> None:
        with progress(stream=out) as shown:
            shown.stage("asking", 10)
            shown.advance(3)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert out.getvalue().startswith("asking: 3/10 (30 %)")


def test_nothing_to_do_is_said_without_dividing_by_it() -> None:
    assert describe_stage(Stage("asking", 0), 0.0) == "0/0"
    assert describe_stage(Stage("asking", 5, known=5), 0.0) == "5/5 (100 %), 5 from the log, 0 now"
    out = io.StringIO()
    with progress(stream=out) as shown:
        shown.advance()
        shown.stage("asking", 0)
    assert out.getvalue() == ""


# --- numbers so far -------------------------------------------------------------------------------------------------


class Estimates:
    """Numbers so far that take some seconds to make, and when they were asked for."""

    def __init__(self, clock: Clock, takes: float) -> None:
        self.clock, self.takes, self.asked = clock, takes, list[tuple[float, float]]()

    def __call__(self, seconds: float) -> list[str]:
        self.asked.append((self.clock.now, seconds))
        self.clock.now += min(self.takes, seconds)
        return [f"t acc 0.5 (0.4 to 0.6), n {len(self.asked)}\x1b[2J"] if self.takes <= seconds else []


def watch(stream: io.StringIO, takes: float, *, quiet: bool = False, steps: int = 2000) -> Estimates:
    clock = Clock()
    made = Estimates(clock, takes)
    with progress(quiet, stream=stream, clock=clock) as shown:
        shown.stage("asking", steps + 1, estimate=made)
        for _ in range(steps):
            clock.now += 1.0
            shown.advance()
    return made


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
@pytest.mark.parametrize("takes", [0.0, 0.01, 0.1, 1.0, 4.0, 30.0])
def test_numbers_so_far_take_a_fiftieth_of_the_time_at_most(stream: type[io.StringIO], takes: float) -> None:
    made = watch(stream(), takes)
    spent = sum(min(takes, seconds) for _, seconds in made.asked)
    assert made.asked
    longest = max(seconds for _, seconds in made.asked)
    assert longest <= 5.0
    assert spent <= made.clock.now / 50 + longest  # the last is paid for by the time after it


def test_numbers_so_far_stand_under_the_lines() -> None:
    out = io.StringIO()
    watch(out, 0.0, steps=25)
    assert out.getvalue().splitlines() == [
        "asking: 10/26 (38 %), 1.0/s, 16 s left",
        r"  t acc 0.5 (0.4 to 0.6), n 1\x1b[2J",
        "asking: 20/26 (76 %), 1.0/s, 6 s left",
        r"  t acc 0.5 (0.4 to 0.6), n 2\x1b[2J",
        "asking: 25/26 (96 %), 1.0/s, 1 s left",
    ]


def test_numbers_so_far_stand_under_the_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    watch(out, 0.01, steps=25)
    assert r"  t acc 0.5 (0.4 to 0.6), n 12\x1b[2J" in out.getvalue()
    assert "25/26 (96 %), 1.0/s, 1 s left" in out.getvalue()


def test_nobody_makes_numbers_that_nobody_sees() -> None:
    assert watch(io.StringIO(), 0.01, quiet=True).asked == []
