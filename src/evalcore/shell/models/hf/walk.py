"""Likelihoods by a walk of the prefix tree, depth first: each token is evaluated once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import fsum
from typing import Any

from msgspec import Struct

from evalcore.core.prefixes import (
    PrefixTree,
    Sizes,
    Tokens,
    Trunk,
    Twig,
    group_places,
    grow_tree,
    mask_packed,
    pack_twig,
)
from evalcore.core.records.request import Likelihood
from evalcore.shell.models.hf.network import BLOCK, KeptTokens, Network, see_chain


class TokenPair(Struct, frozen=True):
    """A context and its continuation."""

    context: Tokens
    continuation: Tokens

    @property
    def sequence(self) -> Tokens:
        """What a model must evaluate: the last token predicts nothing."""
        return (self.context + self.continuation)[:-1]

    @property
    def start(self) -> int:
        """The position that predicts the first token of the continuation."""
        return len(self.context) - 1


Want = tuple[int, int, int]
"""A position whose logits are wanted, the pair, and the token."""


class Walk:
    """Walks a tree and settles pairs. Calls in which none is ``open`` are left out; the others are always the same."""

    def __init__(self, network: Network, pairs: Sequence[TokenPair], sizes: Sizes, open: Collection[int]) -> None:
        self.network, self.pairs, self.open = network, pairs, frozenset(open)
        self.tree: PrefixTree = grow_tree([pair.sequence for pair in pairs], sizes)
        self.members = group_places(self.tree)
        self.values: dict[int, list[float]] = {at: [] for at in range(len(pairs))}
        self.greedy: dict[int, bool] = dict.fromkeys(range(len(pairs)), True)

    def __iter__(self) -> Iterator[list[tuple[int, Likelihood]]]:
        """Yield the pairs that each call completes, with their likelihoods."""
        kept = self.network.open()
        for branch in self.tree.roots:
            yield from self._visit(branch, kept)

    def _visit(self, branch: Trunk | Twig, kept: KeptTokens) -> Iterator[list[tuple[int, Likelihood]]]:
        members = [at for group in self.members[branch.first : branch.last] for at in group]
        if self.open.isdisjoint(members):
            return
        kept.rewind(branch.start)
        if isinstance(branch, Twig):
            self._settle_twig(branch, kept)
            yield [(at, self._close(at)) for at in members if at in self.open]
            return
        tokens = self.tree.sequences[branch.first][branch.start : branch.stop]
        self._settle_chain(kept, tokens, branch.start, range(branch.first, branch.last))
        for below in branch.below:
            yield from self._visit(below, kept)

    def _settle_twig(self, twig: Twig, kept: KeptTokens) -> None:
        if twig.last - twig.first == 1:
            self._settle_chain(kept, self.tree.sequences[twig.first][twig.start :], twig.start, [twig.first])
            return
        packed = pack_twig(self.tree, twig)
        wants = [
            (path[place], at, token)
            for one, path in zip(range(twig.first, twig.last), packed.paths, strict=True)
            for at in self.members[one]
            for place, token in enumerate(self._tokens_from(at, twig.start), self._offset(at, twig.start))
        ]
        self._score(kept, packed.tokens, packed.depths, mask_packed(packed, twig.start), wants)

    def _settle_chain(self, kept: KeptTokens, tokens: Tokens, start: int, sequences: Collection[int]) -> None:
        """Evaluate consecutive tokens, block by block, and settle what they predict in all of these sequences."""
        for begin in range(start, start + len(tokens), BLOCK):
            block = tokens[begin - start : begin - start + BLOCK]
            end = begin + len(block)
            wants = [
                (place, at, token)
                for one in sequences
                for at in self.members[one]
                for place, token in enumerate(self._tokens_from(at, begin), self._offset(at, begin))
                if place < end - begin
            ]
            self._score(kept, block, range(begin, end), see_chain(begin, len(block)), wants)

    def _offset(self, at: int, depth: int) -> int:
        """How far after a depth the first position is that predicts a token of a pair."""
        return max(self.pairs[at].start - depth, 0)

    def _tokens_from(self, at: int, depth: int) -> Tokens:
        """The tokens of a pair that positions from a depth on predict."""
        pair = self.pairs[at]
        return pair.continuation[max(depth - pair.start, 0) :]

    def _score(self, kept: KeptTokens, tokens: Tokens, depths: Sequence[int], seen: Any, wants: Sequence[Want]) -> None:
        keep = sorted({place for place, _, _ in wants})
        row = {place: at for at, place in enumerate(keep)}
        logits = self.network.call(kept, tokens, depths, seen, keep or [len(tokens) - 1])
        if not wants:
            return
        scored = self.network.score(logits, [row[place] for place, _, _ in wants], [token for _, _, token in wants])
        for (_, at, _), value, greedy in zip(wants, scored.values.tolist(), scored.greedy.tolist(), strict=True):
            self.values[at].append(value)
            self.greedy[at] &= greedy

    def _close(self, at: int) -> Likelihood:
        return Likelihood(fsum(self.values.pop(at)), self.greedy[at], len(self.pairs[at].continuation))
