"""The arguments of a model of vLLM, under lm-eval's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from evalcore.core.records.errors import EvalError, require_known
from evalcore.shell.models.checkpoint import require_commit

Count = Annotated[int, Meta(ge=1)]
WHERE = " - at model_args of vllm"


class VllmSettings(Struct, frozen=True, kw_only=True):
    """The arguments of the model."""

    pretrained: str
    revision: str | None = None
    tokenizer: str | None = None
    dtype: str = "auto"
    quantization: str | None = None
    tensor_parallel_size: Count = 1
    gpu_memory_utilization: Annotated[float, Meta(gt=0, le=1)] = 0.9
    max_model_len: Count | None = None
    max_length: Count | None = None
    max_gen_toks: Count = 256
    batch_size: Count | Literal["auto"] = "auto"
    add_bos_token: bool | None = None
    prefix_token_id: int | None = None
    enable_prefix_caching: bool = True
    enable_thinking: bool | None = None
    think_end_token: str | None = None
    chat_template: str | None = None
    trust_remote_code: bool = False
    seed: int = 1234

    @property
    def batch(self) -> int:
        """How many requests are handed over at once: vLLM schedules them by itself."""
        return BATCH if self.batch_size == "auto" else self.batch_size


BATCH = 1024
ARGUMENTS = (
    ("pretrained", "a folder, or a name on the hub"),
    ("revision", "branch, tag or commit"),
    ("tokenizer", "another folder or name (the model's own)"),
    ("dtype", "float32, bfloat16, float16 (auto: as the weights are)"),
    ("quantization", "as vLLM names it"),
    ("tensor_parallel_size", "devices that share a model (1)"),
    ("gpu_memory_utilization", "share of a device's memory (0.9)"),
    ("max_model_len", "positions; longer contexts lose their beginning (max_length is the same)"),
    ("max_length", "as max_model_len"),
    ("max_gen_toks", "tokens to generate where the task does not say (256)"),
    ("batch_size", f"requests handed over at once (auto: {BATCH})"),
    ("add_bos_token", "whether a BOS token comes first (as the tokenizer does)"),
    ("prefix_token_id", "what stands for an empty context (BOS, else EOS)"),
    ("enable_prefix_caching", "vLLM's own cache of common beginnings (true)"),
    ("enable_thinking", "handed to the chat template"),
    ("think_end_token", "what is before its last occurrence in a reply is left out"),
    ("chat_template", "a jinja2 template instead of the model's own"),
    ("trust_remote_code", "run the repository's own code; needs a commit as revision, and --trust model:NAME"),
    ("seed", "every draw comes from it, the request and the number of the repeat (1234)"),
)


def read_settings(given: Mapping[str, object]) -> VllmSettings:
    """Read the settings in these model_args.

    >>> read_settings({"pretrained": "org/m", "batch_size": "auto:4"}).batch
    1024
    >>> read_settings({"pretrained": "org/m", "max_len": 9})
    Traceback (most recent call last):
    evalcore.EvalError: unknown argument 'max_len'; did you mean 'max_length'? Known: ... - at model_args of vllm
    """
    named = {key: value for key, value in given.items() if value is not None}
    require_known("argument", named, VllmSettings.__struct_fields__, WHERE)
    if isinstance(named.get("batch_size"), str) and str(named["batch_size"]).startswith("auto"):
        named["batch_size"] = "auto"
    try:
        read = msgspec.convert(named, VllmSettings, strict=False)
    except msgspec.ValidationError as wrong:
        raise EvalError(f"{str(wrong).replace('$.', '').replace('Object', 'model_args')}{WHERE}") from None
    if read.max_model_len and read.max_length:
        raise EvalError(f"expected max_model_len or max_length, got both{WHERE}")
    if read.trust_remote_code:
        require_commit(read.pretrained, read.revision, WHERE)
    return read
