"""Adapters and added weights: they change answers, as in lm-eval."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evalcore.core.records.errors import EvalError
from tests.models.test_hf_kinds import KINDS, REQUESTS, ask, ask_lm_eval, assert_alike, open_folder

pytestmark = pytest.mark.models


def test_adapters_and_added_weights_change_answers(make_kind: Callable[..., Path], tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM

    folder = make_kind(*KINDS["llama"][:2])
    model = AutoModelForCausalLM.from_pretrained(folder)
    adapted = peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False))
    adapted.save_pretrained(tmp_path / "adapter")
    plain = ask(open_folder(folder), REQUESTS[:2])
    assert ask(open_folder(folder, peft=str(tmp_path / "adapter")), REQUESTS[:2]) != plain
    assert ask(open_folder(folder, delta=str(folder)), REQUESTS[:2]) != plain
    with pytest.raises(EvalError, match="peft or delta"):
        open_folder(folder, peft="a", delta="b")


@pytest.mark.parametrize("kind", ["PromptTuningConfig", "PrefixTuningConfig"])
def test_tuned_prompts_count_as_in_lm_eval(make_kind: Callable[..., Path], tmp_path: Path, kind: str) -> None:
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM

    folder = make_kind(*KINDS["llama"][:2])
    model = AutoModelForCausalLM.from_pretrained(folder)
    tuned = peft.get_peft_model(model, getattr(peft, kind)(task_type="CAUSAL_LM", num_virtual_tokens=5))
    tuned.save_pretrained(tmp_path / "adapter")
    given = {"peft": str(tmp_path / "adapter"), "max_length": 200}
    replies = ask(open_folder(folder, **given), REQUESTS)
    assert replies != ask(open_folder(folder, max_length=200), REQUESTS)
    assert_alike(replies, ask_lm_eval(folder, REQUESTS, **given))
