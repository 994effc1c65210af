"""hf in half precision: rounding does not keep the tree from being used, and does not hide a wrong mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalcore.core.records.request import LogLikelihood, Request
from evalcore.shell.models.decode import Decoding
from evalcore.shell.models.hf.continuation import GrowingText, Prompt
from evalcore.shell.models.hf.network import KeptTokens, Network, Seen
from evalcore.shell.models.hf.row_probe import PROBES, Probe, probe_rows
from evalcore.shell.models.hf.tokenizer import Speech
from tests.models.test_hf_kinds import KINDS, ask, ask_lm_eval, count_evaluated, open_folder

pytestmark = pytest.mark.models

HALVES = ("bfloat16", "float16")
SHOTS = "".join(f"Question: How many legs have {n} cats?\nAnswer: {4 * n}\n\n" for n in range(1, 6))
PLACES = (" Paris", " a small village by the sea", " Rome, which is a city in Italy", " 12")
REQUESTS: list[Request] = [
    LogLikelihood(f"{SHOTS}Question: Which is {one}?\nAnswer:", place) for one, place in product("xyz", PLACES)
]


class HidingNetwork(Network):
    """A model whose mask hides a token of the trunk from the row."""

    hidden = 6

    def call(
        self, kept: KeptTokens, tokens: Sequence[int], depths: Sequence[int], seen: Seen, keep: Sequence[int]
    ) -> Any:
        seen[:, self.hidden] &= not kept.depths
        return super().call(kept, tokens, depths, seen, keep)


class ParentNetwork(HidingNetwork):
    """A model whose mask hides the last token of the trunk."""

    hidden = 12


class CountingNetwork(Network):
    """A model that counts positions along the row, whatever it is told."""

    def call(
        self, kept: KeptTokens, tokens: Sequence[int], depths: Sequence[int], seen: Seen, keep: Sequence[int]
    ) -> Any:
        begin = len(kept.depths)
        return super().call(kept, tokens, range(begin, begin + len(tokens)), seen, keep)


def probe_model(kind: type[Network], model: Any, folder: Path) -> Probe:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    one, two = (tuple(tokenizer.encode(text, add_special_tokens=False)) for text in PROBES)
    return probe_rows(kind(model), one, two)


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
def test_a_wrong_mask_is_told_from_rounding(small_model: Path, dtype: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(small_model, dtype=getattr(torch, dtype)).eval()
    assert probe_model(Network, model, small_model).fits
    for wrong in (HidingNetwork, ParentNetwork, CountingNetwork):
        probe = probe_model(wrong, model, small_model)
        assert not probe.fits, probe
        assert f"differ by {probe.far:.2g}" in probe.reason


@pytest.mark.parametrize(
    "given",
    [*({"dtype": dtype} for dtype in HALVES), {"dtype": "float32", "mixed_precision_dtype": "bfloat16"}],
    ids=str,
)
def test_half_precision_takes_the_tree_and_is_as_near_as_lm_eval(small_model: Path, given: dict[str, object]) -> None:
    exact, model = open_folder(small_model), open_folder(small_model, **given)
    assert not model.warnings
    wanted, mine, theirs = (
        np.array([one.value for one in replies])
        for replies in (ask(exact, REQUESTS), ask(model, REQUESTS), ask_lm_eval(small_model, REQUESTS, **given))
    )
    assert count_evaluated(model) == count_evaluated(exact)
    apart, usual = (np.sqrt(np.square(values - wanted).mean()) for values in (mine, theirs))
    assert 0 < apart < 1.5 * usual


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_takes_the_tree_in_half_precision_as_in_float32(
    make_kind: Callable[..., Path], kind: str, dtype: str
) -> None:
    config, sizes, once = KINDS[kind]
    model = open_folder(make_kind(config, sizes), dtype=dtype)
    assert bool(model.warnings) != once, model.warnings


def test_a_penalty_is_applied_in_float32_as_in_transformers() -> None:
    import torch
    from transformers import RepetitionPenaltyLogitsProcessor

    logits = torch.tensor(
        [13.0625, 10.0625, -3.0], dtype=torch.bfloat16
    )  # 13.0625 / 1.3 is less, but rounds to as much
    wanted = RepetitionPenaltyLogitsProcessor(1.3)(torch.tensor([[0]]), logits.float()[None])[0].argmax()
    speech = Speech(str, frozenset())
    text = GrowingText(Prompt((0,), 0), Decoding(repetition_penalty=1.3), speech)
    assert text.take(logits, 0) == wanted == 1
