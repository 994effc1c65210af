"""Models by name: each is imported on first use.

model    Question, Heard, Model and Backend: what a model is
dummy    answers from a hash of the request
replay   recorded answers
llama/   a GGUF file in this process, by llama.cpp
openai/  servers with an OpenAI-compatible API
"""

from __future__ import annotations

from importlib import import_module

from pyrsistent import PMap, pmap

from evalcore.core.records.errors import EvalError, require_known
from evalcore.shell.models.model import Backend

__all__ = ["MODELS", "find_backend", "list_backends"]

MODELS: PMap[str, str | Backend] = pmap(
    {
        "replay": "evalcore.shell.models.replay:BACKEND",
        "dummy": "evalcore.shell.models.dummy:BACKEND",
        "llama": "evalcore.shell.models.llama.backend:BACKEND",
        "local-completions": "evalcore.shell.models.openai.backend:LOCAL_COMPLETIONS",
        "local-chat-completions": "evalcore.shell.models.openai.backend:LOCAL_CHAT_COMPLETIONS",
        "openai-completions": "evalcore.shell.models.openai.backend:OPENAI_COMPLETIONS",
        "openai-chat-completions": "evalcore.shell.models.openai.backend:OPENAI_CHAT_COMPLETIONS",
    }
)
"""The place of each backend. A host adds its own with ``.set(name, ...)``: a ``Backend``, or the place of one."""

SERVED = ("hf", "hf-auto", "huggingface", "vllm", "sglang", "hf-multimodal", "nemo_lm", "mamba_ssm", "openvino")


def find_backend(name: str, models: PMap[str, str | Backend] = MODELS) -> Backend:
    """Find the backend of this name.

    >>> find_backend("lama")
    Traceback (most recent call last):
    evalcore.EvalError: unknown model 'lama'; did you mean 'llama'? Known: dummy, llama, ...
    """
    if name in SERVED and name not in models:
        raise EvalError(
            f"model {name!r} is not embedded here: serve it (vllm serve, llama-server, ...) and use "
            "model: local-completions with model_args: {model: ..., base_url: http://localhost:8000/v1/completions}"
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


def list_backends(name: str | None = None, models: PMap[str, str | Backend] = MODELS) -> dict[str, Backend]:
    """List every backend by name, or one alone.

    >>> [key for key, _ in list_backends("replay")["replay"].arguments][:1]
    ['path']
    """
    return {known: find_backend(known, models) for known in ([name] if name else sorted(models))}
