"""A model of transformers is loaded: weights, tokenizer, chat template, and what names them all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from evalcore.core.records.errors import EvalError, require
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.shell.models.breakdown import first_line
from evalcore.shell.models.chat import compile_chat
from evalcore.shell.models.checkpoint import name_all, refuse_foreign_code
from evalcore.shell.models.decode import read_decoding
from evalcore.shell.models.hf.hf_processes import Processes
from evalcore.shell.models.hf.hf_settings import WHERE, HfSettings, read_settings
from evalcore.shell.models.hf.hf_work import HfEngine, answer_questions
from evalcore.shell.models.hf.network import EXTRA, Network, load_torch
from evalcore.shell.models.hf.plain import PlainBatches, Stretch, find_stretch
from evalcore.shell.models.hf.row_probe import PROBES, probe_rows
from evalcore.shell.models.hf.tokenizer import TextEncoder, find_template, read_speech, warn_of_config
from evalcore.shell.models.model import Ask, Model
from evalcore.shell.prompts.turns import ChatTemplate

POSITIONS = ("n_positions", "max_position_embeddings", "n_ctx")
UNLIMITED = 1e12
USUAL_LENGTH = 2048

NOT_ANSWERING = frozenset(
    {
        *("batch_size", "max_batch_size", "device", "parallelize", "device_map", "prefix_cache", "cache_tokens"),
        *("num_processes", "max_memory_per_gpu", "max_cpu_memory", "offload_folder"),
    }
)
"""Arguments that change no answer beyond its last digits."""


def open_hf(given: Mapping[str, object]) -> Model:
    """Load the model that these arguments describe."""
    settings = read_settings(given)
    torch, transformers = load_torch(), require("transformers", EXTRA)
    try:
        config, tokenizer = _load_tokenizer(transformers, settings)
        ask, warnings = _open_ask(torch, transformers, settings, config, tokenizer)
    except EvalError:
        raise
    except Exception as wrong:  # code of transformers, of tokenizers and of models, which may raise anything
        raise EvalError(f"transformers cannot load {settings.pretrained}: {first_line(wrong)}{WHERE}") from wrong
    template = settings.chat_template or find_template(tokenizer)
    return Model(
        Path(settings.pretrained).name,
        _identify(settings, config, torch, transformers),
        ask,
        _make_chat(template, tokenizer, settings),
        warnings=(*settings.warnings, *warnings),
        template=template,
        check=partial(read_decoding, max_gen_toks=settings.max_gen_toks, penalizes=True),
        whole=True,
        batches=FrozenDict({**settings.batches, "threads": torch.get_num_threads()}),
    )


def _open_ask(
    torch: Any, transformers: Any, settings: HfSettings, config: Any, tokenizer: Any
) -> tuple[Ask, tuple[str, ...]]:
    """Who answers: a model here, or one in each of several processes."""
    if settings.num_processes > 1:
        return Processes(settings, TextEncoder(tokenizer, settings)).ask, ()
    model = _load(torch, transformers, settings, config, tokenizer)
    engine, warnings = _build_engine(model, tokenizer, settings, encoder=_has_encoder(config, settings))
    return partial(answer_questions, engine), warnings


# --- loading --------------------------------------------------------------------------------------------------------


def _name_source(settings: HfSettings) -> tuple[dict[str, object], dict[str, object]]:
    """Where the files are, and the one of them that has the weights, where that is said."""
    there: dict[str, object] = {"revision": settings.revision, "trust_remote_code": settings.trust_remote_code}
    there |= {"subfolder": settings.subfolder} if settings.subfolder else {}
    return there, {"gguf_file": settings.gguf_file} if settings.gguf_file else {}


def _load_tokenizer(transformers: Any, settings: HfSettings) -> tuple[Any, Any]:
    transformers.utils.logging.disable_progress_bar()
    if settings.trust_remote_code:
        sources, pinned = (settings.pretrained, settings.tokenizer), {"revision": settings.revision}
        refuse_foreign_code(sources, WHERE, **pinned, subfolder=settings.subfolder)
        refuse_foreign_code((settings.delta,), WHERE, **pinned)
    there, own = _name_source(settings)
    config = transformers.AutoConfig.from_pretrained(settings.pretrained, **there, **own)
    fast = {} if settings.gguf_file and not settings.tokenizer else {"use_fast": settings.use_fast_tokenizer}
    begins = {} if settings.add_bos_token is None else {"add_bos_token": settings.add_bos_token}
    source = {} if settings.tokenizer else own
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        settings.tokenizer or settings.pretrained, **there, **source, **fast, **begins
    )
    return config, tokenizer


def _load(torch: Any, transformers: Any, settings: HfSettings, config: Any, tokenizer: Any) -> Any:
    there, own = _name_source(settings)
    made = transformers.AutoModelForSeq2SeqLM if _has_encoder(config, settings) else transformers.AutoModelForCausalLM
    spread = settings.spread or {"": settings.device or _find_device(torch)}
    how: dict[str, object] = {"dtype": _find_dtype(torch, settings.dtype), "device_map": spread}
    how |= _limit_memory(torch, settings) if settings.parallelize else {}
    how |= {"attn_implementation": settings.attn_implementation} if settings.attn_implementation else {}
    model = made.from_pretrained(settings.pretrained, **there, **own, **how)
    model = _change_weights(made, model, tokenizer, settings)
    if settings.mixed_precision_dtype:
        mixed = torch.autocast(model.device.type, dtype=_find_dtype(torch, settings.mixed_precision_dtype))
        model.forward = mixed(model.forward)
    return model.eval()


def _limit_memory(torch: Any, settings: HfSettings) -> dict[str, object]:
    """How much of each device a model may take that is spread over several."""
    each = settings.max_memory_per_gpu
    most: dict[object, object] = {} if each is None else dict.fromkeys(range(torch.cuda.device_count()), each)
    most |= {} if settings.max_cpu_memory is None else {"cpu": settings.max_cpu_memory}
    return {"offload_folder": settings.offload_folder, **({"max_memory": most} if most else {})}


def _change_weights(made: Any, model: Any, tokenizer: Any, settings: HfSettings) -> Any:
    """Add an adapter or a difference of weights."""
    if settings.peft:
        if model.config.get_text_config().vocab_size != len(tokenizer):
            model.resize_token_embeddings(len(tokenizer))
        return require("peft", "peft").PeftModel.from_pretrained(model, settings.peft, revision=settings.revision)
    if settings.delta:
        there = {"revision": settings.revision, "trust_remote_code": settings.trust_remote_code}
        _add_weights(model, made.from_pretrained(settings.delta, **there, dtype=model.dtype).state_dict(), settings)
    return model


def _add_weights(model: Any, added: Mapping[str, Any], settings: HfSettings) -> None:
    """Add a difference to weights, once to those that two layers share: they have two names and one place."""
    own = model.state_dict()
    if missing := next((name for name in own if name not in added), None):
        raise EvalError(f"{settings.delta} has no weights of {missing}{WHERE}")
    if away := next((name for name, weights in own.items() if weights.is_meta), None):
        raise EvalError(
            f"delta cannot be added to {away}, which was offloaded: it needs the whole model in memory{WHERE}"
        )
    for name in {weights.data_ptr(): name for name, weights in own.items()}.values():
        own[name].data += added[name].to(own[name].device)


def _has_encoder(config: Any, settings: HfSettings) -> bool:
    asked = {"causal": False, "seq2seq": True}
    return asked.get(settings.backend, bool(getattr(config, "is_encoder_decoder", False)))


def _find_dtype(torch: Any, name: str) -> object:
    found = name if name == "auto" else getattr(torch, name.removeprefix("torch."), None)
    if found != "auto" and not isinstance(found, torch.dtype):
        raise EvalError(f"expected a dtype such as float32 or bfloat16, got {name!r}{WHERE}")
    return found


def _find_device(torch: Any) -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


# --- what answers ---------------------------------------------------------------------------------------------------


def _build_engine(
    model: Any, tokenizer: Any, settings: HfSettings, *, encoder: bool
) -> tuple[HfEngine, tuple[str, ...]]:
    """An engine, and a warning where its tokens cannot be computed once."""
    network, texts = Network(model), TextEncoder(tokenizer, settings)
    speech = read_speech(model.generation_config, texts, settings.think_end_token)
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id or 0
    stretch = Stretch() if encoder else find_stretch(network.config)
    batches = PlainBatches(network, settings.batch, pad, stretch, encoder=encoder)
    longest = settings.max_length or _find_length(model.config, tokenizer)
    engine = HfEngine(network, texts, settings, longest, speech, batches)
    if encoder or not settings.prefix_cache:
        return engine, ()
    if longest > stretch.limit:
        told = f"positions are encoded by the length of the sequence if it is over {stretch.limit}"
        return engine, (f"prefix_cache has no effect: {told}; max_length: {stretch.limit} lets the tree be used",)
    probe = probe_rows(network, *(texts.encode(text, False) for text in PROBES))
    if not probe.fits:
        return engine, (f"prefix_cache has no effect: {probe.reason}",)
    return msgspec.structs.replace(engine, plain=None), warn_of_config(model.generation_config)


def _find_length(config: Any, tokenizer: Any) -> int:
    """How many positions a model has, as lm-eval finds it."""
    text = config.get_text_config()
    found = next((value for name in POSITIONS if (value := getattr(text, name, None)) is not None), None)
    named = getattr(tokenizer, "model_max_length", None)
    limit = found if found is not None else named if named and named < UNLIMITED else USUAL_LENGTH
    return int(limit)


def _make_chat(template: str | None, tokenizer: Any, settings: HfSettings) -> ChatTemplate | None:
    if template is None:
        return None
    variables = {**tokenizer.special_tokens_map, **settings.template_variables}
    return compile_chat(template, variables, settings.chat_date)


# --- who it is ------------------------------------------------------------------------------------------------------


def _identify(settings: HfSettings, config: Any, torch: Any, transformers: Any) -> str:
    """All that answers depend on: the weights, and the arguments that change answers."""
    given = {name: getattr(settings, name) for name in HfSettings.__struct_fields__ if name not in NOT_ANSWERING}
    given |= name_all(given, settings.revision, getattr(config, "_commit_hash", None))
    names = {key: value for key, value in given.items() if value is not None}
    about = {"torch": str(torch.__version__), "transformers": transformers.__version__, **names}
    return f"hf {msgspec.json.encode(about, order='sorted').decode()}"
