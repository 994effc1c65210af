"""A small folder of tasks of every output type, with documents of our own, for tests of whole runs."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import gettempdir
from unittest.mock import patch

import yaml

from evalcore.shell.cli import main

CITIES = ["Lisbon", "Cairo", "Lima", "Oslo", "Quito", "Hanoi", "Dakar", "Minsk", "Tunis", "Sofia"]

TASKS: dict[str, dict[str, object]] = {
    "sums": {
        "task": "sums",
        "output_type": "generate_until",
        "doc_to_text": "{{a}} + {{b}} =",
        "doc_to_target": "{{a + b}}",
        "num_fewshot": 2,
        "fewshot_config": {"sampler": "first_n", "samples": [{"a": 1, "b": 1}, {"a": 2, "b": 5}]},
        "generation_kwargs": {"until": ["\n"], "max_gen_toks": 8, "temperature": 0.0},
        "filter_list": [
            {
                "name": "strict",
                "filter": [{"function": "regex", "regex_pattern": "(\\d+)"}, {"function": "take_first"}],
            },
            {"name": "raw", "filter": [{"function": "take_first"}]},
        ],
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
        "metadata": {"version": 1.0},
    },
    "places": {
        "task": "places",
        "output_type": "multiple_choice",
        "doc_to_text": "{{city}} is a",
        "doc_to_choice": ["city", "river", "kind of cheese"],
        "doc_to_target": 0,
        "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
        "metadata": {"version": 2.0},
    },
    "lines": {
        "task": "lines",
        "output_type": "loglikelihood_rolling",
        "doc_to_text": "",
        "doc_to_target": "{{city}} lies on a hill above the sea",
        "metric_list": [{"metric": "word_perplexity"}, {"metric": "bits_per_byte"}],
    },
    "guesses": {
        "task": "guesses",
        "output_type": "generate_until",
        "doc_to_text": "Name a colour seen in {{city}}:",
        "doc_to_target": "green",
        "repeats": 3,
        "generation_kwargs": {"until": ["\n"], "max_gen_toks": 6, "temperature": 0.7, "do_sample": True},
        "repeat_cfg": {"reducer": ["mean", "pass@2"]},
        "metric_list": [{"metric": "exact_match"}],
    },
}

GROUP = {
    "group": "small",
    "task": [
        "places",
        {"group": "texts", "task": ["sums", "guesses"], "aggregate_metric_list": [{"metric": "exact_match"}]},
        "lines",
    ],
    "metadata": {"version": 0.1},
}


def write_tasks(folder: Path, count: int = 10) -> Path:
    """The folder with its tasks; ``count`` documents each."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"a": n, "b": 3 * n % 7, "city": CITIES[n % 10] + (f" {n}" if n > 9 else "")} for n in range(count)]
    (folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": "docs.jsonl"}}, "test_split": "test"}
    for name, task in TASKS.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({**task, **source}, sort_keys=False))
    (folder / "small.yaml").write_text(yaml.safe_dump(GROUP, sort_keys=False))
    return folder


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "evalcore", *map(str, arguments)]


CACHE = Path(gettempdir()) / "evalcore-tests"


def environment(home: Path) -> dict[str, str]:
    """A cache of the tests' own, and no colour from outside."""
    return {**os.environ, "XDG_CACHE_HOME": str(CACHE), "NO_COLOR": "1"}


def share_index(cache: Path) -> Path:
    """A new cache with nothing in it but the index of lm-eval's task files, which takes a second to make."""
    cache.mkdir()
    (CACHE / "evalcore").mkdir(parents=True, exist_ok=True)
    (cache / "evalcore").symlink_to(CACHE / "evalcore")
    return cache


def evalcore(home: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command line to its end."""
    return subprocess.run(
        command(*arguments), cwd=home, env=environment(home), capture_output=True, text=True, timeout=300, check=False
    )


def evalcore_here(home: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The same command line in this process, for tests that need no other: half a second less."""
    given = list(map(str, arguments))
    out, told = io.StringIO(), io.StringIO()
    with chdir(home), patch.dict(os.environ, environment(home)), redirect_stdout(out), redirect_stderr(told):
        code = main(given)
    return subprocess.CompletedProcess(given, code, out.getvalue(), told.getvalue())


def start_live_run(home: Path, url: str) -> subprocess.Popen[bytes]:
    """A run of 24 questions to a server, one after another, in the folder ``runs/live``."""
    config = {
        "model": "local-completions",
        "model_args": {"model": "toy", "base_url": url, "num_concurrent": 1},
        "tasks": ["sums"],
        "include_path": "tasks",
        "output_path": "runs/live",
    }
    (home / "live.yaml").write_text(yaml.safe_dump(config))
    given = command("run", "live.yaml", "--quiet")
    return subprocess.Popen(given, cwd=home, env=environment(home), stdout=subprocess.DEVNULL)
