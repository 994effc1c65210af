"""The arguments that vLLM takes under the same name: numbers, texts and booleans, none of which brings code."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=1)]


class EngineLayout(Struct, frozen=True, kw_only=True):
    """Devices, memory and scheduling: they change no answer beyond its last digits. None is vLLM's own choice."""

    tensor_parallel_size: Count = 1
    pipeline_parallel_size: Count | None = None
    enable_expert_parallel: bool | None = None
    distributed_executor_backend: Literal["mp", "ray", "uni"] | None = None
    disable_custom_all_reduce: bool | None = None
    max_parallel_loading_workers: Count | None = None
    gpu_memory_utilization: Annotated[float, Meta(gt=0, le=1)] = 0.9
    kv_cache_memory_bytes: Count | None = None
    cpu_offload_gb: Annotated[float, Meta(ge=0)] | None = None
    num_gpu_blocks_override: Count | None = None
    block_size: Count | None = None
    max_num_seqs: Count | None = None
    max_num_batched_tokens: Count | None = None
    enable_chunked_prefill: bool | None = None
    enable_prefix_caching: bool = True
    enforce_eager: bool | None = None
    disable_cascade_attn: bool | None = None
    async_scheduling: bool | None = None
    max_lora_rank: Count | None = None
    disable_log_stats: bool | None = None
    download_dir: str | None = None


class EngineSettings(EngineLayout, frozen=True, kw_only=True):
    """The model, its numbers and its tokenizer: they are part of what names it."""

    revision: str | None = None
    tokenizer: str | None = None
    tokenizer_mode: str | None = None
    trust_remote_code: bool = False
    dtype: str = "auto"
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    calculate_kv_scales: bool | None = None
    lora_dtype: str | None = None
    disable_sliding_window: bool | None = None
    load_format: str | None = None
    config_format: str | None = None
    generation_config: Literal["auto", "vllm"] | None = None
    model_impl: str | None = None
    seed: int = 1234


ENGINE_ARGUMENTS = (
    ("revision", "branch, tag or commit"),
    ("tokenizer", "another folder or name (the model's own)"),
    ("tokenizer_mode", "auto, slow, or as vLLM names it"),
    ("trust_remote_code", "run the repository's own code; needs a commit as revision, and --trust model:NAME"),
    ("dtype", "float32, bfloat16, float16 (auto: as the weights are)"),
    ("quantization", "as vLLM names it"),
    ("kv_cache_dtype", "fp8 and others, as vLLM names them (auto: as the model)"),
    ("calculate_kv_scales", "whether the scales of an fp8 cache are computed"),
    ("lora_dtype", "of the adapter (auto: as the model)"),
    ("disable_sliding_window", "cut the positions to the model's window"),
    ("load_format", "of the weights, as vLLM names it: safetensors, gguf, bitsandbytes, ..."),
    ("config_format", "hf or mistral (auto)"),
    ("generation_config", "auto: the model's own end tokens count; vllm: they do not"),
    ("model_impl", "vllm or transformers (auto)"),
    ("seed", "every draw comes from it, the request and the number of the repeat (1234)"),
    ("tensor_parallel_size", "devices that share a model (1)"),
    ("pipeline_parallel_size", "devices that take the layers in turn (1)"),
    ("enable_expert_parallel", "divide the experts of a layer among the devices"),
    ("distributed_executor_backend", "mp, ray or uni"),
    ("disable_custom_all_reduce", "let NCCL add up what devices computed"),
    ("max_parallel_loading_workers", "how many devices load weights at once"),
    ("gpu_memory_utilization", "share of a device's memory (0.9)"),
    ("kv_cache_memory_bytes", "the cache's memory, in place of that share"),
    ("cpu_offload_gb", "weights kept in the host's memory, for each device"),
    ("num_gpu_blocks_override", "how many blocks the cache has"),
    ("block_size", "how many tokens a block of the cache has"),
    ("max_num_seqs", "requests computed at once (max_batch_size is the same)"),
    ("max_num_batched_tokens", "tokens computed at once"),
    ("enable_chunked_prefill", "compute long prompts in parts"),
    ("enable_prefix_caching", "vLLM's own cache of common beginnings (true)"),
    ("enforce_eager", "no CUDA graphs: slower, less memory"),
    ("disable_cascade_attn", "no attention of its own for common beginnings"),
    ("async_scheduling", "schedule a step during the one before"),
    ("max_lora_rank", "the largest rank of an adapter (16)"),
    ("disable_log_stats", "no statistics in vLLM's log (true)"),
    ("download_dir", "where weights of the hub are kept"),
)
