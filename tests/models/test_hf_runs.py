"""Whole runs of a real model: killed and continued, with and without the tree."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from shutil import copytree
from time import monotonic, sleep

import pytest

import evalcore

pytestmark = pytest.mark.models

ROOT = Path(__file__).parents[2]
TASKS = ROOT / "examples" / "quickstart" / "tasks"
LENGTH = "max_gen_toks=12"


def list_arguments(model: Path, folder: Path, *more: str) -> list[str]:
    given = f"pretrained={model},dtype=float32,device=cpu,batch_size=2"
    command = [sys.executable, "-m", "evalcore", "run", "--model", "hf", "--model_args", given, "--tasks", "quickstart"]
    tasks = ["--include_path", str(TASKS), "--limit", "4", "--gen_kwargs", LENGTH]
    return [*command, *tasks, "--output_path", str(folder), "--quiet", *more]


def read_lines(folder: Path) -> list[dict[str, object]]:
    path = folder / "answers.jsonl"
    lines = path.read_bytes().splitlines() if path.is_file() else []
    read = []
    for line in lines:
        try:
            read.append(json.loads(line))
        except ValueError:  # torn
            continue
    return [line for line in read if "key" in line]


@pytest.fixture(scope="module")
def whole(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    subprocess.run(list_arguments(small_model, folder), check=True, env=make_environment())
    return folder


def make_environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"}


def list_results(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.name.startswith(("results", "samples"))
    }


@pytest.mark.parametrize("after", [3, 56], ids=["among likelihoods", "among texts"])
def test_a_killed_run_goes_on_to_the_same_bytes(small_model: Path, whole: Path, tmp_path: Path, after: int) -> None:
    folder = tmp_path / "run"
    started = subprocess.Popen(list_arguments(small_model, folder), env=make_environment())
    give_up = monotonic() + 300
    while len(read_lines(folder)) < after and started.poll() is None and monotonic() < give_up:
        sleep(0.02)
    started.send_signal(signal.SIGKILL)
    started.wait()
    kept = {line["key"] for line in read_lines(folder)}
    assert kept
    subprocess.run(list_arguments(small_model, folder), check=True, env=make_environment())
    asked = Counter(line["key"] for line in read_lines(folder))
    assert kept <= set(asked)
    assert max(asked.values()) == 1
    assert list_results(folder) == list_results(whole)


def test_other_batches_than_before_are_told_of(small_model: Path, whole: Path, tmp_path: Path) -> None:
    folder = copytree(whole, tmp_path / "run")
    assert json.loads((folder / "run.json").read_bytes())["batches"]["batch_size"] == 2
    done = subprocess.run(
        [one.replace("batch_size=2", "batch_size=4") for one in list_arguments(small_model, folder)],
        check=True,
        env=make_environment(),
        capture_output=True,
        text=True,
    )
    assert "batch_size 2 before, 4 now" in done.stderr
    assert list_results(folder).keys() == list_results(whole).keys()


def test_without_the_tree_the_numbers_are_the_same(small_model: Path, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    done = evalcore.run(
        model="hf",
        model_args={"pretrained": str(small_model), "dtype": "float32", "device": "cpu", "prefix_cache": False},
        tasks=["quickstart"],
        include_path=str(TASKS),
        limit=4,
        gen_kwargs=LENGTH,
        output_path=str(folder),
    )
    known = json.loads((whole / "results.json").read_bytes())["results"]
    drawn = "quickstart_simple_questions"  # its replies are drawn, which both do in another way
    for task, row in known.items():
        if task not in (drawn, "quickstart", "quickstart_simple"):
            for key, value in row.items():
                if isinstance(value, float):
                    assert done.results["results"][task][key] == pytest.approx(value, rel=1e-4), (task, key)  # type: ignore[index]
    usage = json.loads((whole / "run.json").read_bytes())["usage"]
    assert usage["prompt_tokens"] > usage["cached_prompt_tokens"] > 0
