"""llama.cpp through the bindings of llama-cpp-python: weights, a tokenizer, and a cache of what was evaluated."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from evalcore.core.prefixes import Tokens
from evalcore.core.records.errors import EvalError, MissingExtra, require
from evalcore.shell.models.llama.tokens import TokenBlock, count_shared

Logits = NDArray[np.float32]

ATTENTION_AS_WRITTEN = 0
"""Flash attention off: on a CPU it sums in half precision, and its bits depend on how calls split the tokens."""


def load_binding() -> ModuleType:
    """Load llama-cpp-python; if it is missing, say how to install it."""
    try:
        return require("llama_cpp", "llama")
    except MissingExtra:
        raise
    except (OSError, RuntimeError) as broken:  # installed, but its shared library fails to load
        raise EvalError(f"llama-cpp-python cannot be loaded: {broken}") from broken


@lru_cache(1)
def _silence_library(binding: ModuleType) -> object:
    """Stop llama.cpp from writing to the terminal. The callback must live as long as the library."""
    hush = binding.llama_log_callback(lambda level, text, user: None)
    binding.llama_log_set(hush, ctypes.c_void_p(0))
    return hush


class Weights:
    """A loaded model and one sequence in its cache; counts the tokens that it evaluates. For one thread only."""

    def __init__(self, path: Path, *, n_ctx: int, n_batch: int, n_threads: int, n_gpu_layers: int) -> None:
        self._lib = lib = load_binding()
        _silence_library(lib)
        lib.llama_backend_init()
        wanted = lib.llama_model_default_params()
        wanted.n_gpu_layers = n_gpu_layers
        model = lib.llama_model_load_from_file(str(path).encode(), wanted)
        if not model:
            raise EvalError(f"llama.cpp cannot read the model in {path}: expected a GGUF file of a language model")
        weakref.finalize(self, lib.llama_model_free, model)
        self._vocab = lib.llama_model_get_vocab(model)
        self.metadata = _read_metadata(lib, model)
        self.n_vocab = int(lib.llama_vocab_n_tokens(self._vocab))
        self.n_ctx = self._fit_context(path, n_ctx, int(lib.llama_model_n_ctx_train(model)))
        if lib.llama_model_has_encoder(model):
            raise EvalError(f"expected a decoder-only model, got one with an encoder in {path}")
        shape = lib.llama_context_default_params()
        shape.n_ctx, shape.n_batch, shape.n_ubatch = self.n_ctx + 1, n_batch + 1, n_batch + 1
        shape.n_threads = shape.n_threads_batch = n_threads
        shape.flash_attn_type = ATTENTION_AS_WRITTEN
        self._context = lib.llama_init_from_model(model, shape)
        if not self._context:
            raise EvalError(f"llama.cpp cannot make a context of n_ctx = {self.n_ctx} tokens: is there memory for it?")
        weakref.finalize(self, lib.llama_free, self._context)
        self._room = n_batch + 1
        self._batch = lib.llama_batch_init(self._room, 0, 1)
        weakref.finalize(self, lib.llama_batch_free, self._batch)
        self._held: list[TokenBlock] = []
        self.evaluated = 0
        self._row: Logits = np.empty(0, np.float32)
        self._row_at = 0

    @staticmethod
    def _fit_context(path: Path, asked: int, trained: int) -> int:
        if asked > trained > 0:
            raise EvalError(f"expected n_ctx of at most {trained}, what {path.name} was trained for, got {asked}")
        return asked or trained

    # --- tokens -------------------------------------------------------------------------------------------------

    @property
    def bos(self) -> int:
        return int(self._lib.llama_vocab_bos(self._vocab))

    @property
    def eos(self) -> int:
        return int(self._lib.llama_vocab_eos(self._vocab))

    @property
    def adds_bos(self) -> bool:
        return bool(self._lib.llama_vocab_get_add_bos(self._vocab)) and self.bos >= 0

    def text_of(self, token: int) -> str:
        """Get a token as the vocabulary writes it; an empty text for no token."""
        return "" if token < 0 else bytes(self._lib.llama_vocab_get_text(self._vocab, token)).decode("utf-8", "replace")

    def ends(self, token: int) -> bool:
        return bool(self._lib.llama_vocab_is_eog(self._vocab, token))

    def tokenize(self, text: str) -> Tokens:
        """Tokenize a text; special tokens only where the text spells them."""
        raw = text.encode("utf-8", "replace")
        buffer = (self._lib.llama_token * (len(raw) + 8))()
        count = self._lib.llama_tokenize(self._vocab, raw, len(raw), buffer, len(buffer), False, True)
        if count < 0:
            raise EvalError(f"llama.cpp cannot tokenize a text of {len(raw)} bytes")
        return tuple(buffer[:count])

    def piece(self, token: int) -> bytes:
        """Get the bytes that a token adds to a text; special tokens add none."""
        room = 64
        while True:
            buffer = ctypes.create_string_buffer(room)
            size = self._lib.llama_token_to_piece(self._vocab, token, buffer, room, 0, False)
            if size >= 0:
                return buffer.raw[:size]
            room = -size

    # --- evaluation -----------------------------------------------------------------------------------------------

    def reach(self, blocks: Sequence[TokenBlock]) -> Logits:
        """Get the logits after a context, evaluated from where the cache leaves off.

        A block is reused if it and all before it were evaluated as exactly these blocks; then it holds what evaluating
        it again would give.
        """
        shared = count_shared(self._held, blocks)
        if shared == len(blocks) != self._row_at:
            shared -= 1
        start = sum(len(block.tokens) for block in self._held[:shared])
        memory = self._lib.llama_get_memory(self._context)
        if shared == 0 or not self._lib.llama_memory_seq_rm(memory, 0, start, -1):
            self._lib.llama_memory_clear(memory, False)  # also for models whose state cannot be rewound
            shared = 0
        self._held = self._held[:shared]
        for block in blocks[shared:]:
            for row in self.push(block):
                self._row, self._row_at = row.copy(), len(self._held)
        return self._row

    def push(self, block: TokenBlock) -> Logits:
        """Evaluate a block after the cached ones. The rows are llama.cpp's own: they are valid until the next call."""
        start, n = sum(len(one.tokens) for one in self._held), len(block.tokens)
        if n > self._room or start + n > self.n_ctx + 1:
            raise EvalError(f"expected at most {self._room} tokens a call and {self.n_ctx} in all, got {n} at {start}")
        batch = self._batch
        batch.n_tokens = n
        for i, token in enumerate(block.tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, start + i, 1
            batch.seq_id[i][0], batch.logits[i] = 0, i >= n - block.rows
        if code := self._lib.llama_decode(self._context, batch):
            self._held = []
            raise EvalError(f"llama.cpp cannot evaluate {n} tokens at position {start}: code {code}")
        self._held.append(block)
        self.evaluated += n
        if not block.rows:
            return np.empty((0, self.n_vocab), np.float32)
        logits = self._lib.llama_get_logits(self._context)
        rows: Logits = np.ctypeslib.as_array(logits, shape=(block.rows, self.n_vocab))
        return rows


def _read_metadata(lib: ModuleType, model: object) -> dict[str, str]:
    """Read the texts in a GGUF file's header: names, sizes, the chat template."""

    def read(function: str, index: int) -> str:
        room = 256
        while True:
            buffer = ctypes.create_string_buffer(room)
            size = getattr(lib, function)(model, index, buffer, room)
            if size < room:
                return buffer.value.decode("utf-8", "replace")
            room = size + 1

    count = int(lib.llama_model_meta_count(model))
    return {
        read("llama_model_meta_key_by_index", i): read("llama_model_meta_val_str_by_index", i) for i in range(count)
    }
