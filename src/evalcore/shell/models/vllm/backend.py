"""A model of vLLM in this process: loading, chat template, and what names it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from evalcore.core.records.errors import EvalError, require
from evalcore.shell.models.checkpoint import list_remote_code, name_all, refuse_foreign_code
from evalcore.shell.models.model import Backend, Heard, Model, Notice, Question
from evalcore.shell.models.vllm.vllm_settings import ARGUMENTS, WHERE, VllmSettings, read_settings
from evalcore.shell.prompts.turns import ChatTemplate

if TYPE_CHECKING:
    from evalcore.shell.models.vllm.vllm_work import VllmEngine

EXTRA = "vllm"
NOT_ANSWERING = frozenset({"batch_size", "gpu_memory_utilization", "tensor_parallel_size", "enable_prefix_caching"})
"""Arguments that change no answer beyond its last digits."""


def open_vllm(given: Mapping[str, object]) -> Model:
    """Load the model that these arguments describe."""
    settings = read_settings(given)
    vllm = require("vllm", EXTRA)
    from evalcore.shell.models.decode import read_decoding
    from evalcore.shell.models.hf.hf_settings import HfSettings
    from evalcore.shell.models.hf.tokenizer import TextEncoder, find_template
    from evalcore.shell.models.vllm.vllm_work import VllmEngine

    try:
        if settings.trust_remote_code:
            refuse_foreign_code((settings.pretrained, settings.tokenizer), WHERE, revision=settings.revision)
        llm = vllm.LLM(**_list_arguments(settings))
    except EvalError:
        raise
    except (OSError, ValueError, ImportError, RuntimeError, KeyError) as wrong:
        told = (str(wrong).strip() or type(wrong).__name__).splitlines()[0]
        raise EvalError(f"vLLM cannot load {settings.pretrained}: {told}{WHERE}") from wrong
    tokenizer = llm.get_tokenizer()
    begins = HfSettings(
        pretrained=settings.pretrained, add_bos_token=settings.add_bos_token, prefix_token_id=settings.prefix_token_id
    )
    longest = int(llm.llm_engine.model_config.max_model_len)
    engine = VllmEngine(llm, vllm.SamplingParams, TextEncoder(tokenizer, begins), settings, longest)
    template = settings.chat_template or find_template(tokenizer)
    return Model(
        Path(settings.pretrained).name,
        _identify(settings, vllm.__version__, longest),
        partial(_ask_engine, engine),
        _make_chat(template, tokenizer, settings),
        template=template,
        check=partial(read_decoding, max_gen_toks=settings.max_gen_toks),
    )


def _list_arguments(settings: VllmSettings) -> dict[str, object]:
    """The arguments of ``vllm.LLM``; what is not given stays vLLM's own choice."""
    given: dict[str, object] = {
        "model": settings.pretrained,
        "tokenizer": settings.tokenizer,
        "revision": settings.revision,
        "tokenizer_revision": None if settings.tokenizer else settings.revision,
        "dtype": settings.dtype,
        "quantization": settings.quantization,
        "tensor_parallel_size": settings.tensor_parallel_size,
        "gpu_memory_utilization": settings.gpu_memory_utilization,
        "max_model_len": settings.max_model_len or settings.max_length,
        "enable_prefix_caching": settings.enable_prefix_caching,
        "trust_remote_code": settings.trust_remote_code,
        "seed": settings.seed,
    }
    return {key: value for key, value in given.items() if value is not None}


def _ask_engine(engine: VllmEngine, questions: Sequence[Question]) -> Iterator[Heard | Notice]:
    from evalcore.shell.models.vllm.vllm_work import answer_questions

    return answer_questions(engine, questions)


def _make_chat(template: str | None, tokenizer: Any, settings: VllmSettings) -> ChatTemplate | None:
    if template is None:
        return None
    from evalcore.shell.models.chat import compile_chat

    more = {} if settings.enable_thinking is None else {"enable_thinking": settings.enable_thinking}
    return compile_chat(template, {**tokenizer.special_tokens_map, **more})


def _identify(settings: VllmSettings, version: str, longest: int) -> str:
    """All that answers depend on: the weights, and the arguments that change answers."""
    fields = [name for name in VllmSettings.__struct_fields__ if name not in NOT_ANSWERING]
    given = {name: value for name in fields if (value := getattr(settings, name)) is not None}
    named = {key: value for key, value in name_all(given, settings.revision).items() if value}
    about = {"vllm": version, **given, **named, "max_model_len": longest}
    return f"vllm {msgspec.json.encode(about, order='sorted').decode()}"


BACKEND = Backend(
    open_vllm,
    "a model of vLLM in this process; likelihoods from prompt log-probabilities",
    ARGUMENTS,
    list_code=list_remote_code,
)
