"""The small model, made once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.models.small_model import find_missing, make_model


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if missing := find_missing():
        pytest.skip(missing)
    return make_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def make_kind(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A model with random weights and the small model's tokenizer."""
    import torch
    import transformers

    def make(config: str, sizes: dict[str, object], auto: str = "AutoModelForCausalLM") -> Path:
        folder = tmp_path_factory.mktemp(config)
        torch.manual_seed(0)
        made = getattr(transformers, auto).from_config(
            getattr(transformers, config)(**sizes, bos_token_id=1, eos_token_id=2, pad_token_id=2)
        )
        for one in made.parameters():  # far from one another, so that mistakes show
            one.data.mul_(3.0)
        made.save_pretrained(folder)
        transformers.AutoTokenizer.from_pretrained(small_model).save_pretrained(folder)
        return folder

    return make
