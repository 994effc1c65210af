"""The arguments of the model, under lm-eval's names."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from pyrsistent import PMap, pmap

from evalcore.core.records.errors import EvalError, require_known
from evalcore.shell.models.checkpoint import require_commit, require_folders
from evalcore.shell.models.model_args import (
    Elsewise,
    convert_args,
    leave_out,
    read_variables,
    warn_of_thoughts,
    write_object,
)
from evalcore.shell.prompts.turns import CHAT_DATE

Count = Annotated[int, Meta(ge=1)]
WHERE = " - at model_args of hf"


class HfSettings(Struct, frozen=True, kw_only=True):
    """The arguments of the model."""

    pretrained: str
    revision: str = "main"
    subfolder: str = ""
    tokenizer: str | None = None
    use_fast_tokenizer: bool = True
    backend: Literal["default", "causal", "seq2seq"] = "default"
    dtype: str = "auto"
    device: str | None = None
    parallelize: bool = False
    device_map: str | None = None
    max_memory_per_gpu: int | str | None = None
    max_cpu_memory: int | str | None = None
    offload_folder: str = "./offload"
    attn_implementation: str | None = None
    mixed_precision_dtype: str | None = None
    batch_size: Count | Literal["auto"] = "auto"
    max_batch_size: Count | None = None
    max_length: Count | None = None
    max_gen_toks: Count = 256
    add_bos_token: bool | None = None
    prefix_token_id: int | None = None
    peft: str | None = None
    delta: str | None = None
    gguf_file: str | None = None
    enable_thinking: bool | None = None
    think_end_token: int | str | None = None
    chat_template: str | None = None
    chat_template_args: str | None = None
    chat_date: date = CHAT_DATE
    trust_remote_code: bool = False
    prefix_cache: bool = True
    cache_tokens: Annotated[int, Meta(ge=0)] = 16384
    num_processes: Count = 1
    seed: int = 1234

    @property
    def batch(self) -> int:
        """How many replies grow together: a number, never what memory happens to be free."""
        return min(BATCH, self.max_batch_size or BATCH) if self.batch_size == "auto" else self.batch_size

    @property
    def batches(self) -> dict[str, object]:
        """What decides which requests are computed together."""
        kept = {name: getattr(self, name) for name in ("prefix_cache", "cache_tokens", "num_processes")}
        return {"batch_size": self.batch, **kept}

    @property
    def spread(self) -> object:
        """How one model lies on several devices, as accelerate takes it; None if on one."""
        if self.device_map and self.device_map.startswith("{"):
            return msgspec.json.decode(self.device_map)
        return self.device_map or ("auto" if self.parallelize else None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be asked for, and is hardly meant."""
        return warn_of_thoughts(self.template_variables, self.think_end_token)

    @property
    def template_variables(self) -> dict[str, object]:
        """The variables that the chat template sees, as in lm-eval."""
        return read_variables(self.chat_template_args, self.enable_thinking)


BATCH = 16
OFF = ("false", "0", "")
QUANTIZED = Elsewise(OFF, "use weights that are quantized, or model: vllm with quantization")
GPTQ = Elsewise(OFF, "transformers reads GPTQ weights by itself: leave it out")

ELSEWISE: PMap[str, Elsewise] = pmap(
    {
        "logits_cache": Elsewise((), "every token is computed once by prefix_cache, which does more"),
        "truncation": Elsewise((), "what is too long loses its beginning, as in lm-eval with either value"),
        "softmax_dtype": Elsewise(
            ("float32", "torch.float32", "auto"),
            "log-probabilities are computed in float32, whatever the weights are",
        ),
        "tp_plan": Elsewise(
            ("none",),
            "it needs torchrun: use parallelize or device_map, num_processes, or model: vllm with tensor_parallel_size",
        ),
        "low_cpu_mem_usage": Elsewise((), "weights are always loaded straight onto their device"),
        "cache_dir": Elsewise(OFF, "where files of the hub are kept is a matter of the machine: set HF_HOME instead"),
        "token": Elsewise(OFF, "a token in a config is soon a token in a log: set HF_TOKEN in the environment"),
        "autogptq": GPTQ,
        "gptqmodel": GPTQ,
        "load_in_8bit": QUANTIZED,
        "load_in_4bit": QUANTIZED,
        "bnb_4bit_compute_dtype": QUANTIZED,
        "bnb_4bit_quant_storage": QUANTIZED,
        "bnb_4bit_quant_type": QUANTIZED,
        "bnb_4bit_use_double_quant": QUANTIZED,
        "quantization_config": QUANTIZED,
    }
)
"""lm-eval's arguments that have nothing to do here."""

ARGUMENTS = (
    ("pretrained", "a folder, or a name on the hub"),
    ("revision", "branch, tag or commit (main)"),
    ("subfolder", "of the repository"),
    ("tokenizer", "another folder or name (the model's own)"),
    ("use_fast_tokenizer", "true"),
    ("backend", "causal or seq2seq, where the config does not say"),
    ("dtype", "float32, bfloat16, float16 (auto: as the weights are)"),
    ("device", "cpu, cuda, cuda:1, mps (the first there is)"),
    ("parallelize", "spread over all devices, as device_map: auto does"),
    ("device_map", "as accelerate takes it: a name such as balanced, or an object of layers and devices"),
    ("max_memory_per_gpu", "of each device with parallelize, as 10GiB (what there is)"),
    ("max_cpu_memory", "for layers that do not fit the devices, with parallelize"),
    ("offload_folder", "for layers that fit neither, with parallelize (./offload)"),
    ("attn_implementation", "sdpa, eager, flash_attention_2 (the model's own)"),
    ("mixed_precision_dtype", "float16 or bfloat16: the type in which autocast computes (none)"),
    ("batch_size", f"replies that grow together, and 48 tokens of likelihoods a call for each (auto: {BATCH})"),
    ("max_batch_size", "the most that batch_size: auto may be"),
    ("max_length", "positions; longer contexts lose their beginning (what the model was trained for)"),
    ("max_gen_toks", "tokens to generate where the task does not say (256)"),
    ("add_bos_token", "whether a BOS token comes first (as the tokenizer does)"),
    ("prefix_token_id", "what stands for an empty context (BOS, else EOS)"),
    ("peft", "an adapter: a folder, or a name on the hub"),
    ("delta", "weights to add: a folder, or a name on the hub"),
    ("gguf_file", "the file of the repository to read the weights from"),
    ("enable_thinking", "handed to the chat template"),
    ("think_end_token", "what is before its last occurrence in a reply is left out"),
    ("chat_template", "a jinja2 template instead of the model's own"),
    ("chat_template_args", "an object whose names the chat template knows"),
    ("chat_date", f"the day that a chat template takes for today, whatever the clock says ({CHAT_DATE})"),
    ("trust_remote_code", "run the repository's own code; needs a commit as revision, and --trust model:NAME"),
    ("prefix_cache", "whether each token is computed once (true)"),
    ("cache_tokens", "tokens of shared prefixes that are kept in memory (16384)"),
    (
        "num_processes",
        "processes that share the requests out, each with a model of its own, on a device each if there are (1)",
    ),
    ("seed", "every draw comes from it, the request and the number of the repeat (1234)"),
)


def read_settings(given: Mapping[str, object]) -> HfSettings:
    """Read the settings in these model_args.

    >>> read_settings({"pretrained": "org/m", "batch_size": "8"}).batch
    8
    >>> read_settings({"pretraind": "org/m"})
    Traceback (most recent call last):
    evalcore.EvalError: unknown argument 'pretraind'; did you mean 'pretrained'? Known: ... - at model_args of hf
    """
    named = leave_out(given, ELSEWISE, WHERE)
    require_known("argument", named, HfSettings.__struct_fields__, WHERE)
    spread = named.get("device_map")
    if isinstance(spread, Mapping) or str(spread).startswith("{"):
        named["device_map"] = write_object("device_map", spread, WHERE)
    if str(named.get("think_end_token")).isdecimal():
        named["think_end_token"] = int(str(named["think_end_token"]))  # its number, as in lm-eval
    read = convert_args(named, HfSettings, WHERE)
    _check_together(read)
    return read


def _check_together(read: HfSettings) -> None:
    """Refuse arguments that contradict each other."""
    if read.num_processes > 1 and (read.device_map or read.parallelize):
        raise EvalError(f"expected one model over several devices or one in each of several processes, got both{WHERE}")
    if read.peft and read.delta:
        raise EvalError(f"expected peft or delta, got both{WHERE}")
    if (read.max_memory_per_gpu or read.max_cpu_memory) and not read.parallelize:
        raise EvalError(f"max_memory_per_gpu and max_cpu_memory need parallelize: true{WHERE}")
    require_folders(read, WHERE)
    if read.trust_remote_code:
        require_commit(read.pretrained, read.revision, WHERE)
