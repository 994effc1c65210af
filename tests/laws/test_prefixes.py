"""A tree of prefixes holds every sequence, each token where it stands, and no more tokens than were asked for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evalcore.core.prefixes import PrefixTree, Sizes, Tokens, Trunk, Twig, grow_tree, mask_packed, pack_twig, share_tree
from evalcore.shell.models.hf.continuation import MOST_IN_PLACE, number_groups

TOKENS = st.lists(st.integers(0, 2), max_size=40).map(tuple)
SHARED = st.builds(
    lambda head, tails: [head + tail for tail in tails], TOKENS, st.lists(TOKENS, min_size=1, max_size=8)
)
SEQUENCES = st.lists(SHARED, max_size=5).map(lambda groups: [one for group in groups for one in group])
SIZES = st.builds(Sizes, st.integers(1, 30), st.integers(1, 5), st.integers(1, 12), st.integers(0, 60))


def walk(tree: PrefixTree) -> Iterator[tuple[Tokens, Twig]]:
    """Every twig with the tokens of the trunks it grows on."""

    def visit(branch: Trunk | Twig, before: Tokens) -> Iterator[tuple[Tokens, Twig]]:
        if isinstance(branch, Twig):
            yield before, branch
            return
        for below in branch.below:
            yield from visit(below, before + tree.sequences[branch.first][branch.start : branch.stop])

    for root in tree.roots:
        yield from visit(root, ())


@given(SEQUENCES, SIZES)
def test_every_sequence_is_its_trunks_and_its_path(sequences: list[Tokens], sizes: Sizes) -> None:
    tree, seen = grow_tree(sequences, sizes), []
    for before, twig in walk(tree):
        packed = pack_twig(tree, twig)
        for at, path in zip(range(twig.first, twig.last), packed.paths, strict=True):
            assert before + tuple(packed.tokens[place] for place in path) == tree.sequences[at]
            assert [packed.depths[place] for place in path] == list(range(twig.start, len(tree.sequences[at])))
            seen.append(at)
    assert seen == list(range(len(tree.sequences)))
    assert [tree.sequences[place] for place in tree.places] == sequences


@given(SEQUENCES, SIZES)
def test_no_token_is_computed_that_was_not_asked_for(sequences: list[Tokens], sizes: Sizes) -> None:
    tree = grow_tree(sequences, sizes)
    prefixes = {one[:end] for one in sequences for end in range(1, len(one) + 1)}
    assert len(prefixes) <= tree.computed <= tree.asked
    assert grow_tree(sequences, Sizes(1 << 20)).computed == len(prefixes)


@given(SEQUENCES, SIZES)
def test_sizes_are_kept(sequences: list[Tokens], sizes: Sizes) -> None:
    tree = grow_tree(sequences, sizes)
    for before, twig in walk(tree):
        assert len(before) <= sizes.kept
        if twig.last - twig.first > 1:
            assert twig.last - twig.first <= sizes.sequences
            assert len(pack_twig(tree, twig).tokens) <= sizes.tokens


@given(SEQUENCES, st.randoms())
def test_the_order_of_requests_does_not_matter(sequences: list[Tokens], random: object) -> None:
    shuffled = sorted(sequences, key=lambda one: random.random())  # type: ignore[attr-defined]
    one, other = grow_tree(sequences), grow_tree(shuffled)
    assert (one.sequences, one.roots) == (other.sequences, other.roots)


@given(SEQUENCES, SIZES, st.integers(0, 3))
def test_a_token_sees_its_trunk_its_ancestors_and_itself(sequences: list[Tokens], sizes: Sizes, trunk: int) -> None:
    tree = grow_tree(sequences, sizes)
    for _, twig in walk(tree):
        packed = pack_twig(tree, twig)
        seen = mask_packed(packed, trunk)
        assert seen[:, :trunk].all()
        for path in packed.paths:
            for depth, place in enumerate(path):
                assert set(np.flatnonzero(seen[place, trunk:]).tolist()) == set(path[: depth + 1])


@given(SEQUENCES, SIZES, st.integers(1, 5))
def test_parts_have_every_sequence_once_in_the_order_of_the_tree(
    sequences: list[Tokens], sizes: Sizes, parts: int
) -> None:
    tree = grow_tree(sequences, sizes)
    shared = share_tree(tree, parts)
    assert len(shared) == parts
    assert sorted(at for part in shared for at in part) == list(range(len(sequences)))
    ranges = [sorted({tree.places[at] for at in part}) for part in shared]
    assert [place for some in ranges for place in some] == list(range(len(tree.sequences)))
    whose = {place: part for part, some in enumerate(ranges) for place in some}
    for _, twig in walk(tree):
        assert len({whose[at] for at in range(twig.first, twig.last)}) == 1


@given(SEQUENCES, SIZES, st.integers(1, 5))
def test_parts_are_even_but_for_a_twig_and_repeat_no_more_than_a_way_each(
    sequences: list[Tokens], sizes: Sizes, parts: int
) -> None:
    tree = grow_tree(sequences, sizes)
    weights = {twig: len(pack_twig(tree, twig).tokens) or 1 for _, twig in walk(tree)}
    shared = share_tree(tree, parts)
    for part in shared:
        places = {tree.places[at] for at in part}
        mine = sum(weight for twig, weight in weights.items() if twig.first in places)
        assert mine <= sum(weights.values()) / parts + max(weights.values(), default=0)
    prefixes = {one[:end] for one in sequences for end in range(1, len(one) + 1)}
    each = [{sequences[at][:end] for at in part for end in range(1, len(sequences[at]) + 1)} for part in shared]
    longest = max(map(len, sequences), default=0)
    assert sum(map(len, each)) <= len(prefixes) + (parts - 1) * longest


def test_sequences_that_continue_one_another_grow_no_deeper_than_can_be_walked() -> None:
    steps = [tuple([1] * count) for count in range(1, 3000)]
    assert grow_tree(steps).computed < sum(map(len, steps)) / 30
    turns = [tuple([1] * (40 * count) + [2] * 100) for count in range(1, 400)]
    assert grow_tree(turns).computed < sum(map(len, turns)) / 4
    assert len(list(walk(grow_tree(turns, Sizes(trunk=1))))) > 100


@given(SEQUENCES, st.integers(0, 9), st.integers(1, 4))
def test_replies_that_grow_together_fit_the_memory_of_whole_ones(
    sequences: list[Tokens], added: int, most: int
) -> None:
    tree = grow_tree(sequences)
    numbers = number_groups(tree, added, most)
    ordered = [tree.sequences[place] for place in sorted(tree.places)]
    assert sorted(numbers) == list(numbers)
    for group in set(numbers):
        mine = [one for one, number in zip(ordered, numbers, strict=True) if number == group]
        kept = len({one[:end] for one in mine for end in range(1, len(one) + 1)}) + added * len(mine)
        whole = sum(map(len, mine)) + added * len(mine)
        assert len(mine) <= most or kept * len(mine) <= most * whole
        assert len(mine) <= most * MOST_IN_PLACE
        assert len(mine) >= most or group == numbers[-1]


def test_prompts_that_share_nothing_have_no_part_in_the_room_of_those_that_do() -> None:
    shots = tuple(range(1000))
    alike, apart = [(*shots, at) for at in range(90)], [(-1 - at, *shots) for at in range(30)]
    tree = grow_tree([*alike, *apart])
    numbers = number_groups(tree, 64, 4)
    counts = [numbers.count(group) for group in dict.fromkeys(numbers)]
    assert counts[:7] == [4] * 7
    assert max(counts) == 16
