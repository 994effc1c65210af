"""One model in several processes: the answers and the log of one, killed and continued."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pytest

from evalcore.core.records.errors import EvalError
from evalcore.shell.models.hf.hf_loader import open_hf
from evalcore.shell.models.model import Heard, Model, Question
from tests.models.test_hf_kinds import KINDS, REQUESTS, ask, assert_alike

pytestmark = pytest.mark.models

ROOT = Path(__file__).parents[2]
TASKS = ROOT / "examples" / "quickstart" / "tasks"


@pytest.fixture(scope="module")
def folder(make_kind: Callable[..., Path]) -> Path:
    return make_kind(*KINDS["llama"][:2])


def open_folder(folder: Path, count: int) -> Model:
    given = {"pretrained": str(folder), "dtype": "float32", "device": "cpu", "max_length": 256}
    return open_hf({**given, "num_processes": count, "batch_size": 2})


def test_two_processes_answer_as_one(folder: Path) -> None:
    one, two = open_folder(folder, 1), open_folder(folder, 2)
    assert one.identity == two.identity
    assert_alike(ask(two, REQUESTS), ask(one, REQUESTS))
    known = [Question(request, known=at > 1) for at, request in enumerate(REQUESTS)]
    told = [heard for heard in two.ask(known) if isinstance(heard, Heard)]
    assert sorted(heard.at for heard in told) == [0, 1], "known questions are not answered again"


def test_what_a_process_cannot_load_or_do_is_said_here(folder: Path, tmp_path: Path) -> None:
    for path in folder.iterdir():
        if path.suffix != ".safetensors":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(EvalError, match="transformers cannot load"):
        ask(open_folder(tmp_path, 2), REQUESTS)
    with pytest.raises(EvalError, match="got both"):
        open_hf({"pretrained": str(folder), "num_processes": 2, "parallelize": True})


def test_a_process_that_is_lost_ends_the_run_in_a_line(folder: Path) -> None:
    model = open_folder(folder, 2)
    processes = model.ask.__self__  # type: ignore[attr-defined]
    replies = model.ask([Question(request) for request in REQUESTS])
    next(replies)
    for worker in list(processes.workers):
        os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(EvalError, match=r"process \d of 2 .* was lost \(killed"):
        list(replies)
    assert_alike(ask(model, REQUESTS), ask(open_folder(folder, 1), REQUESTS))


def list_arguments(model: Path, out: Path, count: int) -> list[str]:
    given = (
        f"pretrained={model},dtype=float32,device=cpu,batch_size=1,max_length=256,max_gen_toks=8,num_processes={count}"
    )
    command = [sys.executable, "-m", "evalcore", "run", "--model", "hf", "--model_args", given]
    tasks = ["--tasks", "quickstart_nature,quickstart_prose,quickstart_one_step", "--include_path", str(TASKS)]
    return [*command, *tasks, "--limit", "6", "--gen_kwargs", "max_gen_toks=8", "--output_path", str(out), "--quiet"]


def read_keys(out: Path) -> list[str]:
    path = out / "answers.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
    return [read["key"] for line in lines if line.endswith(b"\n") and "key" in (read := json.loads(line))]


def list_results(out: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in sorted(out.iterdir()) if one.name.startswith(("results", "samples"))}


def test_a_killed_run_of_two_processes_goes_on_to_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    path = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"}
    whole, single, killed = tmp_path / "whole", tmp_path / "single", tmp_path / "killed"
    for out, count in ((whole, 2), (single, 1)):
        subprocess.run(list_arguments(folder, out, count), check=True, env=environment)
    started = subprocess.Popen(list_arguments(folder, killed, 2), env=environment)
    give_up = monotonic() + 300
    while len(read_keys(killed)) < 3 and started.poll() is None and monotonic() < give_up:
        sleep(0.005)
    started.send_signal(signal.SIGKILL)
    started.wait()
    kept = set(read_keys(killed))
    assert kept
    subprocess.run(list_arguments(folder, killed, 2), check=True, env=environment)
    asked = Counter(read_keys(killed))
    assert kept <= set(asked)
    assert max(asked.values()) == 1
    assert set(asked) == set(read_keys(whole)) == set(read_keys(single))
    assert list_results(killed) == list_results(whole)
    one, two = (json.loads((out / "results.json").read_bytes())["results"] for out in (single, whole))
    for task, row in one.items():
        numbers = {key: value for key, value in row.items() if isinstance(value, float)}
        assert {key: two[task][key] for key in numbers} == pytest.approx(numbers, rel=1e-4)
