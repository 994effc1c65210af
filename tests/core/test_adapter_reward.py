"""A reward is the number that scoring the document gives, fast, in any process, and never a crash on a missing answer."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from math import isnan, nan
from multiprocessing import get_context

import numpy as np
import pytest
from counting import count_steps
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore import (
    GENERATE_UNTIL,
    Answer,
    EvalError,
    Failed,
    Generate,
    Instance,
    MetricSpec,
    Ok,
    Pipeline,
    Sample,
    Step,
    Task,
    Unscorable,
    freeze_options,
    report_task,
    score_doc,
    score_task,
)
from evalcore.adapters.reward import Reward, TrlReward, VerlReward, count_unscored, make_reward
from evalcore.adapters.texts import make_text_task, read_gold
from evalcore.core.metrics.dispatch import METRICS
from evalcore.core.records.outcome import Outcome
from evalcore.core.tables import EVALCORE, Tables
from evalcore.extensions import Filter, each_text, per_document

LAST_NUMBER = Step.of("regex", regex_pattern=r"(-?[0-9]+)", group_select=-1)
PIPELINES: list[tuple[Step, ...]] = [
    (),
    (Step("lowercase"), Step("strip_punctuation")),
    (LAST_NUMBER, Step("take_first")),
    (Step("strip_thinking"), Step("remove_whitespace")),
    (Step.of("map", mapping_dict={"a": "b"}, default_value="?"),),
]
METRIC_OPTIONS: list[tuple[str, dict[str, object]]] = [
    ("exact_match", {}),
    ("exact_match", {"ignore_case": True, "ignore_punctuation": True, "regexes_to_ignore": ["the "]}),
    ("quasi_exact_match", {}),
    ("includes", {"ignore_case": False}),
    ("f1", {}),
    ("anls", {"threshold": 0.3}),
    ("extraction_rate", {}),
    ("rougeL", {"use_stemmer": True}),
]
SMALL = st.text(alphabet="aB 4-5.,<>think/\n", max_size=12)
GOLDS = st.one_of(SMALL, st.none(), st.integers(-5, 5), st.lists(SMALL, max_size=3))


def task_of(metric: str, chosen: dict[str, object], steps: tuple[Step, ...]) -> Task:
    return Task(
        "law",
        GENERATE_UNTIL,
        (MetricSpec(metric, options=freeze_options(chosen)),),
        (Pipeline("none", steps),) if steps else (),
    )


def scored(task: Task, text: str, gold: object) -> Outcome:
    answer = Answer(Instance("law", 0, 0, Generate("?")), (text,))
    (outcome,) = score_doc(task, Sample(0, gold=gold), [answer]).values()  # type: ignore[arg-type]
    return outcome


def same(found: Outcome, wanted: Outcome) -> bool:
    if isinstance(wanted, Ok):
        return found == wanted
    return type(found) is type(wanted) and wanted.reason.partition(" - at ")[0] == found.reason  # type: ignore[union-attr]


# --- the law: the number of score_doc ---------------------------------------------------------------------------


@pytest.mark.parametrize(("metric", "chosen"), METRIC_OPTIONS, ids=lambda value: str(value))
@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.tuples(SMALL, GOLDS), min_size=1, max_size=5), steps=st.sampled_from(PIPELINES))
def test_a_reward_is_the_score_of_the_document(
    metric: str, chosen: dict[str, object], texts: list[tuple[str, object]], steps: tuple[Step, ...]
) -> None:
    task, reward = task_of(metric, chosen, steps), make_reward(metric, steps, **chosen)
    wanted = [scored(task, text, gold) for text, gold in texts]
    found = reward.outcomes([text for text, _ in texts], [gold for _, gold in texts])
    assert all(map(same, found, wanted)), (found, wanted)
    alone = [reward(text, gold) for text, gold in texts]
    assert alone == reward.rewards(*map(list, zip(*texts, strict=True)))  # type: ignore[arg-type]
    assert alone == [one.score if isinstance(one, Ok) else 0.0 for one in wanted]


@pytest.mark.parametrize(("metric", "scale"), [("bleu", 1.0), ("chrf", 0.01), ("chrf++", 1.0), ("ter", -1.0)])
@settings(max_examples=10, deadline=None)
@given(text=SMALL, gold=SMALL.filter(str.strip))
def test_a_corpus_metric_is_closed_on_the_document_alone(metric: str, scale: float, text: str, gold: str) -> None:
    answer = Answer(Instance("law", 0, 0, Generate("?")), (text,))
    value = report_task(score_task(task_of(metric, {}, ()), [Sample(0, gold=gold)], [answer]))[f"{metric},none"].value
    assert make_reward(metric, scale=scale)(text, gold) == (0.0 if value is None else value * scale)


def test_every_text_metric_is_a_reward_or_says_why_not() -> None:
    for name, entry in METRICS[GENERATE_UNTIL].items():
        if entry.higher_is_better:
            assert isinstance(make_reward(name)("a b c d e", "a b c d e"), float), name
    with pytest.raises(EvalError, match=r"ter is better when it is lower.*scale=-1"):
        make_reward("ter")


def test_metrics_and_filters_of_ones_own() -> None:
    close = MetricSpec("close", function=per_document(lambda text, gold: 1 / (1 + abs(float(text) - float(gold)))))
    assert make_reward(close)("5", "4") == 0.5
    assert isinstance(make_reward(close).outcomes(["five"], ["4"])[0], Failed)
    tables = Tables(filters=EVALCORE.filters.set("shout", Filter(lambda: each_text(str.upper))))
    assert make_reward("exact_match", ["shout"], tables=tables)("yes", "YES") == 1.0


# --- answers and golds that are missing --------------------------------------------------------------------------

MISSING = [None, nan, [], [{"role": "user", "content": "4"}], [{"role": "assistant", "content": None}], object()]


@pytest.mark.parametrize("completion", MISSING, ids=lambda value: type(value).__name__)
def test_no_answer_has_the_declared_reward(completion: object) -> None:
    reward = make_reward("exact_match", unscorable=-0.5)
    assert reward(completion, "4") == -0.5
    assert reward.rewards(["4", completion, "4"], ["4", "4", "5"]) == [1.0, -0.5, 0.0]
    assert sum(count_unscored(reward.outcomes(["4", completion], ["4", "4"])).values()) == 1


@pytest.mark.parametrize("gold", [None, nan, {}, []])
def test_no_gold_has_the_declared_reward(gold: object) -> None:
    assert make_reward("exact_match", unscorable=-0.5)("4", gold) == -0.5
    assert isnan(make_reward("exact_match", unscorable=nan)("4", gold))


def test_a_reply_that_a_filter_drops_is_unscorable() -> None:
    drop = Step.of("custom", filter_fn=lambda replies, docs: [list(one)[1:] for one in replies], scope="document")
    found = make_reward("exact_match", [drop]).outcomes(["4", "5"], ["4", "5"])
    assert [type(one) for one in found] == [Unscorable, Unscorable]


def test_golds_of_datasets() -> None:
    reward = make_reward("exact_match")
    assert [reward("4", gold) for gold in (np.array(["four", "4"]), ["4"], ("5",), 4, np.int64(4))] == [1, 1, 0, 1, 1]


def test_bad_input_is_refused_with_a_reason() -> None:
    with pytest.raises(EvalError, match="did you mean 'exact_match'"):
        make_reward("exactmatch")
    with pytest.raises(EvalError, match="ignore_cases"):
        make_reward("exact_match", ignore_cases=True)
    with pytest.raises(EvalError, match="unknown filter"):
        make_reward("exact_match", ["regx"])
    with pytest.raises(EvalError, match="scope='document'"):
        make_reward("exact_match", [Step.of("custom", filter_fn=lambda replies, docs: replies)])
    with pytest.raises(EvalError, match="one metric, at most one pipeline"):
        make_reward("exact_match", [Pipeline("a"), Pipeline("b")])
    with pytest.raises(EvalError, match="1 for 2"):
        make_reward("exact_match").rewards(["a", "b"], ["a"])


# --- trainers ------------------------------------------------------------------------------------------------------


def test_trl_calls_it_with_texts_and_with_messages() -> None:
    judge = TrlReward(make_reward("exact_match", [LAST_NUMBER]), gold="answer")
    assert judge.__name__ == "exact_match"
    texts = ["so 4", "no"]
    chats = [[{"role": "assistant", "content": text}] for text in texts]
    parts = [[{"role": "assistant", "content": [{"type": "text", "text": text}]}] for text in texts]
    for completions in (texts, chats, parts):
        found = judge(prompts=["?", "?"], completions=completions, completion_ids=[[1], [2]], answer=["4", "4"])
        assert found == [1.0, 0.0]
    with pytest.raises(EvalError, match="unknown column of the dataset 'answer'; did you mean 'answers'"):
        judge(prompts=["?"], completions=["4"], answers=["4"])


def test_verl_calls_it_by_name_of_the_data_source() -> None:
    compute_score = VerlReward({"a": make_reward("exact_match"), "b": make_reward("includes")})
    given = {"solution_str": "it is 4", "ground_truth": "4", "extra_info": {"index": 0}}
    assert [compute_score(data_source=name, **given) for name in ("a", "b")] == [0.0, 1.0]
    many = {"data_sources": ["b", "a"], "solution_strs": ["it is 4", "4"], "ground_truths": ["4", "4"]}
    assert compute_score.batch(**many, extra_infos=[None, None]) == [1.0, 1.0]
    assert VerlReward(make_reward("includes"))("any", "it is 4", "4") == 1.0
    with pytest.raises(EvalError, match="unknown data source 'c'"):
        compute_score("c", "4", "4")


# --- other processes, and steps -----------------------------------------------------------------------------------


def test_it_travels() -> None:
    reward = make_reward("exact_match", [LAST_NUMBER], ignore_case=True, unscorable=-1.0, scale=2.0)
    again = pickle.loads(pickle.dumps(reward))
    assert isinstance(again, Reward)
    assert [again("so 4", "4"), again(None, "4")] == [2.0, -1.0]
    judge = pickle.loads(pickle.dumps(VerlReward({"a": reward})))
    assert judge("a", "4", "4") == 2.0
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(reward.rewards, ["so 4", "5"], ["4", "4"]).result() == [2.0, 0.0]


@pytest.mark.parametrize("steps", [(), (LAST_NUMBER,)], ids=["plain", "regex"])
def test_one_document_takes_a_few_steps_and_one_of_many_fewer(steps: tuple[Step, ...]) -> None:
    """Its microseconds are those of `python -m bench reward`; ``score_doc`` takes 2,200 steps."""
    reward = make_reward("exact_match", steps)
    assert reward("so 2 + 2 is 4", "4") == float(bool(steps))
    assert count_steps(lambda: reward("so 2 + 2 is 4", "4")) < 450  # 305 and 296
    few, many = (count_steps(lambda n=n: reward.rewards(["so 2 + 2 is 4"] * n, ["4"] * n)) for n in (100, 200))
    assert many - few < 100 * 100  # 48 and 68 for each more


def test_numpy_texts_and_numbers_are_texts_and_numbers() -> None:
    reward = make_reward("exact_match")
    assert reward(np.int64(4), "4") == 1.0
    assert reward(np.str_("4"), np.str_("4")) == 1.0
    assert reward("4", [np.str_("4"), np.str_("5")]) == 1.0
    judge = TrlReward(reward, gold="answer")
    assert judge(prompts=["?", "?"], completions=["4", "5"], answer=np.array(["4", "4"])) == [1.0, 0.0]
    assert type(read_gold(np.str_("4"))) is str
    assert type(read_gold(np.int64(4))) is int


def test_a_list_that_is_no_messages_is_refused() -> None:
    with pytest.raises(EvalError, match="one text or a list of messages, got a list with str in it"):
        make_reward("exact_match")(["a"], "a")


def test_a_task_without_metrics_is_refused() -> None:
    with pytest.raises(EvalError, match="at least one metric"):
        make_text_task([])


def test_whole_numbers_and_single_texts() -> None:
    """4.0 is 4, in lists too; a text in place of a list is an error."""
    reward = make_reward("exact_match")
    assert reward.rewards(["4", 4.0, "5"], [4.0, "4", [4.0, 5.0]]) == [1.0, 1.0, 1.0]
    with pytest.raises(EvalError, match="expected a list of completions, got one text: '44'"):
        reward.rewards("44", ["4", "4"])
