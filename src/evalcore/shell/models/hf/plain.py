"""Batches without a prefix tree: encoder-decoders, and decoders whose attention takes no mask of ours."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from math import fsum
from typing import Any

from msgspec import Struct
from pyrsistent import PMap, pmap
from toolz import partition_all

from evalcore.core.prefixes import Tokens
from evalcore.core.records.request import Likelihood
from evalcore.shell.models.decode import Decoding, cut_text
from evalcore.shell.models.hf.continuation import GrownText, Prompt
from evalcore.shell.models.hf.network import Network
from evalcore.shell.models.hf.tokenizer import Speech
from evalcore.shell.models.hf.walk import TokenPair


class Stretch(Struct, frozen=True):
    """How positions are encoded by the length of the whole sequence, beyond a limit: ``each`` length in its own way,
    or all in one. It is the longest sequence of a call that counts.
    """

    limit: int = sys.maxsize
    each: bool = False

    def zone(self, length: int, further: int = 0) -> int:
        """What rows of a batch have in common so that each is encoded as if it were alone; they may grow further.

        >>> [Stretch(64).zone(length, 8) for length in (40, 56, 60, 65, 90)]
        [0, 0, 60, 65, 65]
        >>> [Stretch(64, each=True).zone(length) for length in (40, 64, 65, 90)]
        [0, 0, 65, 90]
        """
        if length + further <= self.limit:
            return 0
        return length if self.each or length <= self.limit else self.limit + 1


STRETCHES: PMap[str, tuple[str, bool]] = pmap(
    {
        "longrope": ("original_max_position_embeddings", False),
        "su": ("original_max_position_embeddings", False),
        "dynamic": ("max_position_embeddings", True),
    }
)
"""Types of rotary positions whose frequencies depend on the length: what their limit is called, and whether each
length has its own.
"""


def find_stretch(config: Any) -> Stretch:
    """How a model encodes positions; kinds of layers may have types of their own."""
    given = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    for one in (given, *given.values()):
        kind = str(one.get("rope_type", one.get("type"))) if isinstance(one, Mapping) else ""
        if kind in STRETCHES:
            limit, each = STRETCHES[kind]
            return Stretch(int(one.get(limit) or getattr(config, limit)), each)
    return Stretch()


class PlainBatches:
    """Requests of like length in batches, padded to the longest."""

    def __init__(self, network: Network, size: int, pad: int, stretch: Stretch, *, encoder: bool) -> None:
        self.network, self.size, self.pad, self.stretch, self.encoder = network, size, pad, stretch, encoder

    def score(self, pairs: Sequence[TokenPair], open: Sequence[int]) -> Iterator[list[tuple[int, Likelihood]]]:
        """Yield the pairs of each batch with their likelihoods; batches are made of all, and asked if one is open."""
        rows, wanted = [pair.sequence for pair in pairs], frozenset(open)
        for ats in _batch_rows(rows, self.size, wanted, self.stretch.zone):
            some = [pairs[at] for at in ats]
            with self.network.torch.inference_mode():
                logits = self._call(some)
            made = zip(ats, map(self._close, some, logits), strict=True)
            yield [(at, one) for at, one in made if at in wanted]

    def _call(self, pairs: Sequence[TokenPair]) -> Any:
        model = self.network.model
        if not self.encoder:
            rows, _ = self._pad([pair.sequence for pair in pairs])
            self.network.evaluated += rows.numel()
            self._reset()
            return model(rows).logits[:, -rows.shape[1] :]  # an adapter may put tokens of its own before
        rows, mask = self._pad([pair.context for pair in pairs])
        labels, _ = self._pad([pair.continuation for pair in pairs])
        self.network.evaluated += rows.numel() + labels.numel()
        return model(input_ids=rows, attention_mask=mask, labels=labels).logits

    def _close(self, pair: TokenPair, logits: Any) -> Likelihood:
        start = 0 if self.encoder else pair.start
        places = range(start, start + len(pair.continuation))
        scored = self.network.score(logits, places, pair.continuation)
        return Likelihood(fsum(scored.values.tolist()), bool(scored.greedy.all()), len(pair.continuation))

    def generate(
        self, prompts: Sequence[Prompt], how: Decoding, speech: Speech, open: Sequence[int]
    ) -> Iterator[list[tuple[int, GrownText]]]:
        """Yield the replies of each batch; draws are made one by one, so that each has its own seed."""
        rows, wanted = [prompt.tokens for prompt in prompts], frozenset(open)
        zone = partial(self.stretch.zone, further=how.max_gen_toks)
        for ats in _batch_rows(rows, self.size if how.temperature == 0.0 else 1, wanted, zone):
            made = self._generate([prompts[at] for at in ats], how, speech)
            yield [(at, one) for at, one in zip(ats, made, strict=True) if at in wanted]

    def _generate(self, prompts: Sequence[Prompt], how: Decoding, speech: Speech) -> list[GrownText]:
        network = self.network
        rows, mask = self._pad([prompt.tokens for prompt in prompts], left=not self.encoder)
        start = 1 if self.encoder else rows.shape[1]
        network.evaluated += rows.numel()
        self._reset()
        network.torch.manual_seed(prompts[0].seed % 2**63)
        chosen: dict[str, object] = {"do_sample": False}
        if how.temperature:
            chosen = {"do_sample": True, "temperature": how.temperature, "top_p": how.top_p, "top_k": how.top_k}
            chosen |= {"min_p": how.min_p} if how.min_p else {}
        chosen |= {} if how.repetition_penalty is None else {"repetition_penalty": how.repetition_penalty}

        def ended(made: Any, scores: object, **more: object) -> Any:
            cut = [end_text(row[start:].tolist(), how, speech) is not None for row in made]
            return network.torch.tensor(cut, device=network.device)

        with network.torch.inference_mode():
            made = network.model.generate(
                rows,
                attention_mask=mask,
                max_new_tokens=how.max_gen_toks,
                pad_token_id=self.pad,
                stopping_criteria=[ended],
                **chosen,
            )
        replies = [row[start:].tolist() for row in made]
        return [end_text(row, how, speech) or GrownText(speech.decode(row), "length", len(row)) for row in replies]

    def _reset(self) -> None:
        """Let the model forget what length it encoded before: transformers does so at a short sequence."""
        if self.stretch.each:
            with self.network.torch.inference_mode():
                self.network.model(self._pad([(self.pad,)])[0])

    def _pad(self, rows: Sequence[Tokens], *, left: bool = False) -> tuple[Any, Any]:
        """Rows of equal length, and which of their tokens are real."""
        torch, longest = self.network.torch, max(map(len, rows))
        gaps = [longest - len(row) for row in rows]
        filled = [
            [self.pad] * gap * left + [*row] + [self.pad] * gap * (not left)
            for row, gap in zip(rows, gaps, strict=True)
        ]
        real = [[0] * gap * left + [1] * len(row) + [0] * gap * (not left) for row, gap in zip(rows, gaps, strict=True)]
        return torch.tensor(filled, device=self.network.device), torch.tensor(real, device=self.network.device)


def _batch_rows(
    rows: Sequence[Tokens], size: int, wanted: frozenset[int], zone: Callable[[int], int]
) -> Iterator[tuple[int, ...]]:
    """Rows of like length and one zone, the longest first; batches in which none is wanted are left out."""
    order = sorted(range(len(rows)), key=lambda at: (-len(rows[at]), rows[at]))
    zones = (group for _, group in groupby(order, lambda at: zone(len(rows[at]))))
    return (ats for group in zones for ats in partition_all(size, group) if not wanted.isdisjoint(ats))


def end_text(tokens: Sequence[int], how: Decoding, speech: Speech) -> GrownText | None:
    """The reply that ends within these tokens, None if it does not."""
    end = next((at for at, token in enumerate(tokens) if token in speech.ends), len(tokens))
    text = speech.decode(tokens[:end])
    short = cut_text(text, how.until)
    return GrownText(short, "stop", end) if end < len(tokens) or short != text else None
