"""Documents of two runs are matched one to one, in the same way from both sides and in any order of rows."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from evalcore.core.compare.pairs import match_documents
from evalcore.core.records.document import DocumentRow


@st.composite
def tables(draw: st.DrawFn) -> tuple[DocumentRow, ...]:
    """Documents with few different ids, contents and prompts, so that many are alike."""
    named = draw(st.booleans())
    texts = st.tuples(st.sampled_from("abc"), st.sampled_from(["", "p", "q", "r"]), st.sampled_from("xy"))
    drawn = draw(st.lists(texts, max_size=8))
    keys = draw(st.permutations(range(len(drawn))))
    seen: dict[str, int] = {}
    out = []
    for key, (content, prompt, target) in sorted(zip(keys, drawn, strict=True)):
        name = f"id {key % 5}" if named else None
        out.append(DocumentRow(key, name, None, content, seen.get(content, 0), prompt, target))
        seen[content] = seen.get(content, 0) + 1
    return tuple(out)


@given(tables(), tables(), st.randoms())
def test_matching_is_one_to_one_and_the_same_from_both_sides_in_any_order(
    a: tuple[DocumentRow, ...], b: tuple[DocumentRow, ...], dice: random.Random
) -> None:
    found = match_documents(a, b)
    for side in zip(*found.pairs, strict=True):
        assert len(set(side)) == len(found.pairs)
    turned = match_documents(b, a)
    assert sorted((one, two) for two, one in turned.pairs) == list(found.pairs)
    assert replace(turned, pairs=()) == replace(found, pairs=())
    assert match_documents(dice.sample(a, len(a)), dice.sample(b, len(b))) == found


@given(tables(), tables())
def test_what_is_matched_is_alike_and_what_is_left_is_not(
    a: tuple[DocumentRow, ...], b: tuple[DocumentRow, ...]
) -> None:
    found = match_documents(a, b)
    rows_a, rows_b = {row.key: row for row in a}, {row.key: row for row in b}
    pairs = [(rows_a[one], rows_b[two]) for one, two in found.pairs]
    if found.by_id:
        assert all(one.id == two.id for one, two in pairs)
    else:
        assert all(one.content == two.content or (one.prompt and one.prompt == two.prompt) for one, two in pairs)
        assert sum(one.content != two.content for one, two in pairs) == found.by_prompt
        left_a = {row.content for row in a} - {one.content for one, _ in pairs}
        left_b = {row.content for row in b} - {two.content for _, two in pairs}
        assert not left_a & left_b


def test_documents_without_an_id_match_one_another_only() -> None:
    a = [DocumentRow(key, f"id {key}", None, "c", key, "", "x") for key in range(3)]
    odd = DocumentRow(9, None, None, "c", 9, "", "x")
    found = match_documents(a, [*a, odd])
    assert (found.pairs, found.by_id) == (((0, 0), (1, 1), (2, 2)), True)
    assert match_documents([*a, odd], [*a[::-1], odd]).pairs == ((0, 0), (1, 1), (2, 2), (9, 9))
    nameless = [replace(row, id=None) for row in a]
    assert match_documents(a, nameless).pairs == ((0, 0), (1, 1), (2, 2))


def test_documents_are_unclear_unless_an_id_or_a_prompt_tells_that_they_are_others() -> None:
    def row(key: int, content: str, prompt: str = "", name: str | None = None) -> DocumentRow:
        return DocumentRow(key, name, None, content, 0, prompt, "x")

    both = [row(key, f"c{key}", f"p{key}") for key in range(3)]
    for one, two, unclear in (
        (row(8, "a", "q"), row(9, "b", "r"), False),
        (row(8, "a"), row(9, "b", "r"), True),  # it was not asked, as far as is known
        (row(8, "a", "q"), row(9, "b", "p0"), True),  # another document was asked the same
    ):
        assert match_documents([*both, one], [*both, two]).unclear is unclear
        assert not match_documents([*both, one], both).unclear
    others = [row(key, f"c{key}", f"other examples, p{key}") for key in range(3)]
    assert match_documents([*both, row(8, "a", "q")], [*others, row(9, "b", "r")]).unclear
    assert not match_documents([row(1, "a", name="1")], [row(1, "b", name="2")]).unclear


def test_the_same_id_twice_is_matched_by_order_and_counted() -> None:
    twice = [DocumentRow(key, "q", None, "c", key) for key in range(2)]
    assert match_documents(twice, twice[:1]).by_order == 1


def test_other_examples_before_the_same_document_are_not_unlike() -> None:
    a, b = DocumentRow(0, "q", None, "c", 0, "p", "x"), DocumentRow(0, "q", None, "c", 0, "other prompt", "x")
    assert match_documents([a], [b]).unlike == 0
    assert match_documents([a], [replace(b, content="d")]).unlike == 1
    assert match_documents([a], [replace(b, target="y")]).unlike == 1


@given(tables())
def test_a_run_matches_itself(a: tuple[DocumentRow, ...]) -> None:
    assert match_documents(a, a).pairs == tuple((row.key, row.key) for row in a)
