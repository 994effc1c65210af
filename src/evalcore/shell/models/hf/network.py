"""A model of transformers in this process: rows of tokens evaluated after a prefix that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from evalcore.core.records.errors import require

Seen = NDArray[np.bool_]
EXTRA = "transformers"
FULL, SLIDING = "full_attention", "sliding_attention"
"""Kinds of layers, as configs of transformers name them; a model with others is not asked in packed rows."""

BLOCK = 512
"""The most tokens of one sequence in a call: logits of all of them are in memory at once."""

ROOM = 128
"""The least room for further tokens that a cache gets when it has to grow."""


def load_torch() -> ModuleType:
    return require("torch", EXTRA)


class State(Struct, frozen=True):
    """Tokens that were evaluated: keys and values of every layer (1 x heads x tokens x width), and their depths."""

    layers: tuple[tuple[Any, Any], ...]
    depths: tuple[int, ...]


class KeptTokens:
    """A cache of transformers that grows call by call and can be cut back, with the depths of its tokens."""

    def __init__(self, cache: Any) -> None:
        self.cache, self.depths = cache, list[int]()

    def rewind(self, count: int) -> None:
        """Keep so many tokens; the room of the others is used again."""
        if count < len(self.depths):
            del self.depths[count:]
            for layer in self.cache.layers:
                layer.rewind(count)

    def read(self, start: int) -> State:
        """Copy what is kept from a token on."""
        layers = tuple((one.keys[..., start:, :].clone(), one.values[..., start:, :].clone()) for one in self.layers)
        return State(layers, tuple(self.depths[start:]))

    @property
    def layers(self) -> list[Any]:
        """The layers that have keys of their own; others use those of an earlier one."""
        return [layer for layer in self.cache.layers if layer.is_initialized]


class TokenScores(Struct, frozen=True):
    """Log-probabilities of wanted tokens, and whether each was the most likely."""

    values: NDArray[np.float64]
    greedy: Seen


class Network:
    """A decoder in evaluation mode; counts the tokens of requests that it evaluates, not those of replies."""

    def __init__(self, model: Any) -> None:
        self.model, self.torch = model, load_torch()
        self.caches = require("transformers.cache_utils", EXTRA)
        self.layer = make_roomy(self.caches.DynamicLayer)
        self.device, self.evaluated = model.device, 0
        config = model.config.get_text_config()
        self.config, self.kinds = config, tuple(sorted(set(getattr(config, "layer_types", None) or ())))

    # --- one call ---------------------------------------------------------------------------------------------------

    def call(
        self, kept: KeptTokens, tokens: Sequence[int], depths: Sequence[int], seen: Seen, keep: Sequence[int]
    ) -> Any:
        """Evaluate one row of tokens, each at its depth and seeing what ``seen`` says; the logits of ``keep``.

        What is kept is the prefix, and grows by the row.
        """
        torch = self.torch
        self.evaluated += len(tokens)
        kept.depths += depths
        with torch.inference_mode():
            return self.model(
                input_ids=torch.tensor([list(tokens)], device=self.device),
                position_ids=torch.tensor([list(depths)], device=self.device),
                attention_mask=self._mask(seen, kept.depths, depths),
                past_key_values=kept.cache,
                use_cache=True,
                logits_to_keep=torch.tensor(list(keep), dtype=torch.long, device=self.device),
            ).logits[0]

    def _mask(self, seen: Seen, below: Sequence[int], depths: Sequence[int]) -> Any:
        """What each kind of layer lets a token see: all, or what is nearer in depth than the window."""
        window = getattr(self.config, "sliding_window", None)
        near = seen
        if window is not None:
            near = seen & (np.asarray(depths)[:, None] - np.asarray(below)[None, :] < window)
        made = {FULL: seen, SLIDING: near}
        if self.kinds:
            return {kind: self._tensor(made[kind]) for kind in self.kinds}
        return self._tensor(near)

    def _tensor(self, seen: Seen) -> Any:
        made = self.torch.from_numpy(seen).to(self.device)[None, None]
        if getattr(self.config, "_attn_implementation", None) != "eager":
            return made
        dtype = self.model.dtype  # eager attention adds its mask to the scores
        return self.torch.zeros(made.shape, dtype=dtype, device=self.device).masked_fill(
            ~made, self.torch.finfo(dtype).min
        )

    def open(self) -> KeptTokens:
        """Begin with nothing."""
        return KeptTokens(self.caches.Cache(layer_class_to_replicate=self.layer))

    def join(self, states: Sequence[State]) -> KeptTokens:
        """Begin with what was evaluated in several places, one after the other."""
        kept = self.open()
        with self.torch.inference_mode():
            for at, parts in enumerate(zip(*(state.layers for state in states), strict=True)):
                kept.cache.update(*(self.torch.cat(some, -2) for some in zip(*parts, strict=True)), at)
        kept.depths += [depth for state in states for depth in state.depths]
        return kept

    def select(self, kept: KeptTokens, used: Seen) -> KeptTokens:
        """Begin with some of the tokens that are kept; the memory of the others becomes free."""
        places = self.torch.from_numpy(np.flatnonzero(used))
        with self.torch.inference_mode():
            layers = tuple(
                (one.keys.index_select(-2, places.to(one.device)), one.values.index_select(-2, places.to(one.device)))
                for one in kept.layers
            )
        return self.join([State(layers, tuple(np.asarray(kept.depths)[used].tolist()))])

    # --- scores -----------------------------------------------------------------------------------------------------

    def score(self, logits: Any, rows: Sequence[int], wanted: Sequence[int]) -> TokenScores:
        """Score wanted tokens, each by a row of logits."""
        torch = self.torch
        with torch.inference_mode():
            exact = logits.float()
            sums, best = torch.logsumexp(exact, -1), exact.argmax(-1)
            at = torch.tensor(list(rows), dtype=torch.long, device=self.device)
            tokens = torch.tensor(list(wanted), dtype=torch.long, device=self.device)
            values = exact[at, tokens] - sums[at]
            return TokenScores(values.double().cpu().numpy(), (best[at] == tokens).cpu().numpy())


def see_chain(kept: int, count: int) -> Seen:
    """What the tokens of one sequence see: all of the prefix, and themselves up to each.

    >>> see_chain(1, 2).astype(int).tolist()
    [[1, 1, 0], [1, 1, 1]]
    """
    return np.tri(count, kept + count, kept, dtype=np.bool_)


def make_roomy(base: Any) -> Any:
    """A layer of a cache with room for more tokens, so that those it has are not copied when it grows."""

    class RoomyLayer(base):  # type: ignore[misc]
        def update(self, keys: Any, values: Any, *args: object, **more: object) -> tuple[Any, Any]:
            if not self.is_initialized:
                self.lazy_initialization(keys, values)
                self.keys, self.values = (one[..., :0, :] for one in (keys, values))
                self.buffers = (self.keys, self.values)
            used, end = self.keys.shape[-2], self.keys.shape[-2] + keys.shape[-2]
            self.buffers = tuple(_add_room(one, used, end) for one in self.buffers)
            for buffer, new in zip(self.buffers, (keys, values), strict=True):
                buffer[..., used:end, :] = new
            self.rewind(end)
            return self.keys, self.values

        def rewind(self, count: int) -> None:
            if self.is_initialized:
                self.keys, self.values = (buffer[..., :count, :] for buffer in self.buffers)

    return RoomyLayer


def _add_room(buffer: Any, used: int, end: int) -> Any:
    """Room for so many tokens and some more; those in use are copied only if there is too little."""
    if end <= buffer.shape[-2]:
        return buffer
    roomy = buffer.new_empty((*buffer.shape[:-2], end + max(end // 4, ROOM), buffer.shape[-1]))
    roomy[..., :used, :] = buffer[..., :used, :]
    return roomy
