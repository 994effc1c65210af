"""Where in a reply the text is that a filter left of it."""

from __future__ import annotations

import pytest

from evalcore.core.explain.trace import fill_options
from evalcore.core.filters.chain import FILTERS, make_filter
from evalcore.core.filters.letter import LETTER_RULES
from evalcore.core.filters.reply import Fired, replies
from evalcore.core.filters.spans import LETTERED
from evalcore.core.records.request import Sample
from evalcore.core.records.task import Step


def mark(step: Step, reply: str) -> str | None:
    """The reply with what a step found in it between bars."""
    left = make_filter(step, FILTERS)(replies([[reply]]), [Sample(0, choices=("red", "blue", "green"))])
    fired = Fired(fill_options(step, FILTERS), (reply,), (0,), tuple(left.values), tuple(left.rules.tolist()))
    [span] = FILTERS[step.name].locate(fired)
    return None if span is None else f"{reply[: span[1]]}|{reply[span[1] : span[2]]}|{reply[span[2] :]}"


@pytest.mark.parametrize(
    ("reply", "marked"),
    [
        ("b", "|b|"),
        (" **C**. ", " **|C|**. "),
        ("Because Bob said so, the answer is B", "Because Bob said so, the answer is |B|"),
        ("Answer: A. No: Answer: B, as Bob says", "Answer: A. No: Answer: |B|, as Bob says"),
        ("Bad luck, so $\\boxed{B}$", "Bad luck, so $\\boxed{|B|}$"),
        ("B) spade. Both (B) and", "|B|) spade. Both (B) and"),
        ("Clearly it is C, Charles", "Clearly it is |C|, Charles"),
        ("Both are fine", None),
    ],
)
def test_a_letter_is_marked_where_its_rule_found_it(reply: str, marked: str | None) -> None:
    assert mark(Step.of("letter"), reply) == marked


def test_every_rule_of_letters_has_its_pattern() -> None:
    assert len(LETTERED) == len(LETTER_RULES)


def test_a_match_is_marked_where_it_was_selected() -> None:
    last = Step.of("regex", regex_pattern="(-?[0-9]+)", group_select=-1)
    assert mark(last, "4 or 4, so 4!") == "4 or 4, so |4|!"
    assert mark(last, "none") is None
    choice = Step.of("multi_choice_regex", regex_pattern="(?<=answer is )(\\([A-Z]\\))")
    assert mark(choice, "Not (A)? The answer is (A).") == "Not (A)? The answer is |(A)|."


def test_a_choice_that_is_named_otherwise_is_marked_nowhere() -> None:
    assert mark(Step.of("multi_choice_regex"), "Not (B). Answer: B") is None  # which is read as (B)
