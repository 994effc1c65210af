"""The arguments of hf and vllm, without either library: lm-eval's by name, what needs trust, what is refused and why."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest

import evalcore
from evalcore.core.records.errors import EvalError
from evalcore.shell.models import MODELS, add_arguments, find_backend
from evalcore.shell.models.checkpoint import name_weights
from evalcore.shell.models.hf.hf_settings import read_settings
from evalcore.shell.models.model import Backend, Model

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TASK = {
    "task": "t",
    "output_type": "generate_until",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": "docs.jsonl"}},
    "test_split": "test",
    "doc_to_text": "{{q}}",
    "doc_to_target": "{{a}}",
}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, object]]:
    """The arguments with which a model was opened, in place of opening one."""
    return []


def run_it(tmp_path: Path, opened: list[Mapping[str, object]], name: str, **given: object) -> evalcore.RunResult:
    known = find_backend(name)
    dummy = find_backend("dummy")

    def open_none(arguments: Mapping[str, object]) -> Model:
        opened.append(arguments)
        return dummy.open({})

    standing = Backend(open_none, known.summary, known.arguments, list_code=known.list_code)
    (tmp_path / "docs.jsonl").write_text('{"q": "1 + 1 =", "a": "2"}\n')
    out = str(tmp_path / "out")
    data = {"t": str(tmp_path / "docs.jsonl")}
    models = MODELS.set(name, standing)
    return evalcore.run(model=name, tasks=[TASK], data=data, output_path=out, overwrite=True, models=models, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["hf", "hf-auto", "huggingface", "vllm"])
def test_code_of_a_model_runs_only_if_it_is_trusted_by_name(
    tmp_path: Path, opened: list[Mapping[str, object]], name: str
) -> None:
    args = {"pretrained": "org/m", "revision": COMMIT, "trust_remote_code": True}
    with pytest.raises(
        EvalError, match=r"would run code of org/m, which is not trusted\. To run it: --trust model:org/m"
    ):
        run_it(tmp_path, opened, name, model_args=args)
    with pytest.raises(EvalError, match="would run code of org/m"):
        run_it(tmp_path, opened, name, model_args=args, trust=["model:org/other", "dataset:org/m", str(tmp_path)])
    with pytest.raises(EvalError, match="would run code of org/t,"):
        run_it(tmp_path, opened, name, model_args={**args, "tokenizer": "org/t"}, trust=["model:org/m"])
    assert opened == []
    run_it(tmp_path, opened, name, model_args=args, trust=["model:org/m"])
    run_it(tmp_path, opened, name, model_args={**args, "trust_remote_code": "False"})
    assert [one["trust_remote_code"] for one in opened] == [True, "False"]


def test_a_folder_is_trusted_as_a_folder(tmp_path: Path, opened: list[Mapping[str, object]]) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    args = {"pretrained": str(folder), "revision": COMMIT, "trust_remote_code": "true"}
    with pytest.raises(EvalError, match="which is not trusted"):
        run_it(tmp_path, opened, "hf", model_args=args)
    run_it(tmp_path, opened, "hf", model_args=args, trust=[str(folder)])
    assert len(opened) == 1


@pytest.mark.parametrize("name", ["hf", "vllm"])
@pytest.mark.parametrize("revision", [None, "main", "v1.0", COMMIT[:12]])
def test_trusted_code_needs_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, revision: str | None
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # refused before anything is loaded
    monkeypatch.setitem(sys.modules, "vllm", None)
    args = {"pretrained": "org/m", "trust_remote_code": True, **({"revision": revision} if revision else {})}
    with pytest.raises(EvalError, match="name the commit that you read as revision"):
        evalcore.run(
            model=name, model_args=args, tasks=[TASK], trust=["model:org/m"], output_path=str(tmp_path / "out")
        )


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"tp_plan": "auto"}, "tp_plan: auto is not supported: it needs torchrun"),
        ({"autogptq": True}, "GPTQ weights by itself"),
        ({"gptqmodel": "true"}, "GPTQ weights by itself"),
        ({"load_in_4bit": True}, "weights that are quantized"),
        ({"bnb_4bit_quant_type": "nf4"}, "bnb_4bit_quant_type: nf4 is not supported: use weights that are quantized"),
        ({"quantization_config": {"bits": 4}}, "weights that are quantized"),
        ({"cache_dir": "/data"}, "set HF_HOME"),
        ({"pretrained": "/no/such/model"}, "expected a folder as pretrained, got /no/such/model, where nothing is"),
        ({"peft": "../no_such_adapter"}, "expected a folder as peft"),
        ({"batch_size": "autox"}, "expected batch_size as a number or auto, got 'autox'"),
        ({"batch_size": "-1"}, "batch_size"),
        ({"device_map": "{x"}, "expected device_map as an object"),
        ({"chat_template": "default"}, "got 'default', which would be every prompt: leave it out"),
        ({"chat_date": "today"}, "`chat_date`"),
        ({"softmax_dtype": "bfloat16"}, "computed in float32"),
        ({"max_cpu_memory": "10GiB"}, "need parallelize"),
        ({"chat_template_args": "no"}, "as an object"),
        ({"chat_template_args": {1: 2, "a": 3}}, "as an object"),
        ({"device_map": {"a": object()}}, "expected device_map as an object"),
        ({"peft": "a", "delta": "b"}, "got both"),
        ({"logit_cache": True}, "did you mean"),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_a_reason(given: dict[str, object], why: str) -> None:
    with pytest.raises(EvalError, match=f"{why}.* - at model_args of hf"):
        read_settings({"pretrained": "m", **given})


def test_what_changes_nothing_is_taken() -> None:
    fine = {"logits_cache": False, "truncation": True, "softmax_dtype": "float32", "autogptq": False, "tp_plan": None}
    fine |= {"load_in_8bit": 0, "quantization_config": None, "low_cpu_mem_usage": True, "token": False}
    assert read_settings({"pretrained": "m", **fine}) == read_settings({"pretrained": "m"})


def test_a_token_is_refused_and_not_repeated() -> None:
    with pytest.raises(EvalError, match="set HF_TOKEN in the environment") as told:
        read_settings({"pretrained": "m", "token": "very-secret"})
    assert "very-secret" not in str(told.value)


def test_thoughts_that_nothing_ends_are_warned_of() -> None:
    for given in ({"enable_thinking": True}, {"chat_template_args": {"enable_thinking": True}}):
        assert "thoughts are scored" in read_settings({"pretrained": "m", **given}).warnings[0]
        assert not read_settings({"pretrained": "m", **given, "think_end_token": "</think>"}).warnings
    assert not read_settings({"pretrained": "m", "enable_thinking": False}).warnings


def test_what_yaml_takes_for_something_else_is_read() -> None:
    read = read_settings({"pretrained": "m", "revision": 1, "device_map": {"": 0}, "chat_date": date(2026, 1, 31)})
    assert (read.revision, read.spread, read.chat_date) == ("1", {"": 0}, date(2026, 1, 31))
    assert hash(read)
    assert read_settings({"pretrained": "m", "parallelize": True}).spread == "auto"
    assert read_settings({"pretrained": "m", "think_end_token": "²"}).think_end_token == "²"  # a digit, and no number


def test_arguments_under_lm_evals_names_have_their_meaning() -> None:
    read = read_settings({"pretrained": "m", "batch_size": "auto:4", "max_batch_size": 4, "enable_thinking": "false"})
    assert (read.batch, read.template_variables) == (4, {"enable_thinking": False})
    for given in ({"b": [1], "a": True}, '{"b": [1], "a": true}'):
        read = read_settings({"pretrained": "m", "chat_template_args": given, "enable_thinking": True})
        assert read.template_variables == {"b": [1], "a": True, "enable_thinking": True}
        assert hash(read)


def test_batch_size_and_device_beside_model_args_reach_the_model(
    tmp_path: Path, opened: list[Mapping[str, object]]
) -> None:
    done = run_it(tmp_path, opened, "hf", model_args={"pretrained": "m"}, batch_size=8, device="cpu")
    assert {"batch_size": 8, "device": "cpu"}.items() <= opened[0].items()
    assert not [one for one in done.warnings if "has no effect" in one]
    assert done.results["config"]["batch_size"] == 8  # type: ignore[index]
    assert done.results["config"]["device"] == "cpu"  # type: ignore[index]
    with pytest.raises(EvalError, match="expected one batch_size, got 8 and 4"):
        run_it(tmp_path, opened, "hf", model_args={"pretrained": "m", "batch_size": 4}, batch_size=8)
    _, warnings = add_arguments(find_backend("vllm"), {"pretrained": "m"}, {"batch_size": "auto", "device": "cuda"})
    assert [one.partition(" has")[0] for one in warnings] == ["device"]


def test_a_folder_of_weights_is_named_by_its_content(tmp_path: Path) -> None:
    for name, weights in (("a/m", b"1"), ("b/m", b"1"), ("c/m", b"2")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "model.safetensors").write_bytes(weights)
    one, same, other = (name_weights(str(tmp_path / name), "main") for name in ("a/m", "b/m", "c/m"))
    assert one == same != other
