"""How weights are loaded: where to, with an adapter or a difference; and what cannot be loaded."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from evalcore.core.records.errors import EvalError
from evalcore.shell.models.hf.hf_loader import open_hf
from tests.models.test_hf_kinds import DEEP, KINDS, REQUESTS, ask, ask_lm_eval, assert_alike, open_folder

pytestmark = pytest.mark.models


def test_adapters_and_added_weights_change_answers(make_kind: Callable[..., Path], tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM

    folder = make_kind(*KINDS["llama"][:2])
    model = AutoModelForCausalLM.from_pretrained(folder)
    adapted = peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False))
    adapted.save_pretrained(tmp_path / "adapter")
    plain = ask(open_folder(folder), REQUESTS[:2])
    for given in ({"peft": str(tmp_path / "adapter")}, {"delta": str(folder)}):
        changed = ask(open_folder(folder, **given), REQUESTS[:2])
        assert changed != plain
        assert_alike(changed, ask_lm_eval(folder, REQUESTS[:2], **given))
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
    adapted = open_folder(folder, **given)
    assert "prefix_cache has no effect" in adapted.warnings[0]
    replies = ask(adapted, REQUESTS)
    assert replies != ask(open_folder(folder, max_length=200), REQUESTS)
    assert_alike(replies, ask_lm_eval(folder, REQUESTS, **given))


def test_a_difference_is_added_once_to_weights_that_two_layers_share(
    make_kind: Callable[..., Path], tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = make_kind("LlamaConfig", {**DEEP, "tie_word_embeddings": True})
    model = AutoModelForCausalLM.from_pretrained(folder)
    for weights in model.parameters():
        weights.data *= 2
    model.save_pretrained(tmp_path / "added")
    AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "added")
    twice = ask(open_folder(tmp_path / "added"), REQUESTS[:2])
    assert ask(open_folder(folder, delta=str(folder)), REQUESTS[:2]) == twice
    parts = {"model.embed_tokens": "cpu", "lm_head": "cpu", "model.norm": "cpu", "model.rotary_emb": "cpu"}
    parts |= {f"model.layers.{layer}": "disk" if layer else "cpu" for layer in range(4)}
    with pytest.raises(EvalError, match=r"delta cannot be added to model.layers.1.*, which was offloaded"):
        open_folder(folder, delta=str(folder), device_map=parts)
    theirs = ask_lm_eval(folder, REQUESTS[:2], delta=str(folder))
    assert theirs[0].value != pytest.approx(twice[0].value, rel=1e-3)  # lm-eval adds it under each of the two names


def test_a_difference_lies_in_no_subfolder(make_kind: Callable[..., Path], tmp_path: Path) -> None:
    folder = make_kind(*KINDS["llama"][:2])
    shutil.copytree(folder, tmp_path / "all" / "part")
    asked = [open_folder(tmp_path / "all", subfolder="part", delta=str(folder)), open_folder(folder, delta=str(folder))]
    one, other = (ask(model, REQUESTS[:2]) for model in asked)
    assert one == other


def test_weights_are_loaded_onto_their_device(make_kind: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    folder, maps = make_kind(*KINDS["llama"][:2]), list[object]()
    load = AutoModelForCausalLM.from_pretrained

    def watch(*given: object, **how: object) -> object:
        maps.append(how["device_map"])
        return load(*given, **how)

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", watch)
    model = open_folder(folder)
    spread = [open_folder(folder, device_map=one, device=None) for one in ("cpu", {"": "cpu"}, '{"": "cpu"}')]
    open_folder(folder, parallelize=True)
    assert maps == [{"": "cpu"}, "cpu", {"": "cpu"}, {"": "cpu"}, "auto"]
    tokens = torch.arange(9)[None]
    plain = load(folder, dtype=torch.float32).eval()
    for one in (model, *spread):
        assert torch.equal(one.ask.args[0].network.model(tokens).logits, plain(tokens).logits)  # type: ignore[attr-defined]


def test_what_cannot_be_loaded_is_said_in_a_line(tmp_path: Path, small_model: Path) -> None:
    with pytest.raises(EvalError, match="transformers cannot load") as wrong:
        open_hf({"pretrained": str(tmp_path)})
    assert "\n" not in str(wrong.value)
    with pytest.raises(EvalError, match="float33"):
        open_folder(small_model, dtype="float33")
    with pytest.raises(EvalError, match="name the commit"):
        open_folder(small_model, trust_remote_code=True)
