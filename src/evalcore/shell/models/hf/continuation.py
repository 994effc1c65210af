"""Texts by a walk of the prefix tree: prompts are evaluated once, then all replies of a twig grow together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
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
from evalcore.shell.models.decode import Decoding, choose_token, cut_text
from evalcore.shell.models.hf.network import BLOCK, KeptTokens, Network, Seen, State, see_chain
from evalcore.shell.models.hf.tokenizer import Speech

MOST_IN_PLACE = 4
"""At most so many replies grow in place of one: a call reads, masked, the tokens of all others for each of them."""


class Prompt(Struct, frozen=True):
    """A prompt in tokens, and the seed of its draws."""

    tokens: Tokens
    seed: int


class GrownText(Struct, frozen=True):
    """A reply: its text, why it ended, and its number of tokens."""

    text: str
    finish: str
    tokens: int


class GrowingText:
    """A reply that grows."""

    def __init__(self, prompt: Prompt, how: Decoding, speech: Speech) -> None:
        self.how, self.speech = how, speech
        self.penalty = speech.penalty if how.repetition_penalty is None else how.repetition_penalty
        self.draw = np.random.default_rng(prompt.seed)
        self.before, self.tokens = prompt.tokens, list[int]()
        self.done: GrownText | None = None
        self.reach = 4 * max(map(len, how.until), default=0) + 16  # tokens: one may be a byte of a letter, or nothing

    def take(self, logits: Any, best: int) -> int:
        """Take the next token, and see whether the reply ends with it."""
        if self.penalty != 1.0:
            logits = self._penalize(logits)
            best = int(logits.argmax())
        token = best if self.how.temperature == 0.0 else choose_token(logits.float().cpu().numpy(), self.how, self.draw)
        if token in self.speech.ends:
            self.done = self._end("stop")
            return token
        self.tokens.append(token)
        if len(self.tokens) >= self.how.max_gen_toks:
            self.done = self._end("length")
        elif any(stop in self.speech.decode(self.tokens[-self.reach :]) for stop in self.how.until if stop):
            ended = self._end("length")
            self.done = ended if ended.finish == "stop" else None
        return token

    def _penalize(self, logits: Any) -> Any:
        """Logits as transformers changes them by a ``repetition_penalty``: in float32, whatever the weights are."""
        made, seen = logits.float().clone(), list({*self.before, *self.tokens})
        some = made[seen]
        made[seen] = some.where(some > 0, some * self.penalty).where(some <= 0, some / self.penalty)
        return made

    def _end(self, finish: str) -> GrownText:
        """The reply as it is now; one that a stop string cuts was stopped by it."""
        text = self.speech.decode(self.tokens)
        short = cut_text(text, self.how.until)
        return GrownText(short, finish if short == text else "stop", len(self.tokens))


class ReadyPrompt(NamedTuple):
    """A prompt that was evaluated: its number in the order of the tree, which one it is, the logits of its first
    token, and its tokens, in parts: what was evaluated together, and the places in it.
    """

    number: int
    at: int
    logits: Any
    parts: tuple[tuple[State, Sequence[int]], ...]


class Growth:
    """Walks the tree of prompts; neighbours in it grow together, in the memory of ``most`` whole replies."""

    def __init__(
        self,
        network: Network,
        prompts: Sequence[Prompt],
        how: Decoding,
        speech: Speech,
        sizes: Sizes,
        most: int,
        open: Collection[int],
    ) -> None:
        self.network, self.prompts, self.how, self.speech = network, prompts, how, speech
        self.tree: PrefixTree = grow_tree([prompt.tokens for prompt in prompts], sizes)
        self.members, self.open = group_places(self.tree), frozenset(open)
        self.begins = [0, *accumulate(map(len, self.members))]
        self.groups = number_groups(self.tree, how.max_gen_toks, most)
        order = (at for same in self.members for at in same)
        self.wanted = {group for group, at in zip(self.groups, order, strict=True) if at in self.open}

    def __iter__(self) -> Iterator[list[tuple[int, GrownText]]]:
        """Yield the replies that are finished together."""
        kept = self.network.open()
        ready = (one for branch in self.tree.roots for one in self._visit(branch, kept, (), None))
        for _, group in groupby(ready, lambda one: self.groups[one.number]):
            yield [(at, text) for at, text in self._grow_rows(list(group)) if at in self.open]

    def _visit(
        self, branch: Trunk | Twig, kept: KeptTokens, parts: tuple[tuple[State, Sequence[int]], ...], last: Any
    ) -> Iterator[ReadyPrompt]:
        """Evaluate the prompts of a branch; those of groups in which none is open are left out."""
        if self.wanted.isdisjoint(self.groups[self.begins[branch.first] : self.begins[branch.last]]):
            return
        kept.rewind(branch.start)
        if isinstance(branch, Twig):
            yield from self._read_twig(branch, kept, parts, last)
            return
        tokens = self.tree.sequences[branch.first][branch.start : branch.stop]
        logits = self._call_chain(kept, tokens, branch.start)
        parts = (*parts, (kept.read(branch.start), range(len(tokens))))
        for below in branch.below:
            yield from self._visit(below, kept, parts, logits)

    def _call_chain(self, kept: KeptTokens, tokens: Tokens, start: int) -> Any:
        """Evaluate consecutive tokens, block by block; the logits of the last."""
        for begin in range(start, start + len(tokens), BLOCK):
            block = tokens[begin - start : begin - start + BLOCK]
            depths = range(begin, begin + len(block))
            logits = self.network.call(kept, block, depths, see_chain(begin, len(block)), [len(block) - 1])
        return logits

    def _read_twig(
        self, twig: Twig, kept: KeptTokens, parts: tuple[tuple[State, Sequence[int]], ...], last: Any
    ) -> Iterator[ReadyPrompt]:
        packed = pack_twig(self.tree, twig)
        logits = [last] * len(packed.paths)  # of a prompt that ends in the trunk
        if len(packed.paths) == 1 and packed.tokens:
            logits = [self._call_chain(kept, packed.tokens, twig.start)]
        elif packed.tokens:
            ends = sorted({path[-1] for path in packed.paths if path})
            made = self.network.call(kept, packed.tokens, packed.depths, mask_packed(packed, twig.start), ends)
            rows = {end: made[at : at + 1] for at, end in enumerate(ends)}
            logits = [rows[path[-1]] if path else last for path in packed.paths]
        mine = kept.read(twig.start) if packed.tokens else None
        for one, first, path in zip(range(twig.first, twig.last), logits, packed.paths, strict=True):
            whole = (*parts, (mine, path)) if mine is not None and path else parts
            for number, at in enumerate(self.members[one], self.begins[one]):
                if self.groups[number] in self.wanted:
                    yield ReadyPrompt(number, at, first, whole)

    def _grow_rows(self, group: Sequence[ReadyPrompt]) -> list[tuple[int, GrownText]]:
        """Let replies grow, a token of each in a call, until all are done; those that are done are dropped."""
        rows = [GrowingText(self.prompts[one.at], self.how, self.speech) for one in group]
        kept, seen = self._join_parts(group)
        logits = self.network.torch.cat([one.logits for one in group])
        active = list(range(len(rows)))
        while True:
            best = logits.argmax(-1).tolist()
            tokens = [rows[row].take(logits[i], best[i]) for i, row in enumerate(active)]
            left = [i for i, row in enumerate(active) if rows[row].done is None]
            if not left:
                return [(one.at, row.done) for one, row in zip(group, rows, strict=True) if row.done is not None]
            seen, active, tokens = seen[left], [active[i] for i in left], [tokens[i] for i in left]
            used: Seen = np.asarray(seen.any(0))
            if 2 * used.sum() < len(used):  # most of what is kept was of replies that are done
                kept, seen = self.network.select(kept, used), seen[:, used]
            seen = np.hstack([seen, np.eye(len(active), dtype=np.bool_)])
            depths = [len(self.prompts[group[row].at].tokens) + len(rows[row].tokens) - 1 for row in active]
            logits = self.network.call(kept, tokens, depths, seen, range(len(active)))
            self.network.evaluated -= len(active)

    def _join_parts(self, group: Sequence[ReadyPrompt]) -> tuple[KeptTokens, Seen]:
        """All tokens of these prompts, those that they share once, and which of them each prompt sees."""
        states = {id(state): state for one in group for state, _ in one.parts}
        begins = dict(zip(states, accumulate((len(one.depths) for one in states.values()), initial=0), strict=False))
        kept = self.network.join(list(states.values()))
        seen = np.zeros((len(group), len(kept.depths)), np.bool_)
        for row, one in zip(seen, group, strict=True):
            for state, places in one.parts:
                row[begins[id(state)] + np.asarray(places)] = True
        return kept, seen


def number_groups(tree: PrefixTree, added: int, most: int) -> tuple[int, ...]:
    """Number the group of each reply, in the order of the tree: ``most`` replies grow together, or as many as take no
    more memory than ``most`` that share nothing: prompts with one beginning have it once.

    >>> shots = tuple(range(40))
    >>> number_groups(grow_tree([(*shots, at) for at in range(9)]), added=6, most=2)
    (0, 0, 0, 0, 0, 0, 0, 1, 1)
    >>> number_groups(grow_tree([(at, *shots) for at in range(5)]), added=6, most=2)
    (0, 0, 1, 1, 2)
    """
    groups, group, count, asked, own = list[int](), 0, 0, 0, 0
    for before, place in pairwise([-1, *sorted(tree.places)]):
        length = len(tree.sequences[place])
        shared = length if place == before else tree.shares[place]
        count, asked, own = count + 1, asked + length, own + length - shared
        fits = count * (own + count * added) <= most * (asked + count * added)
        if count > most and (not fits or count > most * MOST_IN_PLACE):
            group, count, asked, own = group + 1, 1, length, length
        groups.append(group)
    return tuple(groups)
