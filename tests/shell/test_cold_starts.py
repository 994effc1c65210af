"""A first run reads lm-eval's task files with the help of workers, and none of them can stop or outlive it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_tasks import command, environment

ROOT = Path(__file__).parents[2]
GUARD = 600
"""Seconds after which a process counts as stuck, however busy the machine is."""

READ = """
import multiprocessing, os, signal, sys, time
from evalcore.shell.tasks.library import workers as reading

def interrupt(number, frame):
    raise KeyboardInterrupt

for one in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(one, interrupt)
here, real, calls = os.getpid(), reading.read_document, []
reading.WORTH_IT, reading.CHUNK = 1, 2
os.sched_getaffinity = lambda _: range(3)

def read(path, root, **how):
    calls.append(path)
    if os.getpid() != here:
        {worker}
    else:
        {parent}
    return real(path, root, **how)

reading.read_document = read
{setup}
paths = sorted(str(path) for path in __import__("pathlib").Path(sys.argv[1]).glob("*.yaml"))
multiprocessing.current_process()  # imports what it needs
held = len(os.listdir("/dev/fd"))
try:
    found = reading.read_many(paths, sys.argv[1], shipped=False)
    assert found == dict((path, real(path, sys.argv[1], scanned=True)) for path in paths)
    print("read", len(calls))
except KeyboardInterrupt:
    print("interrupted")
assert not multiprocessing.active_children()
assert len(os.listdir("/dev/fd")) == held
"""


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    for at in range(20):
        (tmp_path / f"task_{at:02}.yaml").write_text(f"task: t{at}\n")
    return tmp_path


def read_tasks(folder: Path, worker: str, parent: str = "pass", setup: str = "") -> tuple[str, str]:
    code = READ.format(worker=worker, parent=parent, setup=setup)
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, timeout=GUARD, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def test_workers_take_work_off_the_reader(tasks: Path) -> None:
    flag = tasks / "delivered"
    worker = f"len(calls) > 2 and open({str(flag)!r}, 'w').close()"  # in its second chunk, it has sent the first
    told, _ = read_tasks(tasks, worker, f"while not os.path.exists({str(flag)!r}): time.sleep(0.01)")
    assert int(told.removeprefix("read ")) < 20


@pytest.mark.parametrize(
    "worker", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(1)", "raise MemoryError", "time.sleep(10**6)"]
)
def test_what_a_worker_does_not_deliver_is_read_in_turn(tasks: Path, worker: str) -> None:
    assert read_tasks(tasks, worker) == ("read 20", "")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGUSR1"])
def test_workers_inherit_no_handlers(tasks: Path, name: str) -> None:
    """A handler of ours would raise in the worker; the signal's own way is to end it."""
    seen = tasks / "seen"
    note = f"open({str(seen)!r}, 'a').write(signal.getsignal(signal.{name}).__class__.__name__ + '\\n')"
    wait = f"while not (os.path.exists({str(seen)!r}) and os.path.getsize({str(seen)!r})): time.sleep(0.01)"
    assert read_tasks(tasks, f"{note}; os.kill(os.getpid(), signal.{name}); time.sleep(10**6)", wait) == ("read 20", "")
    assert set(seen.read_text().split()) == {"Handlers"}  # which SIG_DFL and SIG_IGN are, and no function is


def test_a_worker_that_is_stopped_in_the_midst_of_a_message_delays_nothing(tasks: Path) -> None:
    """Each worker sends a message but for its last byte, says so and stops; the run goes on once all have."""
    half_sent = """
class HalfSent:
    def __init__(self, end, mode):
        self.end = end

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        pass

    def write(self, message):
        assert os.write(self.end, message[:-1]) == len(message) - 1
        open(os.path.join(sys.argv[1], f"sent_{os.getpid()}"), "w").close()
        os.kill(os.getpid(), signal.SIGSTOP)

reading.open = HalfSent
"""
    wait = "while sum(one.startswith('sent_') for one in os.listdir(sys.argv[1])) < 2: time.sleep(0.01)"
    assert read_tasks(tasks, "pass", wait, half_sent) == ("read 20", "")


def test_a_worker_that_is_forked_while_a_signal_is_pending_dies_quietly(tasks: Path) -> None:
    """A signal that is sent to a worker as soon as it exists finds no handler of ours."""
    pending = "os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGTERM))"
    assert read_tasks(tasks, "pass", setup=pending) == ("read 20", "")


def test_workers_end_when_the_reader_is_killed(tasks: Path) -> None:
    """They hold its output open until then; so this waits for them, too."""
    for path in tasks.glob("*.yaml"):  # more than a pipe holds
        path.write_text(path.read_text() + "description: " + "x" * 900_000 + "\n")
    started = "open(os.path.join(sys.argv[1], f'started_{os.getpid()}'), 'w').close()"
    killed = (
        "while sum(one.startswith('started_') for one in os.listdir(sys.argv[1])) < 2: time.sleep(0.01)\n"
        "        os.kill(here, signal.SIGKILL)"
    )
    code = READ.format(worker=started, parent=killed, setup="")
    run = subprocess.Popen([sys.executable, "-c", code, str(tasks)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert run.communicate(timeout=GUARD) == (b"", b"")
    assert run.returncode == -signal.SIGKILL


def test_signals_are_heard_again_whenever_one_comes(tasks: Path) -> None:
    """A handler that raises while signals are being blocked must not leave them blocked."""
    code = """
import random, signal
from evalcore.shell.tasks.library.workers import _block_signals

def interrupt(number, frame):
    raise KeyboardInterrupt

def blocked():
    return signal.pthread_sigmask(signal.SIG_BLOCK, ())

signal.signal(signal.SIGALRM, interrupt)
dice = random.Random(0)
for at in range(20_000):
    try:
        signal.setitimer(signal.ITIMER_REAL, dice.uniform(1e-6, 1e-4))
        with _block_signals():
            pass
        for _ in range(200):
            pass
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
    try:
        left = blocked()
    except KeyboardInterrupt:
        left = blocked()
    assert not left, at
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=GUARD, check=False)
    assert done.returncode == 0, done.stderr


def test_an_interrupt_leaves_no_worker_behind(tasks: Path) -> None:
    assert read_tasks(tasks, "time.sleep(10**6)", "os.kill(here, signal.SIGTERM)") == ("interrupted", "")


@pytest.fixture
def busy() -> Iterator[None]:
    """Twice as many idle loops as there are processors, and no more than four."""
    code = f"import os\nwhile os.getppid() == {os.getpid()}: pass"
    loops = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(min(4, 2 * (os.cpu_count() or 1)))]
    yield
    for one in loops:
        one.kill()
        one.wait()


def start_cold(folder: Path) -> None:
    """A first run, without a cache of the index of lm-eval's task files."""
    done = subprocess.run(
        command(
            "run", str(ROOT / "examples/quickstart/config.yaml"), "--output_path", "out", "--limit", "2", "--quiet"
        ),
        cwd=folder,
        env=environment(folder) | {"XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=GUARD,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert list((folder / "cache/evalcore").glob("tasks-*.msgpack"))


def test_a_cold_start(tmp_path: Path) -> None:
    pytest.importorskip("lm_eval")
    start_cold(tmp_path)


@pytest.mark.slow
def test_thirty_cold_starts_beside_a_load(tmp_path: Path, busy: None) -> None:
    pytest.importorskip("lm_eval")
    for at in range(30):
        (tmp_path / str(at)).mkdir()
        start_cold(tmp_path / str(at))
