"""Adapters that put tokens of their own before a text: their answers are those of lm-eval."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.models.test_hf_kinds import KINDS, REQUESTS, ask, ask_lm_eval, assert_alike, open_folder

pytestmark = pytest.mark.models


@pytest.mark.parametrize("kind", ["PromptTuningConfig", "PrefixTuningConfig"])
def test_tuned_prompts_count_as_in_lm_eval(make_kind: Callable[..., Path], tmp_path: Path, kind: str) -> None:
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM

    folder = make_kind(*KINDS["llama"][:2])
    model = AutoModelForCausalLM.from_pretrained(folder)
    tuned = peft.get_peft_model(model, getattr(peft, kind)(task_type="CAUSAL_LM", num_virtual_tokens=5))
    tuned.save_pretrained(tmp_path / "adapter")
    given = {"peft": str(tmp_path / "adapter"), "max_length": 200}
    adapted = open_folder(folder, **given)
    assert "prefix_cache has no effect" in adapted.warnings[0]
    replies = ask(adapted, REQUESTS)
    assert replies != ask(open_folder(folder, max_length=200), REQUESTS)
    assert_alike(replies, ask_lm_eval(folder, REQUESTS, **given))
