"""Standard streams, signals and disks: whatever becomes of them, the work is done, and the exit code says what was not."""

from __future__ import annotations

import json
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from fault_server import serve
from small_tasks import command, environment, evalcore, write_tasks

from evalcore.shell.safety.exit_codes import MEANINGS, Exit

DEADLINE = 600
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of two small tasks; the second has one document that failed."""
    home = tmp_path_factory.mktemp("streams")
    write_tasks(home / "tasks", 4)
    config = {"model": "dummy", "tasks": ["sums", "places"], "include_path": "tasks", "output_path": "out"}
    (home / "run.yaml").write_text(yaml.safe_dump(config))
    assert evalcore(home, "run", "run.yaml").returncode == 0
    assert evalcore(home, "score", "out", "--partial_only", "--partials", "parts").returncode == 0
    return home


def in_shell(home: Path, arguments: Sequence[object], streams: str) -> subprocess.CompletedProcess[str]:
    """A command with its streams as a shell redirects them."""
    line = " ".join(command(*arguments))
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line} {streams}"],
        cwd=home,
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


COMMANDS: dict[str, tuple[int, tuple[str, ...]]] = {
    "run": (0, ("run", "run.yaml")),
    "score": (0, ("score", "out")),
    "merge": (0, ("merge", "parts")),
    "tasks": (0, ("tasks", "list", "--include_path", "tasks")),
    "explain": (0, ("explain", "out", "--task", "sums", "--doc", "1")),
    "diff": (0, ("diff", "out", "out")),
    "compare": (0, ("compare", "out", "out")),
    "power": (0, ("power", "out", "--difference", "0.3")),
    "check": (1, ("check", "out", "--min", "exact_match=1", "--strict")),
    "models": (0, ("models",)),
    "help": (0, ("run", "--help")),
    "mistake": (2, ("run", "no_such.yaml")),
    "flag": (2, ("merge", "parts", "--no_such_flag")),
}
STREAMS = {
    "no stdout": (">&-", False),
    "no stderr": ("2>&-", False),
    "no stream": ("<&- >&- 2>&-", False),
    "reader gone": ("| true", False),
    "full stdout": (">/dev/full", True),
    "full stderr": ("2>/dev/full", False),
}
QUICK = {("run", "no stream"), ("check", "reader gone"), ("models", "full stdout"), ("mistake", "no stderr")}
CASES = [
    pytest.param(name, streams, marks=() if (name, streams) in QUICK else pytest.mark.slow)
    for name in COMMANDS
    for streams in STREAMS
]


@pytest.mark.parametrize(("name", "streams"), CASES)
def test_any_stream_may_be_missing(home: Path, name: str, streams: str) -> None:
    """A command ends by its own exit code, but for output that it could not write."""
    code, arguments = COMMANDS[name]
    redirected, lost = STREAMS[streams]
    done = in_shell(home, arguments, redirected)
    spoken = name != "mistake" and name != "flag"
    assert done.returncode == (Exit.CANNOT_WRITE if lost and spoken and code == 0 else code), done.stderr
    assert not re.search("Traceback|unexpected|Exception ignored", done.stderr)


def test_a_file_never_becomes_a_closed_stream(home: Path) -> None:
    """Were it so, whatever is printed would go into the answer log."""
    done = in_shell(home, ["run", "run.yaml", "--output_path", "apart", "--write_out"], ">&- 2>&-")
    assert done.returncode == 0
    assert all(json.loads(line)["sum"] for line in (home / "apart/answers.jsonl").read_text().splitlines())
    assert (home / "apart/results.json").read_bytes() == (home / "out/results.json").read_bytes()


# --- signals ----------------------------------------------------------------------------------------------------------


def stop_run(
    home: Path, url: str, asked: list[object], how: signal.Signals, *, ignored: bool = False
) -> tuple[int, str]:
    """A run that is stopped once the server holds the last of its four requests back."""
    given = command("run", "run.yaml", "--model", "local-completions", "--tasks", "sums", "--output_path", "stopped")
    child = subprocess.Popen(
        [*(["nohup"] if ignored else []), *given, "--model_args", f"model=m,base_url={url},num_concurrent=2"],
        cwd=home,
        env=environment(home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    log, deadline = home / "stopped/answers.jsonl", time.monotonic() + DEADLINE
    while child.poll() is None and time.monotonic() < deadline:
        if len(asked) >= 4 and log.read_text().count('"text"') == 3:
            break
        time.sleep(0.01)
    child.send_signal(how)
    if ignored:
        assert child.poll() is None
        child.send_signal(signal.SIGTERM)
    told = child.communicate(timeout=DEADLINE)[1]
    return child.returncode, told


@pytest.mark.parametrize(
    ("how", "ignored", "code", "word"),
    [
        (signal.SIGHUP, False, Exit.HUNG_UP, "hung up"),
        pytest.param(signal.SIGTERM, False, Exit.TERMINATED, "terminated", marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, True, Exit.TERMINATED, "terminated", marks=pytest.mark.slow),
    ],
)
def test_a_stopped_run_says_so_and_leaves_no_lock(
    tmp_path: Path, how: signal.Signals, ignored: bool, code: Exit, word: str
) -> None:
    """What was answered is kept. Under nohup a run goes on when the terminal is closed."""
    write_tasks(tmp_path / "tasks", 4)
    (tmp_path / "run.yaml").write_text("model: dummy\ntasks: [sums]\ninclude_path: tasks\n")
    with serve(script=lambda number, body: "hang" if number >= 3 else None) as server:
        returned, told = stop_run(tmp_path, server.url, server.bodies, how, ignored=ignored)
    assert (returned, "Traceback" in told) == (code, False)
    assert re.search(rf"{word} \([23] of 4 answers are in the answer log\)", told)  # the third may be on its way
    left = {path.name for path in (tmp_path / "stopped").iterdir()}
    assert left == {".progress.json", "answers.jsonl", "config.yaml", "run.json"}


# --- disks ------------------------------------------------------------------------------------------------------------


def under_limit(home: Path, most: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A command on a disk that holds no file of more than so many bytes."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    return subprocess.run(
        command(*arguments),
        cwd=home,
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
        preexec_fn=limit,
    )


@pytest.mark.parametrize(
    ("most", "file"),
    [
        (40, ".run.lock"),
        pytest.param(120, "config.yaml", marks=pytest.mark.slow),
        pytest.param(1200, "answers.jsonl", marks=pytest.mark.slow),
        pytest.param(3500, "samples_sums.jsonl", marks=pytest.mark.slow),
        (7500, "results.json"),
    ],
)
def test_a_full_disk_is_no_bad_input(home: Path, most: int, file: str) -> None:
    """The file that has no room is named, what was written stays, and with room the same command goes on."""
    folder = f"full{most}"
    done = under_limit(home, most, "run", "run.yaml", "--output_path", folder)
    assert done.returncode == Exit.CANNOT_WRITE, done.stderr
    assert f"{folder}/{file}: " in done.stderr
    assert re.search("File too large|No space left", done.stderr)
    found = home / folder / "results.json"
    assert not found.exists() or "not_run" in json.loads(found.read_text())["evalcore"]
    assert not list((home / folder).glob("*.lock"))
    assert evalcore(home, "run", "run.yaml", "--output_path", folder).returncode == 0
    assert (home / folder / "results.json").read_bytes() == (home / "out/results.json").read_bytes()


@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "out", "-o", "scored_full"),
        pytest.param(("score", "out", "-o", "scored_full", "--engine", "processes"), marks=pytest.mark.slow),
        pytest.param(("score", "out", "--partial_only", "--partials", "full_parts"), marks=pytest.mark.slow),
        pytest.param(("check", "out", "--min", "acc=0", "--junit", "full.xml"), marks=pytest.mark.slow),
        pytest.param(("merge", "parts", "-o", "merged_full"), marks=pytest.mark.slow),
    ],
)
def test_no_command_takes_a_full_disk_for_bad_input(home: Path, arguments: tuple[str, ...]) -> None:
    done = under_limit(home, 100, *arguments)
    assert done.returncode == Exit.CANNOT_WRITE, done.stderr
    assert "File too large" in done.stderr


# --- the table --------------------------------------------------------------------------------------------------------


def test_the_readme_lists_every_exit_code() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert dict(re.findall(r"(?m)^\| (\d+) \| (.*) \|$", text)) == {str(int(one)): MEANINGS[one] for one in Exit}


IN_A_DESTRUCTOR = """
import signal, time
from evalcore.shell.safety.signals import hear_signals
class Dying:
    def __del__(self):
        signal.raise_signal(signal.{})
hear_signals()
Dying()
time.sleep(10)
print("unheard")
"""


@pytest.mark.parametrize(("name", "word"), [("SIGINT", "interrupted"), ("SIGTERM", "terminated")])
def test_a_signal_is_heard_that_came_in_a_destructor(name: str, word: str) -> None:
    """Python drops what is raised there."""
    done = subprocess.run([sys.executable, "-c", IN_A_DESTRUCTOR.format(name)], capture_output=True, text=True)
    assert f"Signalled: {word}" in done.stderr
    assert done.stdout == ""
