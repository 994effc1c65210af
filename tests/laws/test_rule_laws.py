"""Rules of two runs: the same are the same, whatever their options; a change of one is found; sides can be swapped."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from evalcore import GENERATE_UNTIL, MetricKey, MetricSpec, Pipeline, Step, Task
from evalcore.core.compare.lines import ComparisonSide
from evalcore.core.compare.rules import RuleMismatch, RuleSource
from evalcore.core.compare.sides import compare_sides
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.stats import Array, Floats, build_column

COLUMN = build_column(range(6), Floats(Array(np.array([0.0, 1.0] * 3))))
STEPS = st.one_of(
    st.builds(
        lambda pattern, group: Step.of("regex", regex_pattern=pattern, group_select=group),
        st.text(max_size=5),
        st.integers(-1, 1),
    ),
    st.sampled_from([Step.of("lowercase"), Step.of("take_first"), Step.of("strip_punctuation")]),
    st.builds(lambda value: Step.of("unheard_of", option=value), st.one_of(st.none(), st.text(), st.floats(0, 1))),
)
OPTIONS = st.fixed_dictionaries(
    {}, optional={"ignore_case": st.booleans(), "regexes_to_ignore": st.lists(st.text(max_size=3), max_size=2)}
)


@st.composite
def tasks(draw) -> Task:
    spec = MetricSpec("exact_match", options=draw(OPTIONS), reducers=draw(st.sampled_from([(), ("mean",)])))
    filters = (Pipeline("strict", tuple(draw(st.lists(STEPS, max_size=3)))),)
    return Task("t", GENERATE_UNTIL, (spec,), filters, config={"repeats": draw(st.sampled_from([1, 2]))})


def side(task: Task, maker: str = "evalcore") -> ComparisonSide:
    spec = task.metrics[0]
    column = ScoredColumn(MetricKey("exact_match", "strict"), COLUMN, spec, (*spec.reducer_names, None)[0])
    return ComparisonSide("run", (Scored(task, (column,)),), sources={"t": RuleSource(maker=maker)})


def rules(a: ComparisonSide, b: ComparisonSide) -> tuple[RuleMismatch, ...]:
    return compare_sides(a, b, draws=1).rules


@given(tasks())
@settings(max_examples=60, deadline=None)
def test_a_run_never_differs_from_itself(task: Task) -> None:
    assert rules(side(task), side(task)) == ()


@given(tasks(), tasks())
@settings(max_examples=60, deadline=None)
def test_sides_can_be_swapped(one: Task, two: Task) -> None:
    found, turned = rules(side(one), side(two)), rules(side(two), side(one))
    assert {(each.part, each.a, each.b) for each in found} == {(each.part, each.b, each.a) for each in turned}


@given(tasks(), st.text(max_size=5), st.text(max_size=5))
@settings(max_examples=60, deadline=None)
def test_another_pattern_is_found_wherever_it_stands(task: Task, one: str, two: str) -> None:
    steps = task.filters[0].steps
    both = [
        side(replace(task, filters=(Pipeline("strict", (*steps, Step.of("regex", regex_pattern=text))),)))
        for text in (one, two)
    ]
    found = [each for each in rules(*both) if each.part.startswith("regex_pattern of filter regex")]
    assert len(found) == (one != two)


@given(tasks())
@settings(max_examples=30, deadline=None)
def test_other_tables_are_found_whatever_the_task(task: Task) -> None:
    assert [each.part for each in rules(side(task), side(task, "mine"))] == ["tables"]
