"""What a model or a scorer wrote beside a document, whatever it is called and says, does not choose who is compared."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.core.compare.likeness import Fields, find_likeness

Row = dict[str, object]


def fields(rows: Sequence[Mapping[str, object]], order: Sequence[int]) -> Fields:
    """Rows in an order; ``gold`` is the target."""
    shown = [rows[at] for at in order]
    names = list(shown[0])
    texts = {name: sum(len(row[name]) for row in shown if isinstance(row[name], str)) for name in names}
    codes = {name: [hash((name, row[name])) >> 1 for row in shown] for name in names}
    golds = codes.pop("gold")
    return Fields(list(range(len(shown))), golds, codes, texts)


def totals(rows: Sequence[tuple[int, bool]]) -> dict[int, tuple[int, int]]:
    """How many documents each group has, and how many of them are right."""
    found: dict[int, tuple[int, int]] = {}
    for group, right in rows:
        count, good = found.get(group, (0, 0))
        found[group] = (count + 1, good + right)
    return found


@st.composite
def two_tables(draw: st.DrawFn) -> tuple[list[Row], list[Row], list[bool], list[bool]]:
    """The same documents in two runs, with a verdict that nobody declared and perhaps a long text or a time."""
    n = draw(st.integers(8, 30))
    copies = draw(st.integers(0, n))  # of the same few questions
    dice = draw(st.randoms(use_true_random=False))
    right = [[dice.random() < share for _ in range(n)] for share in (0.8, 0.5)]
    verdict, text, time, number = (draw(st.booleans()) for _ in range(4))
    tables: list[list[Row]] = []
    for run in (0, 1):
        rows: list[Row] = []
        for at in range(n):
            row: Row = {"question": f"question {at % 5 if at < copies else at}?", "gold": at % 7}
            row |= {"zzz" if verdict else "aaa": "right" if right[run][at] else "wrong"}
            row |= {"raw": f"a long reply of many words, {dice.random()}"} if text and copies < n // 2 else {}
            row |= {"seconds": dice.random()} if time else {}
            row |= {"idx": at} if number else {}
            rows.append(row)
        tables.append(rows)
    return tables[0], tables[1], right[0], right[1]


@given(two_tables(), st.randoms(use_true_random=False))
def test_every_document_finds_its_like_whatever_the_verdicts_are(
    tables: tuple[list[Row], list[Row], list[bool], list[bool]], dice: random.Random
) -> None:
    a, b, right_a, right_b = tables
    orders = [dice.sample(range(len(a)), len(a)) for _ in range(2)]
    found = find_likeness(fields(a, orders[0]), fields(b, orders[1]))
    assert found is not None
    assert not {"aaa", "zzz", "raw", "seconds"} & set(found.by) or right_a == right_b
    groups_a = totals([(group, right_a[at]) for group, at in zip(found.a, orders[0], strict=True)])
    groups_b = totals([(group, right_b[at]) for group, at in zip(found.b, orders[1], strict=True)])
    # Groups are as large in both runs: no document is left out because of how it was answered.
    assert {group: count for group, (count, _) in groups_a.items()} == {
        group: count for group, (count, _) in groups_b.items()
    }


@given(st.integers(5, 40), st.randoms(use_true_random=False))
def test_others_under_the_same_numbers_are_others(n: int, dice: random.Random) -> None:
    """Questions differ, and golds agree by chance at most."""
    rows = [
        [{"idx": at, "question": f"{name} {at}", "gold": 1000 * run + dice.randrange(5)} for at in range(n)]
        for run, name in enumerate(("one", "another"))
    ]
    assert find_likeness(*(fields(some, range(n)) for some in rows)) is None


def test_the_same_passage_with_another_target_is_another_document() -> None:
    a = [{"passage": f"passage {at}", "gold": at} for at in range(20)]
    b = [{"passage": f"passage {at}", "gold": at + 7} for at in range(20)]
    assert find_likeness(fields(a, range(20)), fields(b, range(20))) is None
    half = [*a[:19], {"passage": "passage 19", "gold": 99}]  # one of twenty was corrected
    found = find_likeness(fields(a, range(20)), fields(half, range(20)))
    assert found is not None
    assert found.by == ("passage",)
    assert sum(one == two for one, two in zip(found.a, found.b, strict=True)) == 19


@pytest.mark.parametrize("gold", [lambda at: at % 3, lambda at: 0])
def test_the_order_of_rows_needs_a_gold_that_confirms_it(gold: object) -> None:
    rows = [{"gold": gold(at), "verdict": at > 5} for at in range(30)]
    other = [{"gold": gold(at), "verdict": at % 2 == 0} for at in range(30)]
    found = find_likeness(fields(rows, range(30)), fields(other, range(30)))
    assert found is not None
    assert found.by == (("their order",) if gold(1) else ())
    shuffled = random.Random(0).sample(range(30), 30)
    again = find_likeness(fields(rows, range(30)), fields(other, shuffled))
    assert again is not None
    assert again.by == ()


@pytest.mark.parametrize(("count", "found"), [(7, False), (8, True)])
def test_the_golds_of_a_few_rows_confirm_no_order(count: int, found: bool) -> None:
    a, b = ([{"sentence": f"{name} {at}", "gold": at % 2} for at in range(count)] for name in ("one", "another"))
    assert (find_likeness(fields(a, range(count)), fields(b, range(count))) is not None) is found


def test_a_number_that_only_counts_confirms_no_other() -> None:
    a = [{"idx": at, "row": at, "gold": 0} for at in range(20)]
    b = [{"idx": at, "row": at, "gold": 0, "sentence": f"s {at}"} for at in range(20)]
    assert find_likeness(fields(a, range(20)), fields(b, range(20))) is None


def test_numbers_of_rows_need_more_than_golds_that_agree_by_chance() -> None:
    """Ninety-nine in a hundred golds are the same, so that any order agrees with them."""
    dice = random.Random(1)
    rows = [{"idx": at, "question": f"{at}?", "gold": int(at % 100 == 0)} for at in range(300)]
    other = [
        {**row, "idx": at, "question": f"another {row['question']}"} for at, row in enumerate(dice.sample(rows, 300))
    ]
    assert find_likeness(fields(rows, range(300)), fields(other, range(300))) is None


@pytest.mark.parametrize(("changed", "paired"), [(2, True), (15, False)])
def test_a_text_identifies_documents_unless_golds_speak_against_it(changed: int, paired: bool) -> None:
    a = [{"passage": f"passage {at}", "gold": 7} for at in range(100)]
    b = [{**row, "gold": 8 if at < changed else 7} for at, row in enumerate(a)]
    assert (find_likeness(fields(a, range(100)), fields(b, range(100))) is not None) is paired


@pytest.mark.parametrize(("alone", "found"), [(55, True), (45, False)])
def test_most_documents_are_alone_with_what_identifies_them(alone: int, found: bool) -> None:
    """Passages that are mostly asked about several times identify no question, also where another text changed."""
    a = [
        {"passage": f"passage {at if at < alone else at % 7 + 1000}", "raw": f"a {at}", "gold": 7} for at in range(100)
    ]
    b = [{**row, "raw": f"b {at}", "gold": 7 if at else 8} for at, row in enumerate(a)]
    assert (find_likeness(fields(a, range(100)), fields(b, range(100))) is not None) is found


def test_texts_refine_an_identity_before_numbers_do() -> None:
    """A number of rows, which nothing confirms, would pair other questions."""
    rows = [{"row": at, "question": f"question {at % 10}", "gold": 7, "verdict": at > 3} for at in range(50)]
    order = random.Random(0).sample(range(50), 50)
    other = [{**rows[at], "row": place, "verdict": at > 30} for place, at in enumerate(order)]
    found = find_likeness(fields(rows, range(50)), fields(other, range(50)))
    assert found is not None
    assert found.by == ("question",)


def test_a_few_that_are_the_same_by_chance_identify_nothing() -> None:
    a = [{"seconds": at, "verdict": at % 2, "gold": at % 2, "raw": f"a {at}"} for at in range(100)]
    b = [{"seconds": at + 97, "verdict": at % 2, "gold": at % 2, "raw": f"b {at}"} for at in range(101)]
    assert find_likeness(fields(a, range(100)), fields(b, range(101))) is None


def test_no_documents_are_like_none() -> None:
    rows = [{"question": "q", "gold": 0}]
    assert find_likeness(Fields([], [], {}, {}), fields(rows, range(1))) is None
