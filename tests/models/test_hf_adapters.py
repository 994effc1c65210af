"""Adapters and added weights: they change answers, as in lm-eval."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evalcore.core.records.errors import EvalError
from tests.models.test_hf_kinds import KINDS, REQUESTS, ask, open_folder

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
