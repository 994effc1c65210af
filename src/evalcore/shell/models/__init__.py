"""Models by name: each is imported on first use.

model    Question, Heard, Model and Backend: what a model is
model_args  what the arguments of hf and vllm have in common
breakdown  what a library raises, as a sentence
dummy    answers from a hash of the request
replay   recorded answers
decode   logits to log-likelihoods and next tokens
chat     the chat template of a model, in the sandbox
checkpoint  weights in a folder or on the hub: their name, and their code
token_pair  texts to contexts and continuations in tokens
hf/      a model of transformers in this process
vllm/    a model of vLLM in this process
llama/   a GGUF file in this process, by llama.cpp
openai/  servers with an OpenAI-compatible API
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from pyrsistent import PMap, pmap

from evalcore.core.records.errors import EvalError, require_known
from evalcore.shell.models.model import Backend, Model

__all__ = ["BESIDE", "MODELS", "add_arguments", "find_backend", "list_backends", "open_backend"]

MODELS: PMap[str, str | Backend] = pmap(
    {
        "replay": "evalcore.shell.models.replay:BACKEND",
        "dummy": "evalcore.shell.models.dummy:BACKEND",
        "hf": "evalcore.shell.models.hf.backend:BACKEND",
        "llama": "evalcore.shell.models.llama.backend:BACKEND",
        "hf-auto": "evalcore.shell.models.hf.backend:BACKEND",
        "huggingface": "evalcore.shell.models.hf.backend:BACKEND",
        "vllm": "evalcore.shell.models.vllm.backend:BACKEND",
        "local-completions": "evalcore.shell.models.openai.backend:LOCAL_COMPLETIONS",
        "local-chat-completions": "evalcore.shell.models.openai.backend:LOCAL_CHAT_COMPLETIONS",
        "openai-completions": "evalcore.shell.models.openai.backend:OPENAI_COMPLETIONS",
        "openai-chat-completions": "evalcore.shell.models.openai.backend:OPENAI_CHAT_COMPLETIONS",
    }
)
"""The place of each backend. A host adds its own with ``.set(name, ...)``: a ``Backend``, or the place of one."""

SERVED = ("sglang", "hf-multimodal", "nemo_lm", "mamba_ssm", "openvino")


def find_backend(name: str, models: PMap[str, str | Backend] = MODELS) -> Backend:
    """Find the backend of this name.

    >>> find_backend("lama")
    Traceback (most recent call last):
    evalcore.EvalError: unknown model 'lama'; did you mean 'llama'? Known: dummy, hf, ...
    """
    if name in SERVED and name not in models:
        raise EvalError(
            f"model {name!r} is not embedded here: use model: hf or model: vllm, or serve it (sglang) and use model: "
            "local-completions with model_args: {model: ..., base_url: http://localhost:8000/v1/completions}; "
            "llama-server gives texts, but no likelihoods of prompts"
        )
    require_known("model", [name], models)
    found = models[name]
    if isinstance(found, Backend):
        return found
    module, _, attribute = found.partition(":")
    backend = getattr(import_module(module), attribute)
    if not isinstance(backend, Backend):
        raise EvalError(f"expected a Backend at {found}, got {type(backend).__name__}")
    return backend


BESIDE = ("batch_size", "max_batch_size", "device")
"""Keys of a run that are arguments of its model, as lm-eval's flags are."""

IDLE = "each model sorts and groups its own requests, on the device that it has"


def add_arguments(
    backend: Backend, arguments: Mapping[str, object], more: Mapping[str, object]
) -> tuple[dict[str, object], tuple[str, ...]]:
    """Add what stands beside model_args where the backend takes it; warn of what it does not take.

    >>> made, warnings = add_arguments(find_backend("hf"), {"pretrained": "m"}, {"batch_size": "8"})
    >>> made, warnings
    ({'pretrained': 'm', 'batch_size': '8'}, ())
    >>> add_arguments(find_backend("dummy"), {}, {"device": "cuda"})[1][0][:20]
    'device has no effect'
    """
    taken = {name for name, _ in backend.arguments}
    doubled = [name for name in more if name in taken and arguments.get(name, more[name]) != more[name]]
    if doubled:
        both = " and ".join(repr(one[doubled[0]]) for one in (more, arguments))
        raise EvalError(f"expected one {doubled[0]}, got {both} - at {doubled[0]} and at model_args")
    warnings = tuple(f"{name} has no effect: {IDLE}" for name in more if name not in taken)
    return {**arguments, **{name: value for name, value in more.items() if name in taken}}, warnings


def open_backend(backend: Backend, arguments: Mapping[str, object], *, unread: bool = False) -> Model:
    """Open a model; an error about unknown arguments says how to leave out those of a config."""
    opened = backend.identify if unread and backend.identify is not None else backend.open
    try:
        return opened(arguments)
    except EvalError as wrong:
        strangers = arguments.keys() - {name for name, _ in backend.arguments}
        if not strangers or type(wrong) is not EvalError:
            raise
        hint = "a flag replaces the model_args of a config: --model_args '' leaves them out"
        raise EvalError(f"{wrong}; {hint}") from wrong


def list_backends(name: str | None = None, models: PMap[str, str | Backend] = MODELS) -> dict[str, Backend]:
    """List every backend by name, or one alone.

    >>> [key for key, _ in list_backends("replay")["replay"].arguments][:1]
    ['path']
    """
    return {known: find_backend(known, models) for known in ([name] if name else sorted(models))}
