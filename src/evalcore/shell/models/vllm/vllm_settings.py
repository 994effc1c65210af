"""The arguments of a model of vLLM, under lm-eval's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pyrsistent import PMap, pmap

from evalcore.core.records.errors import EvalError, require_known
from evalcore.shell.models.checkpoint import require_commit, require_folders
from evalcore.shell.models.model_args import Elsewise, convert_args, leave_out, read_variables, warn_of_thoughts
from evalcore.shell.models.vllm.engine_settings import ENGINE_ARGUMENTS, Count, EngineSettings

WHERE = " - at model_args of vllm"


class VllmSettings(EngineSettings, frozen=True, kw_only=True):
    """The arguments of the model: vLLM's, and those that vLLM does not have or that have another name there."""

    pretrained: str
    tokenizer_revision: str | None = None
    lora_local_path: str | None = None
    max_model_len: Count | None = None
    max_length: Count | None = None
    max_gen_toks: Count = 256
    batch_size: Count | Literal["auto"] = "auto"
    max_batch_size: Count | None = None
    add_bos_token: bool | None = None
    prefix_token_id: int | None = None
    enable_thinking: bool | None = None
    think_end_token: str | None = None
    chat_template: str | None = None
    chat_template_args: str | None = None

    @property
    def batch(self) -> int:
        """How many requests are handed over at once: vLLM schedules them by itself."""
        return BATCH if self.batch_size == "auto" else self.batch_size

    @property
    def template_variables(self) -> dict[str, object]:
        """The variables that the chat template sees, as in lm-eval."""
        return read_variables(self.chat_template_args, self.enable_thinking)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be asked for, and is hardly meant."""
        return warn_of_thoughts(self.template_variables, self.think_end_token)


BATCH = 1024
BY_SERVER = (
    "and use model: local-completions with model_args: {model: MODEL, base_url: http://localhost:8000/v1/completions}"
)
OBJECT = Elsewise(("none",), f"objects are not handed over here: give it to `vllm serve MODEL`, {BY_SERVER}")
CODE = Elsewise(("none",), "it would run code that nothing pins")

ELSEWISE: PMap[str, Elsewise] = pmap(
    {
        "data_parallel_size": Elsewise(
            ("1",),
            f"each replica needs a process of its own: start `vllm serve MODEL --data-parallel-size N`, {BY_SERVER}",
        ),
        "truncation_side": Elsewise(("left",), "what is too long loses its beginning, as lm-eval's likelihoods do"),
        "device": Elsewise(("cuda", "auto"), "vLLM takes the devices that CUDA_VISIBLE_DEVICES lists: set it"),
        "swap_space": Elsewise((), "vLLM no longer has it"),
        "enable_lora": Elsewise((), "lora_local_path enables it"),
        **dict.fromkeys(("hf_overrides", "rope_scaling", "speculative_config", "compilation_config"), OBJECT),
        **dict.fromkeys(("override_generation_config", "limit_mm_per_prompt", "model_loader_extra_config"), OBJECT),
        **dict.fromkeys(("worker_cls", "worker_extension_cls", "logits_processors"), CODE),
        **dict.fromkeys(("code_revision", "hf_config_path"), CODE),
    }
)
"""Arguments of lm-eval and vLLM that have nothing to do here, or cannot do what they do there."""

ARGUMENTS = (
    ("pretrained", "a folder, or a name on the hub"),
    ("tokenizer_revision", "branch, tag or commit of the tokenizer (the model's, where it is the model's own)"),
    ("lora_local_path", "a folder with a LoRA adapter"),
    ("max_model_len", "positions; longer contexts lose their beginning (max_length is the same)"),
    ("max_length", "as max_model_len"),
    ("max_gen_toks", "tokens to generate where the task does not say (256)"),
    ("batch_size", f"requests handed over at once (auto: {BATCH})"),
    ("max_batch_size", "as max_num_seqs"),
    ("add_bos_token", "whether a BOS token comes first (as the tokenizer does)"),
    ("prefix_token_id", "what stands for an empty context (BOS, else EOS)"),
    ("enable_thinking", "handed to the chat template"),
    ("think_end_token", "what is before its last occurrence in a reply is left out"),
    ("chat_template", "a jinja2 template instead of the model's own"),
    ("chat_template_args", "an object whose names the chat template knows"),
    *ENGINE_ARGUMENTS,
)


def read_settings(given: Mapping[str, object]) -> VllmSettings:
    """Read the settings in these model_args.

    >>> read_settings({"pretrained": "org/m", "batch_size": "auto:4"}).batch
    1024
    >>> read_settings({"pretrained": "org/m", "max_len": 9})
    Traceback (most recent call last):
    evalcore.EvalError: unknown argument 'max_len'; did you mean 'max_length'? Known: ... - at model_args of vllm
    """
    named = leave_out(given, ELSEWISE, WHERE)
    require_known("argument", named, VllmSettings.__struct_fields__, WHERE)
    read = convert_args(named, VllmSettings, WHERE)
    _check_together(read)
    return read


def _check_together(read: VllmSettings) -> None:
    """Refuse arguments that contradict each other, and code that no commit pins."""
    for one, other in (("max_model_len", "max_length"), ("max_num_seqs", "max_batch_size")):
        if getattr(read, one) and getattr(read, other):
            raise EvalError(f"expected {one} or {other}, got both{WHERE}")
    require_folders(read, WHERE)
    if read.trust_remote_code:
        require_commit(read.pretrained, read.revision, WHERE)
        if read.tokenizer or read.tokenizer_revision:
            require_commit(read.tokenizer or read.pretrained, read.tokenizer_revision, WHERE, "tokenizer_revision")
