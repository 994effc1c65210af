"""The arguments of vllm: lm-eval's, read from lm-eval itself, and vLLM's own; beside the stand-in of its API."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import LogLikelihood
from evalcore.shell.models import find_backend, open_backend
from evalcore.shell.models.model import Question
from evalcore.shell.models.vllm.engine_settings import EngineLayout, EngineSettings
from evalcore.shell.models.vllm.vllm_settings import ARGUMENTS, ELSEWISE, VllmSettings, read_settings
from tests.shell.test_vllm import LLM, Tokenizer, stand_in

__all__ = ["stand_in"]

COMMIT = "0" * 40
OPEN = find_backend("vllm").open


def read_usual() -> dict[str, object]:
    """The arguments of lm-eval's VLLM with their defaults, from its source: importing it needs vLLM."""
    found = find_spec("lm_eval")
    if found is None or found.origin is None:
        pytest.skip("lm-eval is not installed")
    tree = ast.parse((Path(found.origin).parent / "models" / "vllm_causallms.py").read_text("utf-8"))
    [made] = [one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == "VLLM"]
    [begin] = [one for one in made.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
    names = [one.arg for one in begin.args.args][-len(begin.args.defaults) :]
    return {"pretrained": "m"} | dict(zip(names, map(ast.literal_eval, begin.args.defaults), strict=True))


def test_every_argument_of_lm_eval_is_known_by_name() -> None:
    usual = read_usual()
    assert len(usual) > 20
    assert usual.keys() <= {*VllmSettings.__struct_fields__, *ELSEWISE}
    read_settings(usual)  # lm-eval's own defaults are all taken
    assert sorted(name for name, _ in ARGUMENTS) == sorted(VllmSettings.__struct_fields__)
    assert not ELSEWISE.keys() & set(VllmSettings.__struct_fields__)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            {"data_parallel_size": 4},
            "start `vllm serve MODEL --data-parallel-size N`, and use model: local-completions",
        ),
        ({"truncation_side": "right"}, "loses its beginning"),
        ({"device": "cuda:1"}, "CUDA_VISIBLE_DEVICES"),
        ({"hf_overrides": {"a": 1}}, "give it to `vllm serve MODEL`"),
        ({"worker_cls": "a.B"}, "code that nothing pins"),
        ({"chat_template_args": "no"}, "as an object"),
        ({"chat_template": "default"}, "which would be every prompt"),
        ({"max_num_seqs": 4, "max_batch_size": 8}, "got both"),
        ({"max_num_seqs": "many"}, "Expected `int"),
        ({"generation_config": "/tmp/folder"}, "Invalid enum value"),
        ({"trust_remote_code": True, "revision": COMMIT, "tokenizer": "org/t"}, "as tokenizer_revision"),
        ({"lora_local_path": "/no/such/folder"}, "expected a folder with an adapter"),
        ({"enforce_eagre": True}, "did you mean 'enforce_eager'"),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_a_reason(given: dict[str, object], why: str) -> None:
    with pytest.raises(EvalError, match=f"{re.escape(why)}.* - at model_args of vllm"):
        OPEN({"pretrained": "m", **given})


def test_a_refusal_ends_with_its_own_advice() -> None:
    with pytest.raises(EvalError, match=r"at model_args of vllm$"):
        open_backend(find_backend("vllm"), {"pretrained": "m", "data_parallel_size": 4})


def test_what_vllm_takes_is_handed_over() -> None:
    OPEN({"pretrained": "m", "enforce_eager": "true", "cpu_offload_gb": "4", "max_batch_size": 8, "swap_space": 4})
    given = LLM.made.given
    assert (given["enforce_eager"], given["cpu_offload_gb"], given["max_num_seqs"]) == (True, 4.0, 8)
    assert given.keys() == {
        *("model", "enforce_eager", "cpu_offload_gb", "max_num_seqs", "dtype", "seed", "trust_remote_code"),
        *("tensor_parallel_size", "gpu_memory_utilization", "enable_prefix_caching"),
    }
    OPEN({"pretrained": "m", "revision": "r", "tokenizer": "t", "tokenizer_revision": "s"})
    assert (LLM.made.given["revision"], LLM.made.given["tokenizer_revision"]) == ("r", "s")
    OPEN({"pretrained": "m", "revision": 1, "tokenizer": "t", "tokenizer_revision": 2.0})
    assert (LLM.made.given["revision"], LLM.made.given["tokenizer_revision"]) == ("1", "2.0")


def test_thoughts_that_nothing_ends_are_warned_of() -> None:
    assert "thoughts are scored" in OPEN({"pretrained": "m", "enable_thinking": True}).warnings[0]
    assert not OPEN({"pretrained": "m", "enable_thinking": True, "think_end_token": "</think>"}).warnings
    assert not OPEN({"pretrained": "m"}).warnings


def test_a_tokenizer_that_gives_no_special_tokens_is_told_of_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Tokenizer, "special_tokens_map")
    with pytest.raises(EvalError, match=r"vLLM cannot load m: .*special_tokens_map.* - at model_args of vllm"):
        OPEN({"pretrained": "m"})


def test_what_changes_answers_names_the_model() -> None:
    plain = OPEN({"pretrained": "m"}).identity
    for given in ({"max_num_seqs": 4}, {"max_batch_size": 4}, {"enforce_eager": True}, {"pipeline_parallel_size": 2}):
        assert OPEN({"pretrained": "m", **given}).identity == plain
    others = [{"kv_cache_dtype": "fp8"}, {"load_format": "dummy"}, {"quantization": "fp8"}, {"tokenizer_mode": "slow"}]
    named = [OPEN({"pretrained": "m", **given}).identity for given in others]
    assert len({plain, *named}) == 5
    assert set(EngineLayout.__struct_fields__) < set(EngineSettings.__struct_fields__)


def test_an_adapter_goes_with_every_request_and_is_named_by_its_content(tmp_path: Path) -> None:
    weights = tmp_path / "adapter_model.safetensors"
    weights.write_bytes(b"1")
    args = {"pretrained": "m", "lora_local_path": str(tmp_path), "max_lora_rank": 64}
    model = OPEN(args)
    list(model.ask([Question(LogLikelihood("a", "b"))]))
    assert LLM.made.lora == ("adapter", 1, str(tmp_path))
    assert (LLM.made.given["enable_lora"], LLM.made.given["max_lora_rank"]) == (True, 64)
    assert str(tmp_path) not in model.identity
    weights.write_bytes(b"2")
    assert OPEN(args).identity != model.identity


def test_a_chat_template_gets_its_arguments() -> None:
    given = {"chat_template": "{{ tone }} {{ enable_thinking }}", "chat_template_args": {"tone": "mild"}}
    model = OPEN({"pretrained": "m", "enable_thinking": False, **given})
    assert model.chat is not None
    assert model.chat([{"role": "user", "content": "hi"}], True) == "mild False"
    assert (
        model.identity
        != OPEN({"pretrained": "m", "enable_thinking": False, **given, "chat_template_args": "{}"}).identity
    )
