"""A traced document ends where scoring does: same filters, same rules, same scores, for whatever a model says."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from evalcore.core.explain.trace import trace_document, trace_pipeline
from evalcore.core.filters.chain import FILTERS
from evalcore.core.filters.reply import FELL_BACK, Filter
from evalcore.core.lm_eval.policy import LM_EVAL_0_4_13
from evalcore.core.pipeline import score_doc, score_task
from evalcore.core.records.column import list_outcomes
from evalcore.core.records.errors import EvalError
from evalcore.core.records.outcome import Failed, Ok, Unscorable
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    Answer,
    Failure,
    Generate,
    Instance,
    LogLikelihood,
    OutputType,
    Request,
    Rolling,
    Sample,
)
from evalcore.core.records.task import MetricSpec, Pipeline, Step, Task
from evalcore.core.tables import EVALCORE

DOC = Sample(7, gold="B", choices=("red", "Blue", "blue sky", "B"))
SAID = st.one_of(
    st.text(max_size=30),
    st.text("4 5.,#$-ABCblueredsky:()<think>/\n", max_size=60),
    st.sampled_from(
        [
            "<think>hm</think> The answer is 4.",
            "#### 1,234.5",
            "[('dog', 'NOUN'), ('runs', 'VERB')]",
            "it is blue sky",
            "Answer: B",
            "(C)",
            "Person: Ada $$ Location: Nairobi",
            "\ud800 lone",
            "\x1b[31m4",
        ]
    ),
)
STEPS = {
    "take_first": [Step.of("take_first")],
    "take_first_k": [Step.of("take_first_k", k=1), Step.of("take_first_k", k=2)],
    "majority_vote": [Step.of("majority_vote"), Step.of("majority_vote", ties="smallest")],
    "regex": [
        Step.of("regex"),
        Step.of("regex", regex_pattern=r"(-?[$0-9.,]{2,})|(-?[0-9]+)", group_select=-1),
        Step.of("regex", regex_pattern=r"[0-9]*", group_select=1, fallback="?"),
        Step.of("regex", regex_pattern=r"(?:is|:) *(\S+)"),
    ],
    "multi_choice_regex": [
        Step.of("multi_choice_regex", regex_pattern=r"(\([A-Z]\))", ignore_case=True),
        Step.of("multi_choice_regex", regex_pattern=r"(\([A-Z]\))", group_select=-1, ignore_punctuation=True),
    ],
    "letter": [Step.of("letter"), Step.of("letter", fallback="?")],
    "regex_pos": [Step.of("regex_pos")],
    "strip_thinking": [Step.of("strip_thinking"), Step.of("strip_thinking", start="(", end=")")],
    "remove_whitespace": [Step.of("remove_whitespace")],
    "lowercase": [Step.of("lowercase")],
    "uppercase": [Step.of("uppercase")],
    "strip_punctuation": [Step.of("strip_punctuation")],
    "map": [Step.of("map", mapping_dict={"4": "four", "B": "right"}, default_value="none")],
    "format_span": [Step.of("format_span")],
    "custom": [Step.of("custom", filter_fn=lambda resps, docs: [[str(r)[::-1] for r in rs] for rs in resps])],
}
CHAINS = st.lists(st.sampled_from([step for steps in STEPS.values() for step in steps]), max_size=4)


def answers(task: str, *replies: object, request: Request | None = None) -> list[Answer]:
    asked = Instance(task, DOC.doc_id, 0, request or Generate("?"), len(replies))
    return [Answer(asked, replies)]  # type: ignore[arg-type]


def test_every_filter_is_tested_and_has_its_notes() -> None:
    assert set(STEPS) == set(FILTERS)
    assert all(one.explain is not Filter(one.make).explain for one in FILTERS.values())


@settings(max_examples=400, deadline=None)
@given(CHAINS, st.lists(SAID, min_size=1, max_size=5), st.sampled_from([EVALCORE, LM_EVAL_0_4_13]))
def test_the_last_step_is_what_scoring_keeps(steps: list[Step], said: list[str], tables: object) -> None:
    if tables is LM_EVAL_0_4_13:  # its vote knows no rule for ties
        steps = [Step.of("majority_vote") if step.name == "majority_vote" else step for step in steps]
    pipeline = Pipeline("p", tuple(steps))
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", reducers=("mean",)),), (pipeline,))
    scored = score_task(task, [DOC], answers("t", *said), tables=tables, keep_replies=True)
    kept = scored.provenance[0]
    [(_, outcome)] = list_outcomes(scored.columns[0].column)
    if isinstance(outcome, Unscorable) and not len(kept.keys):
        with pytest.raises(EvalError, match=re.escape(outcome.reason.partition(" (filter")[0].partition(" - at")[0])):
            trace_pipeline(pipeline, said, DOC, tables.filters)
        return
    trace = trace_pipeline(pipeline, said, DOC, tables.filters)
    last, rules = (trace[-1].after, trace[-1].rules) if trace else (tuple(said), (0,) * len(said))
    assert last == kept.replies
    assert rules == tuple(kept.rules.data.tolist())
    assert all(len(one.after) == len(one.rules) == len(one.notes) for one in trace)
    assert all(one.after == two.before for one, two in pairwise(trace))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(STEPS["regex"]), SAID)
def test_the_match_a_note_names_is_the_text_that_was_extracted(step: Step, said: str) -> None:
    [one] = trace_pipeline(Pipeline("p", (step,)), [said], DOC)
    [text], [note], [rule] = one.after, one.notes, one.rules
    pattern = str(step.options.get("regex_pattern", r"#### (\-?[0-9\.\,]+)"))
    matches = list(re.finditer(pattern, said))
    named = re.match(r"match (\d+) of (\d+) of ", note)
    if rule == FELL_BACK:
        assert named is None
        assert "the fallback" in note
    elif named is not None:
        assert int(named[2]) == len(matches)
        match = matches[int(named[1]) - 1]
        groups = [group for group in match.groups("") if group] if match.re.groups else [match[0]]
        assert text == (groups[0].strip() if groups else "")
    else:
        assert note.startswith("by ")


@pytest.mark.parametrize(
    ("step", "said", "notes"),
    [
        (STEPS["regex"][1], "4 or 5.0", ("match 2 of 2 of '(-?[$0-9.,]{2,})|(-?[0-9]+)', its group 1",)),
        (STEPS["regex"][2], "x", ("match 2 of 2 of '[0-9]*'",)),
        (STEPS["regex"][2], "", ("1 match of '[0-9]*', and number 1 was asked for: the fallback '?'",)),
        (STEPS["regex"][3], "x", ("no match of",)),
        (STEPS["multi_choice_regex"][0], "(A)", ("rule 1 of 3: by the pattern",)),
        (STEPS["multi_choice_regex"][0], "surely BLUE SKY", ("rule 2 of 3: by the text of a choice",)),
        (STEPS["multi_choice_regex"][0], "so: D", ("rule 3 of 3: by a letter after a colon",)),
        (STEPS["letter"][0], "The answer is B", ("rule 2 of 5: the last letter that is said to be the answer",)),
        (STEPS["letter"][1], "B or C", ("no letter was found, or several: the fallback '?'",)),
        (STEPS["multi_choice_regex"][0], "who knows", ("the fallback '[invalid]'",)),
        (
            STEPS["strip_thinking"][0],
            "<think>a</think> 4",
            ("what follows the last '</think>', 17 characters removed",),
        ),
        (STEPS["strip_thinking"][0], "4 <think>a", ("'<think>' never ends",)),
        (STEPS["strip_thinking"][0], "4", ("no reasoning block",)),
        (STEPS["map"][0], "4", ("in the table",)),
        (STEPS["map"][0], "5", ("not in the table: the default 'none'",)),
        (STEPS["remove_whitespace"][0], " 4 ", ("2 characters removed",)),
        (STEPS["lowercase"][0], "a", ("unchanged",)),
    ],
)
def test_notes_name_the_rule_that_fired(step: Step, said: str, notes: tuple[str, ...]) -> None:
    [one] = trace_pipeline(Pipeline("p", (step,)), [said], DOC)
    assert any(note in one.notes[0] for note in notes), one.notes


def test_votes_are_told_with_ties_and_fallbacks() -> None:
    steps = (Step.of("regex", regex_pattern="([0-9])"), Step.of("majority_vote"))
    vote = trace_pipeline(Pipeline("p", steps), ["4", "5", "5", "4", "x", "x", "x"], DOC)[-1]
    assert vote.after == ("4",)
    assert vote.notes == ("votes: '4' 2, '5' 2; a tie, settled by first; 3 fallbacks did not count",)


def test_an_earlier_fallback_is_told_by_the_steps_after_it() -> None:
    steps = (Step.of("regex", regex_pattern="([0-9])", fallback="4"), Step.of("map", mapping_dict={"4": "four"}))
    after = trace_pipeline(Pipeline("p", steps), ["none"], DOC)[-1]
    assert after.after == ("four",)
    assert after.rules == (FELL_BACK,)
    assert after.notes == ("in the table; an earlier step had already found nothing",)


# --- scores --------------------------------------------------------------------------------------------------------

ONE = Sample(7, gold=1, choices=("red", "blue"), doc=b"{}")
KINDS: list[tuple[OutputType, Sample, list[tuple[Request, tuple[object, ...]]], str]] = [
    (GENERATE_UNTIL, DOC, [(Generate("?"), ("B",))], "equal to the gold 'B'"),
    (
        MULTIPLE_CHOICE,
        ONE,
        [(LogLikelihood("?", " red"), ((-2.0, False),)), (LogLikelihood("?", " blue"), ((-1.0, False),))],
        "likeliest is choice 1 'blue' (-1), which is right",
    ),
    (LOGLIKELIHOOD, Sample(7), [(LogLikelihood("?", " 6"), ((-2.0, True),))], "log-likelihood of the target -2"),
    (LOGLIKELIHOOD_ROLLING, Sample(7, gold="two words"), [(Rolling("two words"), (-4.0,))], "over 2 words"),
]


@pytest.mark.parametrize(("kind", "sample", "asked", "how"), KINDS)
def test_scores_are_those_of_scoring_and_say_how(
    kind: OutputType, sample: Sample, asked: list[tuple[Request, tuple[object, ...]]], how: str
) -> None:
    task = Task("t", kind)
    given = [Answer(Instance("t", 7, i, request), replies) for i, (request, replies) in enumerate(asked)]  # type: ignore[arg-type]
    [found] = trace_document(task, sample, given)
    assert dict(found.outcomes) == score_doc(task, sample, given)
    assert {one.metric: one.outcome for one in found.repeats[0]} == {
        key.metric: outcome for key, outcome in found.outcomes
    }
    assert how in found.repeats[0][0].how


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["4", "4.", "5", "no"]), min_size=4, max_size=4))
def test_reducers_are_over_the_scores_of_each_reply(said: list[str]) -> None:
    steps = (Step.of("regex", regex_pattern="([0-9])"),)
    specs = (MetricSpec("exact_match", reducers=("mean", "max")), MetricSpec("extraction_rate", reducers=("min",)))
    task = Task("t", GENERATE_UNTIL, specs, (Pipeline("digit", steps), Pipeline("raw")))
    four = replace(DOC, gold="4")
    for found in trace_document(task, four, answers("t", *said)):
        scores = {name: [o.outcome.score for some in found.repeats for o in some if o.metric == name]  # type: ignore[union-attr]
                  for name in ("exact_match", "extraction_rate")}  # fmt: skip
        values = {key.metric: outcome for key, outcome in found.outcomes}
        assert values["exact_match@mean"] == Ok(sum(scores["exact_match"]) / 4)
        assert values["exact_match@max"] == Ok(max(scores["exact_match"]))
        assert values["extraction_rate"] == Ok(min(scores["extraction_rate"]))
        found_one = [text != "no" or found.filter == "raw" for text in said]
        assert scores["extraction_rate"] == list(map(float, found_one))


EXACT = [
    ({}, "4", "4", True, "equal to the gold '4'"),
    ({"ignore_case": True}, "Yes", "yes", True, "are equal once normalised: 'yes'"),
    ({"ignore_punctuation": True}, "!!!", "...", False, "is not"),  # erratum E13: both are empty once normalised
    ({"regexes_to_ignore": [","]}, "1,000", "1001", False, "'1000' is not '1001' (as normalised)"),
    ({}, "5", "4", False, "'5' is not '4'"),
]


@pytest.mark.parametrize(("options", "said", "gold", "right", "how"), EXACT)
def test_exact_match_says_what_was_compared(
    options: dict[str, object], said: str, gold: str, right: bool, how: str
) -> None:
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", options=options),))  # type: ignore[arg-type]
    [found] = trace_document(task, replace(DOC, gold=gold), answers("t", said))
    assert found.repeats[0][0].outcome == Ok(float(right))
    assert how in found.repeats[0][0].how


def test_a_document_without_an_answer_says_why() -> None:
    [found] = trace_document(Task("t", GENERATE_UNTIL), DOC, answers("t", Failure("timed out")))
    assert found.problem == "timed out"
    assert [type(outcome) for _, outcome in found.outcomes] == [Failed]
    assert found.steps == found.repeats == ()


def test_a_filter_that_nobody_knows_is_refused() -> None:
    task = Task("t", GENERATE_UNTIL, filters=(Pipeline("p", (Step.of("regx"),)),))
    with pytest.raises(EvalError, match="did you mean 'regex'"):
        trace_document(task, DOC, answers("t", "4"))
