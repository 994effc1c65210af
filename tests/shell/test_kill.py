"""A run killed at any moment ends, when resumed, in the same results; the server sees only what was in flight twice."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import yaml
from fault_server import digest, serve
from small_tasks import command, environment, evalcore, write_tasks

from evalcore.shell.models.openai.probe import PROBES

IN_FLIGHT = 4


def write_run(home: Path, url: str) -> None:
    config = {
        "model": "local-completions",
        "model_args": {"model": "toy", "base_url": url, "num_concurrent": IN_FLIGHT},
        "tasks": ["sums", "places", "guesses"],
        "include_path": "tasks",
        "output_path": "out",
    }
    (home / "run.yaml").write_text(yaml.safe_dump(config))


def asked_twice(bodies: list[dict[str, object]]) -> int:
    """Requests that the server received again, but for the probes with which every process begins."""
    counts = Counter(digest(body) for body in bodies if not str(body["prompt"]).startswith(PROBES))
    return sum(count - 1 for count in counts.values())


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_kill_9_at_random_moments(tmp_path: Path, kills: int) -> None:
    """At every other moment the server no longer answers, so that the run cannot end before it is killed."""
    write_tasks(tmp_path / "tasks", 12)
    moments = random.Random(20260).uniform
    with serve(latency=0.03) as server:
        write_run(tmp_path, server.url)
        assert evalcore(tmp_path, "run", "run.yaml").returncode == 0
        wanted = (tmp_path / "out/results.json").read_bytes()
        asks = len(server.bodies)
        for kill in range(kills):
            (tmp_path / "out").rename(tmp_path / f"old{kill}")
            server.bodies.clear()
            held, stop_after = kill % 2 == 0, moments(0, asks - 1)  # so many requests, and then some milliseconds
            if held:
                server.script = lambda number, body, last=stop_after: "hang" if number >= last else None
            child = subprocess.Popen(
                command("run", "run.yaml", "--quiet"),
                cwd=tmp_path,
                env=environment(tmp_path),
                stdout=subprocess.DEVNULL,
            )
            while child.poll() is None and len(server.bodies) < stop_after:
                time.sleep(0.001)
            time.sleep(moments(0, 0.05))
            assert not held or child.poll() is None
            child.send_signal(signal.SIGKILL)
            child.wait()
            server.script = None
            done = evalcore(tmp_path, "run", "run.yaml", "--quiet")
            assert done.returncode == 0, done.stderr
            assert (tmp_path / "out/results.json").read_bytes() == wanted
            assert asked_twice(server.bodies) <= IN_FLIGHT


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_server_that_fails_three_in_ten_gives_the_same_results(tmp_path: Path, seed: int) -> None:
    write_tasks(tmp_path / "tasks", 12)
    found = []
    for faults in (0.0, 0.3):
        with serve(faults=faults, seed=seed) as server:
            write_run(tmp_path, server.url)
            done = evalcore(
                tmp_path,
                "run",
                "run.yaml",
                "--model_args",
                f"model=toy,base_url={server.url},num_concurrent=8",
                "--quiet",
            )
            assert done.returncode == 0, done.stderr
            results = json.loads((tmp_path / "out/results.json").read_text())
            results["config"]["model_args"].pop("base_url")  # the port of each server is another
            found.append(_without_metadata(results))
        (tmp_path / "out").rename(tmp_path / f"out{faults}")
    assert found[0] == found[1]


GROUPS = """
import os, signal, sys
import evalcore
from evalcore.extensions import Backend, Heard, Model
from pyrsistent import pmap

last = int(sys.argv[1])

def ask(questions):
    yielded = 0
    for start in range(0, len(questions), 64):
        batch = questions[start : start + 64]
        with open("sent", "a") as sent:
            sent.writelines(f"{one.digest} {one.repeat}\\n" for one in batch)
        for at, one in enumerate(batch, start):
            if yielded == last:
                os.kill(os.getpid(), signal.SIGKILL)
            yielded += 1
            yield Heard(at, f" {one.digest[:2]}", more=at + 1 < start + len(batch))

told = Backend(lambda arguments: Model("told", "told", ask), "", ())
evalcore.run(tasks=["guesses"], include_path=["tasks"], model="told", models=pmap({"told": told}), output_path="out")
"""


@pytest.mark.parametrize("last", [64, 100, *(pytest.param(last, marks=pytest.mark.slow) for last in (0, 63, 300))])
def test_kill_9_among_replies_that_share_a_sync(tmp_path: Path, last: int) -> None:
    """No reply that was taken with its group is asked again, and none is lost."""
    write_tasks(tmp_path / "tasks", 120)

    def run(stop: int) -> int:
        given = [sys.executable, "-c", GROUPS, str(stop)]
        return subprocess.run(given, cwd=tmp_path, env=environment(tmp_path), check=False).returncode

    assert run(last) == -signal.SIGKILL
    assert run(-1) == 0
    sent = Counter((tmp_path / "sent").read_text().splitlines())
    assert len(sent) == 360
    assert sum(count - 1 for count in sent.values()) <= 64
    killed = (tmp_path / "out/results.json").read_bytes()
    (tmp_path / "out").rename(tmp_path / "old")
    assert run(-1) == 0
    assert (tmp_path / "out/results.json").read_bytes() == killed


def _without_metadata(results: dict[str, object]) -> dict[str, object]:
    """Task metadata repeats the model's arguments, as in lm-eval."""
    configs = results["configs"]
    assert isinstance(configs, dict)
    for config in configs.values():
        config.pop("metadata", None)
    return results
