"""Other kinds of models, tiny and with random weights: the tree agrees with plain batches, or is not used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalcore.core.records.request import Generate, Likelihood, LogLikelihood, Request, Rolling, freeze_options
from evalcore.shell.models.hf.hf_loader import open_hf
from evalcore.shell.models.model import Heard, Model, Question

pytestmark = pytest.mark.models

SMALL = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 49152}
DEEP = {**SMALL, "intermediate_size": 64, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 256}
SHOTS = "".join(f"Question {n}: how many legs have {n} cats? Answer: {4 * n}. " for n in range(9))
REQUESTS: list[Request] = [
    *(
        LogLikelihood(f"{SHOTS}And {one}?", f" {end}")
        for one in ("a dog", "two ants")
        for end in ("4", "twelve", "as many")
    ),
    LogLikelihood("Hello", " world, how are you?"),
    Rolling(SHOTS[:150]),
    *(Generate(f"{SHOTS}{one}", freeze_options({"max_gen_toks": 5, "until": []})) for one in ("A dog", "Two old ants")),
]
KINDS: dict[str, tuple[str, dict[str, object], bool]] = {
    "llama": ("LlamaConfig", DEEP, True),
    "gpt2": ("GPT2Config", {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 49152, "n_positions": 256}, True),
    "a window in some layers": (
        "Gemma3TextConfig",
        {**DEEP, "sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"] * 2},
        True,
    ),
    "a window in all layers": ("MistralConfig", {**DEEP, "sliding_window": 16}, True),
    "a soft cap": (
        "Gemma2Config",
        {**DEEP, "sliding_window": 16, "query_pre_attn_scalar": 8, "attn_logit_softcapping": 5.0},
        True,
    ),
    "experts": (
        "Qwen2MoeConfig",
        {**DEEP, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "num_experts": 4},
        True,
    ),
    "alibi": ("BloomConfig", {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": 49152}, False),
    "positions in two ways": (
        "Phi3Config",
        {
            **DEEP,
            "original_max_position_embeddings": 64,
            "rope_parameters": {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [4.0] * 4},
        },
        False,
    ),
    "positions by length": (
        "LlamaConfig",
        {**DEEP, "max_position_embeddings": 64, "rope_parameters": {"rope_type": "dynamic", "factor": 4.0}},
        False,
    ),
    "recurrent": ("MambaConfig", {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 49152}, False),
}
"""The config, its sizes, and whether its tokens can be computed once."""


def ask(model: Model, requests: list[Request]) -> list[Any]:
    heard = [one for one in model.ask([Question(one) for one in requests]) if isinstance(one, Heard)]
    return [one.reply for one in sorted(heard, key=lambda one: one.at)]


def count_evaluated(model: Model) -> int:
    count: int = model.ask.args[0].network.evaluated  # type: ignore[attr-defined]
    return count


def open_folder(folder: Path, **given: object) -> Model:
    return open_hf({"pretrained": str(folder), "dtype": "float32", "device": "cpu", "max_length": 256, **given})


def assert_alike(some: list[Any], others: list[Any]) -> None:
    for one, other in zip(some, others, strict=True):
        if isinstance(one, Likelihood):
            assert one.value == pytest.approx(other.value, rel=1e-4)
            assert one.greedy == other.greedy
        else:
            assert one == (pytest.approx(other, rel=1e-4) if isinstance(one, float) else other)


@pytest.mark.parametrize("kind", KINDS)
def test_the_tree_agrees_with_plain_batches_or_is_not_used(make_kind: Callable[..., Path], kind: str) -> None:
    config, sizes, once = KINDS[kind]
    folder = make_kind(config, sizes)
    tree = open_folder(folder)
    assert bool(tree.warnings) != once, tree.warnings
    replies = ask(tree, REQUESTS)
    assert_alike(replies, ask(open_folder(folder, prefix_cache=False), REQUESTS))
    assert_alike(replies, ask_lm_eval(folder, REQUESTS))


def ask_lm_eval(folder: Path, requests: list[Request], **given: Any) -> list[Any]:
    """The replies of lm-eval's own HFLM, each asked alone, of a model that has forgotten how long the last one was."""
    from lm_eval.models.huggingface import HFLM

    asked = {"dtype": "float32", "device": "cpu", "batch_size": 1, "max_length": 256, **given}
    model = HFLM(pretrained=str(folder), **asked)
    return [_ask_one(model, one) for asked in requests for one in (LogLikelihood("A", " dog"), asked)][1::2]


def _ask_one(model: Any, request: Request) -> Any:
    if isinstance(request, LogLikelihood):
        asked = [SimpleNamespace(args=(request.context, request.continuation))]
        return Likelihood(*model.loglikelihood(asked, disable_tqdm=True)[0], 0)
    if isinstance(request, Rolling):
        return model.loglikelihood_rolling([SimpleNamespace(args=(request.text,))], disable_tqdm=True)[0]
    asked = [SimpleNamespace(args=(request.prompt, {**request.options, "until": [*request.options["until"]]}))]  # type: ignore[misc]
    return model.generate_until(asked, disable_tqdm=True)[0]


@pytest.mark.parametrize(
    "given",
    [
        {"add_bos_token": True},
        {"prefix_token_id": 7},
        {"max_length": 40},
        {"think_end_token": " "},
        {"think_end_token": 28},
    ],
    ids=str,
)
def test_arguments_do_what_they_do_in_lm_eval(make_kind: Callable[..., Path], given: dict[str, Any]) -> None:
    folder = make_kind(*KINDS["llama"][:2])
    requests = [*REQUESTS, LogLikelihood("", "Hello you"), LogLikelihood("Hello  ", "you")]
    assert_alike(ask(open_folder(folder, **given), requests), ask_lm_eval(folder, requests, **given))


def test_a_penalty_of_the_models_own_is_applied_as_in_lm_eval(make_kind: Callable[..., Path]) -> None:
    folder = make_kind(*KINDS["llama"][:2])
    texts = [Generate(one, freeze_options({"max_gen_toks": 12, "until": []})) for one in (SHOTS, "A dog")]
    plain = ask(open_folder(folder), list(texts))
    (folder / "generation_config.json").write_text('{"repetition_penalty": 1.5, "eos_token_id": 2}')
    model = open_folder(folder)
    assert not model.warnings
    assert ask(model, list(texts)) != plain
    assert ask(model, list(texts)) == ask_lm_eval(folder, list(texts))
    assert ask(open_folder(folder, prefix_cache=False), list(texts)) == ask(model, list(texts))
    (folder / "generation_config.json").write_text('{"no_repeat_ngram_size": 2, "eos_token_id": 2}')
    assert "no_repeat_ngram_size 2, which is not applied" in open_folder(folder).warnings[0]


@pytest.mark.parametrize("own", [1.0, 1.5])
@pytest.mark.parametrize("asked", [1.0, 1.3, 0.7])
def test_a_penalty_that_a_task_asks_for_goes_before_the_models_own(
    make_kind: Callable[..., Path], own: float, asked: float
) -> None:
    folder = make_kind(*KINDS["llama"][:2])
    (folder / "generation_config.json").write_text(f'{{"repetition_penalty": {own}, "eos_token_id": 2}}')
    options = freeze_options({"max_gen_toks": 12, "until": [], "repetition_penalty": asked})
    texts = [Generate(one, options) for one in (SHOTS, "A dog")]
    theirs = ask_lm_eval(folder, list(texts))
    assert ask(open_folder(folder), list(texts)) == theirs
    assert ask(open_folder(folder, prefix_cache=False), list(texts)) == theirs


@pytest.mark.parametrize("cached", [True, False], ids=["tree", "plain"])
def test_what_is_known_changes_no_bit_of_the_rest(make_kind: Callable[..., Path], cached: bool) -> None:
    folder = make_kind(*KINDS["llama"][:2])
    first = open_folder(folder, prefix_cache=cached, batch_size=4)
    whole = ask(first, REQUESTS)
    for left in ({0}, {3, 8}, {5, 6, 9}):
        asked = [Question(one, known=at not in left) for at, one in enumerate(REQUESTS)]
        model = open_folder(folder, prefix_cache=cached, batch_size=4)
        heard = {one.at: one.reply for one in model.ask(asked) if isinstance(one, Heard)}
        assert heard == {at: whole[at] for at in left}
        if left == {0}:  # calls in which all is known are left out
            assert count_evaluated(model) < count_evaluated(first)


def test_attention_as_it_is_written_takes_packed_rows(make_kind: Callable[..., Path]) -> None:
    folder = make_kind(*KINDS["a window in some layers"][:2])
    model = open_folder(folder, attn_implementation="eager")
    assert not model.warnings
    assert_alike(ask(model, REQUESTS), ask(open_folder(folder), REQUESTS))


@pytest.mark.parametrize("given", [{"cache_tokens": 0}, {"batch_size": 1}, {"batch_size": 64}], ids=str)
def test_sizes_change_no_answer(make_kind: Callable[..., Path], given: dict[str, object]) -> None:
    folder = make_kind(*KINDS["llama"][:2])
    assert_alike(ask(open_folder(folder, **given), REQUESTS), ask(open_folder(folder), REQUESTS))


def test_an_encoder_decoder_answers_as_in_lm_eval(make_kind: Callable[..., Path]) -> None:
    from lm_eval.models.huggingface import HFLM

    sizes = {
        "d_model": 32,
        "d_ff": 64,
        "num_layers": 2,
        "num_heads": 4,
        "d_kv": 8,
        "vocab_size": 49152,
        "decoder_start_token_id": 2,
    }
    folder = make_kind("T5Config", sizes, "AutoModelForSeq2SeqLM")
    theirs = HFLM(
        pretrained=str(folder), dtype="float32", device="cpu", batch_size=2, backend="seq2seq", max_length=256
    )
    pairs = [*(one for one in REQUESTS if isinstance(one, LogLikelihood)), LogLikelihood("Hello  ", "you")]
    wanted = theirs.loglikelihood(
        [SimpleNamespace(args=(one.context, one.continuation)) for one in pairs], disable_tqdm=True
    )
    assert_alike(ask(open_folder(folder), list(pairs)), [Likelihood(value, greedy, 0) for value, greedy in wanted])
    texts = [one for one in REQUESTS if isinstance(one, Generate)]
    asked = [SimpleNamespace(args=(one.prompt, {"until": [], "max_gen_toks": 5})) for one in texts]
    wanted = theirs.generate_until(asked, disable_tqdm=True)  # lm-eval adds the length of the prompt to max_gen_toks
    for mine, longer in zip(ask(open_folder(folder), list(texts)), wanted, strict=True):
        assert mine
        assert longer.startswith(mine)


@pytest.mark.parametrize("kind", ["positions in two ways", "positions by length"])
def test_positions_that_depend_on_the_length_have_limits(make_kind: Callable[..., Path], kind: str) -> None:
    folder = make_kind(*KINDS[kind][:2])
    assert "max_length: 64 lets the tree be used" in open_folder(folder).warnings[0]
    near = [Generate(SHOTS[:n], freeze_options({"max_gen_toks": 12, "until": []})) for n in (150, 200, 214, 230, 260)]
    likely = [LogLikelihood(SHOTS[:n], SHOTS[n : n + 20]) for n in (20, 170, 180, 190, 200, 210, 400, 401)]
    for given in ({}, {"max_length": 64}):
        model = open_folder(folder, **given)
        assert bool(model.warnings) != bool(given)
        assert_alike(ask(model, [*near, *likely]), ask_lm_eval(folder, [*near, *likely], **given))
