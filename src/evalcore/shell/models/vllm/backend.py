"""A model of vLLM in this process: loading, chat template, and what names it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from evalcore.core.records.errors import EvalError, require
from evalcore.shell.models.breakdown import first_line
from evalcore.shell.models.checkpoint import list_remote_code, name_all, refuse_foreign_code
from evalcore.shell.models.model import Backend, Heard, Model, Notice, Question
from evalcore.shell.models.vllm.engine_settings import EngineLayout, EngineSettings
from evalcore.shell.models.vllm.vllm_settings import ARGUMENTS, WHERE, VllmSettings, read_settings
from evalcore.shell.prompts.turns import ChatTemplate

if TYPE_CHECKING:
    from evalcore.shell.models.vllm.vllm_work import VllmEngine

EXTRA = "vllm"
NOT_ANSWERING = frozenset({"batch_size", "max_batch_size", *EngineLayout.__struct_fields__})
"""Arguments that change no answer beyond its last digits."""


def open_vllm(given: Mapping[str, object]) -> Model:
    """Load the model that these arguments describe."""
    settings = read_settings(given)
    vllm = require("vllm", EXTRA)
    from evalcore.shell.models.decode import read_decoding
    from evalcore.shell.models.hf.hf_settings import HfSettings
    from evalcore.shell.models.hf.tokenizer import TextEncoder, find_template
    from evalcore.shell.models.vllm.vllm_work import VllmEngine

    adapter = _request_adapter(settings)
    try:
        if settings.trust_remote_code:
            _refuse_foreign(settings)
        llm = vllm.LLM(**_list_arguments(settings))
        tokenizer, longest = llm.get_tokenizer(), int(llm.llm_engine.model_config.max_model_len)
        begins = HfSettings(
            pretrained=settings.pretrained,
            add_bos_token=settings.add_bos_token,
            prefix_token_id=settings.prefix_token_id,
        )
        encoder, template = TextEncoder(tokenizer, begins), settings.chat_template or find_template(tokenizer)
        chat = _make_chat(template, tokenizer, settings)
    except EvalError:
        raise
    except Exception as wrong:  # vLLM, transformers and models may raise anything
        raise EvalError(f"vLLM cannot load {settings.pretrained}: {first_line(wrong)}{WHERE}") from wrong
    engine = VllmEngine(llm, vllm.SamplingParams, encoder, settings, longest, adapter)
    return Model(
        Path(settings.pretrained).name,
        _identify(settings, vllm.__version__, longest),
        partial(_ask_engine, engine),
        chat,
        warnings=settings.warnings,
        template=template,
        check=partial(read_decoding, max_gen_toks=settings.max_gen_toks, penalizes=True),
    )


def _list_arguments(settings: VllmSettings) -> dict[str, object]:
    """The arguments of ``vllm.LLM``; what is not given stays vLLM's own choice."""
    given: dict[str, object] = {
        **{name: getattr(settings, name) for name in EngineSettings.__struct_fields__},
        "model": settings.pretrained,
        "tokenizer_revision": settings.tokenizer_revision or (None if settings.tokenizer else settings.revision),
        "max_model_len": settings.max_model_len or settings.max_length,
        "max_num_seqs": settings.max_num_seqs or settings.max_batch_size,
        "enable_lora": True if settings.lora_local_path else None,
    }
    return {key: value for key, value in given.items() if value is not None}


def _refuse_foreign(settings: VllmSettings) -> None:
    """Refuse code of other repositories than those that are trusted; a tokenizer may have a revision of its own."""
    refuse_foreign_code((settings.pretrained,), WHERE, revision=settings.revision)
    if settings.tokenizer or settings.tokenizer_revision:
        source = settings.tokenizer or settings.pretrained
        refuse_foreign_code((source,), WHERE, revision=settings.tokenizer_revision)


def _request_adapter(settings: VllmSettings) -> object:
    """What asks vLLM for the adapter with each request: a name and a number that are its own, and the folder."""
    if settings.lora_local_path is None:
        return None
    folder = Path(settings.lora_local_path).expanduser()
    if not folder.is_dir():
        raise EvalError(f"expected a folder with an adapter as lora_local_path, got {folder}{WHERE}")
    return require("vllm.lora.request", EXTRA).LoRARequest("adapter", 1, str(folder))


def _ask_engine(engine: VllmEngine, questions: Sequence[Question]) -> Iterator[Heard | Notice]:
    from evalcore.shell.models.vllm.vllm_work import answer_questions

    return answer_questions(engine, questions)


def _make_chat(template: str | None, tokenizer: Any, settings: VllmSettings) -> ChatTemplate | None:
    if template is None:
        return None
    from evalcore.shell.models.chat import compile_chat

    return compile_chat(template, {**tokenizer.special_tokens_map, **settings.template_variables})


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
