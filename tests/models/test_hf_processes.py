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
from evalcore.core.records.request import Generate, LogLikelihood
from evalcore.shell.models.hf.hf_loader import open_hf
from evalcore.shell.models.hf.hf_processes import share_questions
from evalcore.shell.models.model import Heard, Model, Notice, Question
from tests.models import test_hf_growth
from tests.models.test_hf_kinds import KINDS, REQUESTS, SHOTS, ask, assert_alike

pytestmark = pytest.mark.models

ROOT = Path(__file__).parents[2]
TASKS = ROOT / "examples" / "quickstart" / "tasks"
MANY = [*REQUESTS, *(LogLikelihood(f"{n} {SHOTS}", " four") for n in range(6)), *test_hf_growth.REQUESTS]
"""More than fit one piece that is shared out."""


@pytest.fixture(scope="module")
def folder(make_kind: Callable[..., Path]) -> Path:
    return make_kind(*KINDS["llama"][:2])


def open_folder(folder: Path, count: int) -> Model:
    given = {"pretrained": str(folder), "dtype": "float32", "device": "cpu", "max_length": 256}
    return open_hf({**given, "num_processes": count, "batch_size": 2})


def test_two_processes_answer_as_one(folder: Path) -> None:
    one, two = open_folder(folder, 1), open_folder(folder, 2)
    assert one.identity == two.identity
    encoder = two.ask.__self__.encoder  # type: ignore[attr-defined]
    shares = share_questions(encoder, list(map(Question, MANY)), 2)
    assert [{type(MANY[at]) for at in part} >= {LogLikelihood, Generate} for part in shares] == [True, True]
    assert_alike(ask(two, MANY), ask(one, MANY))
    known = [Question(request, known=at > 1) for at, request in enumerate(MANY)]
    told = [heard for heard in two.ask(known) if isinstance(heard, Heard)]
    assert sorted(heard.at for heard in told) == [0, 1], "known questions are not answered again"


def test_what_processes_find_out_about_their_model_is_said_once(make_kind: Callable[..., Path]) -> None:
    model = open_folder(make_kind(*KINDS["alibi"][:2]), 2)
    assert not model.warnings
    for times in (1, 0):
        told = [one.text for one in model.ask(list(map(Question, REQUESTS))) if isinstance(one, Notice)]
        assert [one.partition(":")[0] for one in told] == ["prefix_cache has no effect"] * times


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
    replies = model.ask([Question(request) for request in MANY])
    next(replies)
    for worker in list(processes.workers):
        os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(EvalError, match=r"process \d of 2 .* was lost \(killed"):
        list(replies)
    assert_alike(ask(model, MANY), ask(open_folder(folder, 1), MANY))


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
