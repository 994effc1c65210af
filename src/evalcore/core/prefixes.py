"""Requests as a tree of token prefixes, so that a model computes each token once: a pure value that a backend walks.

Sorted sequences and the lengths of their common prefixes are the tree. A trunk is a prefix that many sequences share:
its state is kept while all below it is evaluated. A twig is what is evaluated in one call: the rest of a few
sequences, each of its tokens once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter

import numpy as np
from msgspec import Struct

from evalcore.core.records.array import Ints64
from evalcore.core.records.errors import EvalError

Tokens = tuple[int, ...]

NESTED = 100  # the most trunks on one another: who walks a tree goes as deep


class Twig(Struct, frozen=True):
    """Sequences ``first`` up to ``last``, evaluated together from their token ``start`` on."""

    first: int
    last: int
    start: int


class Trunk(Struct, frozen=True):
    """Tokens ``start`` up to ``stop``, which sequences ``first`` up to ``last`` share, and what grows on them."""

    first: int
    last: int
    start: int
    stop: int
    below: tuple[Trunk | Twig, ...]


class Sizes(Struct, frozen=True):
    """How a tree grows: the most tokens and sequences of a twig, the least tokens that make a trunk, and the most
    tokens of all trunks on the way to a twig, which are kept in memory.
    """

    tokens: int = 384
    sequences: int = 4096
    trunk: int = 32
    kept: int = 1 << 20

    def __post_init__(self) -> None:
        if min(self.tokens, self.sequences, self.trunk) < 1 or self.kept < 0:
            raise EvalError(f"expected sizes of at least 1 and kept of at least 0, got {self}")


class PrefixTree(Struct, frozen=True):
    """Distinct sequences in order, with how many tokens each ``shares`` with the one before.

    ``places`` says for each of the given sequences which one it is.
    """

    sequences: tuple[Tokens, ...]
    shares: tuple[int, ...]
    places: tuple[int, ...]
    roots: tuple[Trunk | Twig, ...]

    @property
    def asked(self) -> int:
        """The tokens of all given sequences."""
        return sum(len(self.sequences[place]) for place in self.places)

    @property
    def computed(self) -> int:
        """The tokens that a walk evaluates."""
        return sum(map(self._weigh, self.roots))

    def _weigh(self, branch: Trunk | Twig) -> int:
        if isinstance(branch, Trunk):
            return branch.stop - branch.start + sum(map(self._weigh, branch.below))
        return len(pack_twig(self, branch).tokens)


class Packed(Struct, frozen=True):
    """A twig as one row of tokens: the depth of each, the place in the row of its parent (-1: the trunk), and for
    each sequence the places of its tokens from the twig's start on.
    """

    tokens: Tokens
    depths: Tokens
    parents: Tokens
    paths: tuple[Tokens, ...]


def grow_tree(sequences: Sequence[Tokens], sizes: Sizes = Sizes()) -> PrefixTree:  # noqa: B008 (it is frozen)
    """Grow the tree of these sequences; a pure function of all of them.

    >>> shots = tuple(range(40))
    >>> tree = grow_tree([(*shots, 7, 8), (*shots, 7, 9), (*shots, 7, 8)], Sizes(tokens=3))
    >>> tree.asked, tree.computed, tree.places
    (126, 43, (0, 1, 0))
    >>> [(trunk.stop, trunk.below) for trunk in tree.roots]
    [(41, (Twig(first=0, last=2, start=41),))]
    """
    distinct = sorted(set(sequences))
    order = {sequence: at for at, sequence in enumerate(distinct)}
    shares = np.array([0, *map(_count_shared, distinct, distinct[1:])][: len(distinct)], np.int64)
    grower = _Grower(np.array(list(map(len, distinct)), np.int64), shares, sizes)
    return PrefixTree(
        tuple(distinct),
        tuple(shares.tolist()),
        tuple(order[sequence] for sequence in sequences),
        tuple(grower.grow([(0, len(distinct))], 0)) if distinct else (),
    )


class _Grower(Struct, frozen=True, eq=False):
    """The lengths of sorted sequences and their common prefixes, and how a tree grows of them."""

    lengths: Ints64
    shares: Ints64
    sizes: Sizes

    def weigh(self, first: int, last: int, start: int) -> int:
        """Count the distinct tokens of some sequences from a depth on."""
        shared = np.maximum(self.shares[first:last], start)
        shared[0] = start
        return int((self.lengths[first:last] - shared).sum())

    def fits(self, first: int, last: int, start: int) -> bool:
        """Whether these sequences are a twig."""
        few = last - first <= self.sizes.sequences and self.weigh(first, last, start) <= self.sizes.tokens
        return last - first == 1 or few

    def grow(self, groups: Sequence[tuple[int, int]], start: int, nested: int = 0) -> Iterator[Trunk | Twig]:
        """Grow what groups of neighbours need below a depth that each group shares."""
        left = list(reversed(groups))
        while left:
            first, last = left.pop()
            if self.fits(first, last, start):
                yield Twig(first, last, start)
                continue
            common = int(self.shares[first + 1 : last].min())
            stop = min(common, self.sizes.kept)  # of a longer prefix, what may be kept is still worth it
            # the deeper, the longer, or there would be too many
            if stop - start >= self.sizes.trunk * (1 + nested // 10) and nested < NESTED:
                below = self.grow(self.split(first, last, stop, common), stop, nested + 1)
                yield Trunk(first, last, start, stop, tuple(below))
            else:
                left += reversed(self.split(first, last, start, common))

    def split(self, first: int, last: int, start: int, common: int) -> list[tuple[int, int]]:
        """Split sequences where their common prefix ends; neighbours that are small together are one group."""
        ends = (np.flatnonzero(self.shares[first + 1 : last] <= common) + first + 1).tolist()
        groups, begun = list[tuple[int, int]](), first
        for group, stop in zip([first, *ends], [*ends, last], strict=True):
            if self.fits(begun, stop, start):
                continue
            if begun < group:
                groups.append((begun, group))
            begun = group
        return [*groups, (begun, last)]


def _count_shared(one: Tokens, other: Tokens) -> int:
    """Count the tokens with which both begin, by halves: comparing slices is quick."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def pack_twig(tree: PrefixTree, twig: Twig) -> Packed:
    """Pack the sequences of a twig into one row, in which each token stands once.

    >>> packed = pack_twig(grow_tree([(1, 2, 3), (1, 2, 4), (5,)]), Twig(0, 3, 0))
    >>> packed.tokens, packed.depths, packed.parents
    ((1, 2, 3, 4, 5), (0, 1, 2, 2, 0), (-1, 0, 1, 1, -1))
    >>> packed.paths
    ((0, 1, 2), (0, 1, 3), (4,))
    """
    tokens, depths, parents, path = list[int](), list[int](), list[int](), list[int]()
    paths = list[Tokens]()
    for at in range(twig.first, twig.last):
        shared = twig.start if at == twig.first else max(tree.shares[at], twig.start)
        path = path[: shared - twig.start]
        for depth, token in enumerate(tree.sequences[at][shared:], shared):
            parents.append(path[-1] if path else -1)
            path.append(len(tokens))
            tokens.append(token)
            depths.append(depth)
        paths.append(tuple(path))
    return Packed(tuple(tokens), tuple(depths), tuple(parents), tuple(paths))


def mask_packed(packed: Packed, trunk: int) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Which positions each token of a row sees: all of the trunk, its ancestors in the row, and itself.

    >>> mask_packed(pack_twig(grow_tree([(1, 2), (1, 3)]), Twig(0, 2, 0)), 1).astype(int).tolist()
    [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 0, 1]]
    """
    count = len(packed.tokens)
    seen = np.zeros((count, trunk + count), np.bool_)
    seen[:, :trunk] = True
    for at, parent in enumerate(packed.parents):
        if parent >= 0:
            seen[at, trunk:] = seen[parent, trunk:]
        seen[at, trunk + at] = True
    return seen


def share_tree(tree: PrefixTree, parts: int) -> tuple[Tokens, ...]:
    """Share the given sequences out among so many parts, by whole twigs in their order, each about as many tokens.

    So each part has subtrees of its own, and only trunks at which two parts meet are computed by both.

    >>> share_tree(grow_tree([(2, 1), (1, 1), (2, 1), (1, 2)], Sizes(tokens=3)), 2)
    ((1, 3), (0, 2))
    """
    twigs = [twig for root in tree.roots for twig in _list_twigs(root)]
    weights = np.array([len(pack_twig(tree, twig).tokens) or 1 for twig in twigs], np.int64)
    middles = np.cumsum(weights) * 2 - weights
    owners = (middles * parts // (2 * max(int(weights.sum()), 1))).tolist()
    whose = {at: owner for twig, owner in zip(twigs, owners, strict=True) for at in range(twig.first, twig.last)}
    shared: list[list[int]] = [[] for _ in range(parts)]
    for given, place in enumerate(tree.places):
        shared[whose[place]].append(given)
    return tuple(map(tuple, shared))


def _list_twigs(branch: Trunk | Twig) -> Iterator[Twig]:
    if isinstance(branch, Twig):
        yield branch
    else:
        yield from chain.from_iterable(map(_list_twigs, branch.below))


def group_places(tree: PrefixTree) -> tuple[Tokens, ...]:
    """For each distinct sequence, which of the given ones it stands for.

    >>> group_places(grow_tree([(2,), (1,), (2,)]))
    ((1,), (0, 2))
    """
    pairs = sorted((place, at) for at, place in enumerate(tree.places))
    return tuple(tuple(at for _, at in group) for _, group in groupby(pairs, itemgetter(0)))
