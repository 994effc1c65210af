"""Requests and samples of a task: what reaches scoring, and what is refused with its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore import EvalError, MetricKey, report_task, score_task
from evalcore.core.records.document import decode_doc
from evalcore.core.records.frozen_dict import thaw_dict
from evalcore.core.records.request import Generate, LogLikelihood, Rolling, Sample
from evalcore.lm_eval import LM_EVAL_0_4_13
from evalcore.shell.prompts.build import build_task
from evalcore.shell.prompts.documents import encode_doc
from evalcore.shell.prompts.ready_task import Asking, Built

Row = dict[str, object]

DOCS: list[Row] = [
    {"question": "Which is a tree?", "choices": ["birch", "basalt"], "answer": 0, "text": "birch", "source": "a"},
    {
        "question": "Which is a stone?",
        "choices": ["cedar", "granite", "moss"],
        "answer": 1,
        "text": "granite",
        "source": "b",
    },
    {"question": "Which is a river?", "choices": ["Elbe", "Alps"], "answer": 0, "text": "Elbe", "source": "a"},
]
CHOICE: Row = {
    "task": "own",
    "test_split": "test",
    "output_type": "multiple_choice",
    "doc_to_text": "{{question}}",
    "doc_to_choice": "choices",
    "doc_to_target": "answer",
}
TEXT: Row = {"task": "own", "test_split": "test", "doc_to_text": "{{question}}", "doc_to_target": "text"}


def build(config: Row, asking: Asking | None = None, docs: list[Row] | None = None, **more: list[Row]) -> Built:
    return build_task(config, {"test": DOCS if docs is None else docs, **more}, asking or Asking())


def refusal(config: Row, asking: Asking | None = None, docs: list[Row] | None = None, **more: list[Row]) -> str:
    with pytest.raises(EvalError) as refused:
        build(config, asking, docs, **more)
    return str(refused.value)


# --- what reaches scoring ------------------------------------------------------------------------------------


def test_choices_become_one_request_each() -> None:
    built = build(CHOICE)
    assert built.asked.docs.ints.tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert built.asked.idxs.ints.tolist() == [0, 1, 0, 1, 2, 0, 1]
    assert built.requests[3] == LogLikelihood("Which is a stone?", " granite")
    assert [(one.gold, one.choices) for one in built.samples] == [(d["answer"], tuple(d["choices"])) for d in DOCS]
    assert [json.loads(one.doc) for one in built.samples] == DOCS
    assert (built.n_original, built.task.version, built.warnings) == (3, "Yaml", ())


@pytest.mark.parametrize(("right", "acc"), [(True, 1.0), (False, 0.0)])
def test_choices_are_scored_by_their_gold(right: bool, acc: float) -> None:
    built = build(CHOICE)
    golds = {one.doc_id: one.gold for one in built.samples}
    places = zip(built.asked.docs.ints.tolist(), built.asked.idxs.ints.tolist(), strict=True)
    replies = [(-1.0 if (idx == golds[doc]) == right else -9.0, False) for doc, idx in places]
    report = report_task(score_task(built.task, built.samples, built.asked.answered(replies)))
    assert report.get(MetricKey("acc")).value == acc


def test_generation_is_scored_by_its_text() -> None:
    built = build({**TEXT, "metric_list": [{"metric": "exact_match"}]})
    scored = score_task(built.task, built.samples, built.asked.answered(["birch", "granite", "Rhine"]))
    assert report_task(scored).get(MetricKey("exact_match")).value == pytest.approx(2 / 3)
    assert {one.options for one in built.requests if isinstance(one, Generate)} == {built.requests[0].options}


def test_several_inputs_have_the_index_as_gold_and_the_text_as_target() -> None:
    built = build({**CHOICE, "doc_to_text": "answer", "doc_to_choice": "choices", "doc_to_target": "text"})
    assert built.requests[0] == LogLikelihood("birch", " birch")
    assert [one.gold for one in built.samples] == [0, 1, 0]
    assert built.targets == ("birch", "granite", "Elbe")


def test_rolling_has_its_text_as_gold() -> None:
    built = build({**TEXT, "output_type": "loglikelihood_rolling"})
    assert built.requests[1] == Rolling("granite")
    assert built.samples[1].gold == "granite"
    scored = score_task(built.task, built.samples, built.asked.answered([-1.0, -2.0, -3.0]), tables=LM_EVAL_0_4_13)
    assert report_task(scored, tables=LM_EVAL_0_4_13).get(MetricKey("word_perplexity")).value == pytest.approx(
        np.exp(2)
    )


def test_several_targets_are_a_tuple_and_a_bracketed_text_is_a_text() -> None:
    several = [{"question": "?", "text": ["a", "b"]}, {"question": "?", "text": ["c"]}]
    assert [one.gold for one in build(TEXT, docs=several).samples] == [("a", "b"), ("c",)]
    first_is_text = {**TEXT, "doc_to_target": "{{text}}"}
    docs: list[Row] = [{"question": "?", "text": "a"}, {"question": "?", "text": "[1, 2]"}]
    assert [one.gold for one in build(first_is_text, docs=docs).samples] == ["a", "[1, 2]"]


def test_numpy_numbers_are_golds() -> None:
    built = build({**CHOICE, "doc_to_target": lambda doc: np.int32(doc["answer"])})
    assert [(type(one.gold), one.gold) for one in built.samples] == [(int, 0), (int, 1), (int, 0)]


def test_repeats_and_clusters() -> None:
    built = build({**TEXT, "repeats": 3, "cluster": "source"})
    assert built.asked.repeats.ints.tolist() == [3, 3, 3]
    assert [one.cluster for one in built.samples] == ["a", "b", "a"]
    assert [one.cluster for one in build(TEXT, Asking(cluster="{{source}}{{answer}}")).samples] == ["a0", "b1", "a0"]


def test_a_limit_keeps_numbers_and_samples_are_numbers() -> None:
    assert [one.doc_id for one in build(TEXT, Asking(limit=2)).samples] == [0, 1]
    assert [one.doc_id for one in build(TEXT, Asking(samples=(2, 0, 2))).samples] == [0, 2]
    for asking, docs in ((Asking(limit=0), None), (Asking(), [])):
        with pytest.raises(EvalError, match="at least one document to ask about, got none - at own"):
            build(TEXT, asking, docs=docs)
    assert build(TEXT, Asking(limit=2)).n_original == 3


def test_missing_columns_are_none_and_keep_their_order() -> None:
    built = build(TEXT, docs=[{"question": "a", "text": "b"}, {"text": "c", "question": "d", "more": 1}])
    assert built.samples[0].doc == b'{"question":"a","text":"b","more":null}'
    assert built.samples[1].doc == b'{"question":"d","text":"c","more":1}'


def test_own_code_cannot_change_documents() -> None:
    def spoil(doc: Row) -> str:
        doc["choices"].clear()  # type: ignore[attr-defined]
        return str(doc.pop("question"))

    docs = [{"question": "q", "text": "t", "choices": ["a"]}]
    built = build({**TEXT, "doc_to_text": spoil}, docs=docs)
    assert decode_doc(built.samples[0]) == docs[0] == {"question": "q", "text": "t", "choices": ["a"]}


@pytest.mark.parametrize("target", ["{{a}}", "a", "{{a.b[0]}}", "{{[a]}}", lambda doc: doc["a"]])
def test_documents_without_gold_are_counted(target: object) -> None:
    nested = target == "{{a.b[0]}}"
    golds: list[object] = ["None", None, None]
    docs: list[Row] = [{"question": f"q{at}", "a": {"b": [one]} if nested else one} for at, one in enumerate(golds)]
    config: Row = {**TEXT, "doc_to_target": target}
    built = build(config, docs=docs)
    assert built.warnings == ("2 of 3 documents have no gold (null); the first: doc 1 - at own",)
    assert build(config, docs=docs[:1]).warnings == ()
    assert build({**config, "process_results": lambda doc, results: {"x": 1}}, docs=docs).warnings == ()


def test_a_truth_value_is_the_index_of_a_choice() -> None:
    """As in Python, and so in lm-eval: False is 0, True is 1."""
    docs: list[Row] = [{"question": f"q{at}", "right": at > 0} for at in range(3)]
    for target in ("right", "{{right|int}}", lambda doc: doc["right"]):
        config: Row = {
            **TEXT,
            "output_type": "multiple_choice",
            "doc_to_choice": ["no", "yes"],
            "doc_to_target": target,
        }
        config.pop("generation_kwargs", None)
        built = build(config, docs=docs)
        assert [(type(one.gold), one.gold) for one in built.samples] == [(int, 0), (int, 1), (int, 1)]
        assert built.warnings == ()


def test_answers_only_take_several_replies() -> None:
    lower: Row = {"filter_list": [{"name": "low", "filter": [{"function": "lowercase"}]}]}
    config: Row = {**TEXT, **lower, "repeats": 2, "repeat_cfg": {"reducer": ["pass@2"]}}
    built = build(config, Asking(predict_only=True))
    scored = score_task(built.task, built.samples, built.asked.answered(["a", "b"] * 3))
    assert [str(key) for key, _ in report_task(scored).estimates] == ["bypass,low"]


def test_predict_only_measures_nothing() -> None:
    mutual: Row = {**CHOICE, "metric_list": [{"metric": "acc_mutual_info"}]}
    assert len(build(mutual).requests) == 14
    built = build(mutual, Asking(predict_only=True))
    assert ([one.name for one in built.task.metrics], len(built.requests)) == (["bypass"], 7)


def test_examples_are_written_once_each() -> None:
    seen: list[object] = []

    def write(doc: Row) -> str:
        seen.append(doc["question"])
        return str(doc["question"])

    config = {**TEXT, "fewshot_split": "train", "num_fewshot": 2, "fewshot_config": {"doc_to_text": write}}
    built = build(config, docs=DOCS * 20, train=DOCS)
    assert len(built.requests) == 60
    assert sorted(seen) == sorted(doc["question"] for doc in DOCS)


def test_the_config_holds_no_addresses() -> None:
    config = {**TEXT, "doc_to_text": lambda doc: "x", "fewshot_config": {"samples": lambda: DOCS}}
    assert " at 0x" not in json.dumps(thaw_dict(build(config).config))


# --- documents as bytes ----------------------------------------------------------------------------------------

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=[]))
)
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@given(st.dictionaries(st.text(), values))
def test_documents_survive_being_bytes(doc: Row) -> None:
    assert decode_doc(Sample(0, doc=encode_doc(doc))) == doc


def test_values_without_a_word_in_json() -> None:
    doc: Row = {
        "nan": float("nan"),
        "when": date(2020, 1, 2),
        "raw": b"x",
        "n": np.int64(3),
        "a": np.arange(2),
        "s": {1},
    }
    back = decode_doc(Sample(0, doc=encode_doc(doc)))
    assert isinstance(back, dict)
    assert isnan(back.pop("nan"))
    assert back == {"when": "2020-01-02", "raw": "b'x'", "n": 3, "a": [0, 1], "s": [1]}


# --- what is refused -------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Row, str]] = {
    "missing field": ({"doc_to_text": "{{qestion}}"}, r"doc_to_text: 'qestion' is undefined; .* question, .* - at own doc 0"),
    "missing field in a condition": ({"doc_to_text": "{% if x %}{% endif %}"}, "'x' is undefined.* - at own doc 0"),
    "no Python": ({"doc_to_text": "{{ question[1:, 2] }}"}, r"expected a jinja2 template, .* cannot compile it \(invalid syntax\)"),
    "bad template": ({"doc_to_text": "{{ question"}, r"expected a jinja2 template, got '\{\{ question'.* line 1 - at own"),
    "unknown key": ({"doc_to_txt": "x"}, "did you mean 'doc_to_text'.* - at own"),
    "unknown few-shot key": ({"fewshot_config": {"samlpes": []}}, "did you mean 'samples'.* - at own"),
    "wrong kind": ({"doc_to_text": ["a"]}, r"expected doc_to_text to be .*, got \['a'\] - at own"),
    "no question": ({"doc_to_text": None}, "expected doc_to_text to be .* - at own"),
    "number as question": ({"doc_to_text": "answer"}, "expected a question as text, got 0 - at own doc 0"),
    "no such split": ({"test_split": "tset"}, "unknown split 'tset'; did you mean 'test'.* - at own"),
    "no split": ({"test_split": None}, "expected a test_split or a validation_split.* - at own"),
    "class": ({"class": "x"}, "Python class.* - at own"),
    "images": ({"doc_to_image": "x"}, "doc_to_image.* - at own"),
    "promptsource": ({"use_prompt": "promptsource:*"}, "promptsource.* - at own"),
    "own code": ({"doc_to_text": lambda doc: doc["x"]}, "doc_to_text: expected a field 'x', got fields question.* - at own doc 0"),
    "output type": ({"output_type": "multiple_choise"}, "did you mean 'multiple_choice'.* - at own"),
    "temperature": ({"generation_kwargs": {"temperature": "hot"}}, "temperature .* 'hot' - at own"),
    "length": ({"generation_kwargs": {"max_gen_toks": -5}}, "max_gen_toks .* positive integer, got -5 - at own"),
    "cluster": ({"cluster": "sauce"}, "cluster: .* 'sauce'; fields: question.* - at own"),
    "cluster without a value": ({"cluster": "choices"}, "cluster: .* - at own doc 0"),
    "too few examples": ({"num_fewshot": 3, "fewshot_split": "test"}, "at least 3 few-shot examples and one to spare.* - at own doc 0"),
    "bad example": ({"num_fewshot": 1, "fewshot_split": "train"}, "few-shot example 0: .*'question' is undefined.* - at own doc 0"),
    "sampler": ({"num_fewshot": 1, "fewshot_split": "train", "fewshot_config": {"sampler": "fist_n"}}, "did you mean 'first_n'"),
    "repeats": ({"repeats": 0}, "repeats .* got 0 - at own"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_say_what_and_where(case: str) -> None:
    import re

    change, said = REFUSED[case]
    found = refusal({**TEXT, **change}, train=[{"text": "x"}])
    assert re.search(said, found), found


def test_choices_that_are_none() -> None:
    assert "got [] - at own doc 1" in refusal(CHOICE, docs=[DOCS[0], {**DOCS[1], "choices": []}])
    assert "as text, got 5 - at own doc 1" in refusal(CHOICE, docs=[DOCS[0], {**DOCS[1], "choices": ["a", 5]}])
    assert "got 'no list' - at own doc 0" in refusal({**CHOICE, "doc_to_choice": "no list"})


@pytest.mark.parametrize("digits", ["007", "²", "٣", "1" * 5000])
def test_digits_that_are_no_index(digits: str) -> None:
    found = refusal({**CHOICE, "doc_to_target": "{{text}}"}, docs=[{**DOCS[0], "text": digits}])
    assert found.startswith("doc_to_target: expected the index of a choice, got")
    assert found.endswith(" - at own doc 0")


def test_a_gold_beyond_the_choices_is_a_warning_and_unscorable() -> None:
    built = build(CHOICE, docs=[DOCS[0], {**DOCS[1], "answer": 7}])
    assert built.warnings == (
        "1 of 2 documents have a gold that is none of their choices; the first: doc 1, 7 - at own",
    )
    scored = score_task(built.task, built.samples, built.asked.answered([(-1.0, True)] * 5))
    assert report_task(scored).get(MetricKey("acc")).n == 1


def test_samples_out_of_range_or_with_a_limit() -> None:
    assert "got 3 - at own" in refusal(TEXT, Asking(samples=(3,)))
    assert "got both - at own" in refusal(TEXT, Asking(samples=(1,), limit=1))


@pytest.mark.parametrize("process", [lambda docs: 1 / 0, lambda docs: [1], lambda docs: "text"])
def test_process_docs_that_fails(process: Callable[[object], object]) -> None:
    pytest.importorskip("datasets")
    found = refusal({**TEXT, "process_docs": process})
    assert "process_docs" in found
    assert found.endswith(" - at own")


def test_process_docs_may_give_a_list() -> None:
    pytest.importorskip("datasets")
    built = build({**TEXT, "process_docs": lambda docs: [{"question": d["question"][:5], "text": "t"} for d in docs]})
    assert [one.prompt for one in built.requests if isinstance(one, Generate)] == ["Which"] * 3


def test_indices_choose_the_examples() -> None:
    """lm-eval ignores them (E51), and so does its policy."""
    config = {**TEXT, "num_fewshot": 1, "fewshot_split": "train", "fewshot_config": {"fewshot_indices": [2]}}
    shots = [{"question": f"shot {i}", "text": f"t{i}"} for i in range(40)]
    chosen = build(config, train=shots)
    assert all(one.prompt.startswith("shot 2 t2\n\n") for one in chosen.requests if isinstance(one, Generate))
    assert "E51" in chosen.warnings[0]
    ignored = build(config, Asking(as_host=True), train=shots)
    plain = build({**config, "fewshot_config": {}}, train=shots)
    assert ignored.requests == plain.requests != chosen.requests
    assert "is not used" in ignored.warnings[0]
    for wrong in (40, -1, "2", True):
        message = refusal({**config, "fewshot_config": {"fewshot_indices": [wrong]}}, train=shots)
        assert f"expected fewshot_indices between 0 and 39, got {wrong!r} - at own" in message
