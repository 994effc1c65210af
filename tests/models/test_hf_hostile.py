"""Odd and hostile input to hf: whatever it is, a reply or a sentence, and no answer is lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import (
    Failure,
    Generate,
    Likelihood,
    LogLikelihood,
    Request,
    Rolling,
    freeze_options,
)
from evalcore.shell.cli import main
from evalcore.shell.models.model import Heard, Notice, Question
from tests.models.test_hf_kinds import KINDS, SHOTS, ask, assert_alike, open_folder

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def folder(make_kind: Callable[..., Path]) -> Path:
    return make_kind(*KINDS["llama"][:2])


def generate(prompt: str, **given: object) -> Generate:
    return Generate(prompt, freeze_options({"until": [], "max_gen_toks": 4, **given}))


@pytest.mark.parametrize("cached", [True, False], ids=["tree", "plain"])
def test_empty_and_doubled_requests_have_replies(folder: Path, cached: bool) -> None:
    requests: list[Request] = [
        LogLikelihood("", "Hello"),
        LogLikelihood("Hello", ""),
        LogLikelihood(" \n ", "Hello"),
        Rolling(""),
        generate(""),
        generate("Hello", until=[""]),
        generate("Hello <|im_end|> you<|endoftext|>"),
        LogLikelihood("<|im_start|>user\nHi", " there"),
    ]
    model = open_folder(folder, prefix_cache=cached)
    first, nothing, *rest = ask(model, [*requests, *requests])[: len(requests)]
    assert isinstance(first, Likelihood)
    assert isinstance(nothing, Failure)
    assert "continuation" in nothing.reason
    assert rest[1] == 0.0
    assert rest[3]
    assert not any(isinstance(one, Failure) for one in rest)
    twice = ask(model, [*requests, *requests])
    assert_alike(twice[: len(requests)], twice[len(requests) :])


def test_a_stop_string_of_several_tokens_ends_a_text(folder: Path) -> None:
    model = open_folder(folder)
    (whole,) = ask(model, [generate("Once upon a time", max_gen_toks=24)])
    for begin in range(0, len(whole) - 9, 3):
        stop = whole[begin : begin + 9]
        (cut,) = ask(model, [generate("Once upon a time", max_gen_toks=24, until=[stop, "never"])])
        assert cut == whole.partition(stop)[0]


def test_what_does_not_fit_loses_its_beginning_and_is_counted(folder: Path) -> None:
    model = open_folder(folder, max_length=32)
    requests = [LogLikelihood(SHOTS, " four"), generate(SHOTS), LogLikelihood("A cat", " has four")]
    heard = list(model.ask([Question(one) for one in requests]))
    assert [one.text for one in heard if isinstance(one, Notice)] == [
        "2 of 3 requests lost their beginning: 32 tokens fit"
    ]
    assert not any(isinstance(one.reply, Failure) for one in heard if isinstance(one, Heard))
    (long,) = ask(model, [LogLikelihood("A cat", SHOTS)])
    assert isinstance(long, Failure)
    assert "at most 32 tokens" in long.reason
    (full,) = ask(model, [generate("A cat", max_gen_toks=32)])
    assert isinstance(full, Failure)
    assert "expected max_gen_toks below the 32 positions" in full.reason


def test_what_a_model_cannot_evaluate_is_said_in_a_line(make_kind: Callable[..., Path]) -> None:
    short = make_kind("GPT2Config", {"n_embd": 32, "n_layer": 1, "n_head": 4, "vocab_size": 49152, "n_positions": 64})
    with pytest.raises(
        EvalError, match=r"the model cannot go on: .*; are max_length \(256\) and the tokenizer"
    ) as told:
        ask(open_folder(short), [LogLikelihood(SHOTS, " four")])
    assert "\n" not in str(told.value)


def test_what_was_answered_before_memory_ran_out_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    model = open_folder(folder, batch_size=1)
    network = model.ask.args[0].network  # type: ignore[attr-defined]
    forward, calls = network.model.forward, iter(range(9))

    def run_out(*args: Any, **given: Any) -> Any:
        if next(calls) == 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nMore lines")
        return forward(*args, **given)

    monkeypatch.setattr(network.model, "forward", run_out)
    replies = model.ask([Question(LogLikelihood(f"{at} {SHOTS}"[:300], " four")) for at in range(8)])
    assert isinstance(next(replies), Heard)
    with pytest.raises(
        EvalError, match=r"the model cannot go on: CUDA out of memory.*; try a smaller batch_size"
    ) as told:
        list(replies)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.safetensors", b"no weights"),
        ("model.safetensors", b"\xff" * 64),
        ("model.safetensors", b""),
        ("config.json", b"{"),
        ("config.json", b'{"model_type": "no such model"}'),
        ("config.json", b'{"model_type": "llama", "hidden_size": "wide"}'),
        ("config.json", b"[]"),
        ("tokenizer.json", b"{}"),
    ],
)
def test_a_damaged_folder_is_refused_in_a_line(folder: Path, tmp_path: Path, file: str, content: bytes) -> None:
    shutil.copytree(folder, tmp_path / "model")
    (tmp_path / "model" / file).write_bytes(content)
    with pytest.raises(EvalError, match="transformers cannot load") as wrong:
        open_folder(tmp_path / "model")
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"device": "cuda"}, "CUDA"),
        ({"device": "nowhere"}, "nowhere"),
        ({"gguf_file": "missing.gguf"}, "missing.gguf"),
        ({"peft": "/nowhere/adapter"}, "adapter"),
        ({"tokenizer": "/nowhere/tokenizer"}, "tokenizer"),
        ({"attn_implementation": "magic"}, "magic"),
        ({"pretraind": "x"}, "did you mean 'pretrained'"),
        ({"batch_size": 0}, "batch_size"),
        ({"prefix_token_id": -7}, "transformers cannot load"),
    ],
    ids=str,
)
def test_arguments_that_cannot_be_met_are_refused_in_a_line(folder: Path, given: dict[str, object], told: str) -> None:
    with pytest.raises(EvalError, match=told) as wrong:
        open_folder(folder, **given)
    assert "\n" not in str(wrong.value)


def test_a_run_that_cannot_load_its_model_ends_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs.jsonl").write_text('{"q": "1 + 1 =", "a": "2"}\n')
    task: dict[str, Any] = {"task": "t", "dataset_path": "json", "output_type": "generate_until", "test_split": "test"}
    task |= {"dataset_kwargs": {"data_files": {"test": "docs.jsonl"}}, "doc_to_text": "{{q}}", "doc_to_target": "{{a}}"}
    config = {"model": "hf", "model_args": {"pretrained": str(tmp_path)}, "tasks": [task]}
    (tmp_path / "run.json").write_text(json.dumps({**config, "output_path": str(tmp_path / "out")}))
    assert main(["run", str(tmp_path / "run.json")]) != 0
    said = capsys.readouterr().err
    assert "transformers cannot load" in said
    assert "Traceback" not in said
