"""Mistakes in a task are told before a model is asked: errors for typos, warnings for what cannot be told right from wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from fault_server import serve

from evalcore.core.records.errors import EvalError
from evalcore.shell.cli import main
from evalcore.shell.prompts.build import build_task
from evalcore.shell.prompts.ready_task import Asking

Row = dict[str, object]
DOCS = [{"question": f"{at} + 1?", "answer": str(at + 1), "Answer Key": at} for at in range(8)]
TASK: Row = {
    "task": "sums",
    "dataset_path": "json",
    "test_split": "test",
    "output_type": "generate_until",
    "doc_to_text": "{{question}}",
    "doc_to_target": "answer",
    "generation_kwargs": {"until": ["\n"]},
}
QUIZ: Row = {
    **TASK,
    "output_type": "multiple_choice",
    "doc_to_choice": ["0", "1", "2", "3", "4", "5", "6", "7", "8"],
    "doc_to_target": "answer",
}
del QUIZ["generation_kwargs"]


def write(folder: Path, task: Row, docs: list[Row] = DOCS, **keys: object) -> Path:
    (folder / "docs.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    config = {"model": "dummy", "tasks": [task], "data": {"sums": "docs.jsonl"}, "output_path": str(folder / "out")}
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump({**config, **keys}))
    return path


def warnings(task: Row, docs: list[Row] = DOCS, **asking: object) -> tuple[str, ...]:
    return build_task(task, {"test": docs, "train": DOCS}, Asking(**asking)).warnings


# --- typos --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "word", "meant"),
    [
        ("doc_to_target", "anser", "answer"),
        ("doc_to_target", "Answer", "answer"),
        ("doc_to_target", "answers", "answer"),
        ("doc_to_target", "AnswerKey", "Answer Key"),
        ("doc_to_text", "qestion", "question"),
        ("doc_to_text", "Question", "question"),
    ],
)
def test_a_bare_word_close_to_a_column_is_an_error_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, word: str, meant: str
) -> None:
    with serve() as server:
        args = {"model": "toy", "base_url": server.url}
        path = write(tmp_path, {**TASK, key: word}, model="local-completions", model_args=args)
        assert main(["run", str(path)]) == 2
        said = capsys.readouterr().err
        assert f"{key}: no column {word!r}; did you mean {meant!r}? Columns: question, answer, Answer Key" in said
        assert f"for this very text, write {{{{{word!r}}}}} - at sums" in said
        assert server.bodies == []


def test_the_very_text_is_said_by_a_template(tmp_path: Path) -> None:
    built = build_task({**TASK, "doc_to_target": "{{'anser'}}"}, {"test": DOCS}, Asking())
    assert {one.gold for one in built.samples} == {"anser"}


def test_choices_and_examples_have_typos_too() -> None:
    docs = [{**doc, "choices": ["a", "b"]} for doc in DOCS]
    with pytest.raises(EvalError, match="doc_to_choice: no column 'choises'; did you mean 'choices'"):
        build_task({**QUIZ, "doc_to_choice": "choises"}, {"test": docs}, Asking())
    task = {**TASK, "training_split": "train", "fewshot_split": "train", "fewshot_config": {"doc_to_target": "anser"}}
    with pytest.raises(EvalError, match=r"fewshot_config\.doc_to_target: no column 'anser'; did you mean 'answer'"):
        warnings(task, num_fewshot=1)
    assert warnings(task, num_fewshot=0) == ()


def test_a_word_with_blanks_around_it_is_the_same_word() -> None:
    with pytest.raises(EvalError, match="no column 'answer\\\\n'; remove the blanks around 'answer'"):
        warnings({**TASK, "doc_to_target": "answer\n"})
    for word in ("anser\n", " anser"):
        with pytest.raises(EvalError, match="no column 'anser'; did you mean 'answer'"):
            warnings({**TASK, "doc_to_target": word})


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("doc_to_target", "solution"),  # close to no column
        ("doc_to_target", "the answer"),
        ("doc_to_target", "Question A"),
        ("doc_to_target", "7"),
        ("doc_to_text", "answer?"),
    ],
)
def test_a_text_is_no_typo(key: str, word: str) -> None:
    docs = [{**doc, "70": 1} for doc in DOCS]
    assert [one for one in warnings({**TASK, key: word}, docs) if "did you mean" in one] == []


def test_the_text_of_a_choice_is_no_typo_and_what_is_not_asked_is_not_looked_at() -> None:
    docs = [{**doc, "is_positive": 1} for doc in DOCS]
    for choices in (["negative", "positive"], "{{['negative', 'positive']}}"):
        told = warnings({**QUIZ, "doc_to_choice": choices, "doc_to_target": "positive"}, docs)
        assert len(told) == 1
        assert "same gold" in told[0]
    rolling = {**TASK, "output_type": "loglikelihood_rolling", "doc_to_text": "anser", "doc_to_target": "question"}
    assert warnings(rolling) == ()


def test_columns_of_examples_are_named_as_such() -> None:
    shots = {"sampler": "first_n", "samples": [{"question": "1 + 1?", "answers": "2"}], "doc_to_target": "answers"}
    with pytest.raises(EvalError, match=r"'answers' is a column of the examples alone; write \{\{answers\}\}"):
        warnings({**TASK, "fewshot_config": shots}, num_fewshot=1)


def test_recorded_answers_are_not_scored_by_a_typo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(write(tmp_path, TASK)), "--quiet"]) == 0
    (tmp_path / "task.yaml").write_text(yaml.safe_dump({**TASK, "doc_to_target": "anser"}))
    capsys.readouterr()
    assert main(["score", str(tmp_path / "out"), "--task", str(tmp_path / "task.yaml")]) == 2
    assert "did you mean 'answer'" in capsys.readouterr().err


# --- warnings -----------------------------------------------------------------------------------------------------------


def test_the_same_question_for_all_is_a_warning() -> None:
    told = "all 8 documents ask the same, 'What is it?': is doc_to_text right? - at sums"
    assert warnings({**TASK, "doc_to_text": "What is it?"}) == (told,)
    assert warnings({**QUIZ, "doc_to_text": "What is it?"}) == (told,)
    assert warnings({**TASK, "doc_to_text": ""}) == (told.replace("What is it?", ""),)
    assert warnings({**TASK, "doc_to_text": "What is it?", "training_split": "train"}, num_fewshot=2) == (told,)
    assert warnings({**QUIZ, "doc_to_text": ""}) == (told.replace("What is it?", ""),)
    # Nothing before different choices or targets, and the text itself: so likelihoods of whole texts are asked for.
    whole = {**QUIZ, "doc_to_choice": "{{[question, answer]}}", "doc_to_target": 0}
    target = {**TASK, "output_type": "loglikelihood", "doc_to_target": "question"}
    rolling = {**TASK, "output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "question"}
    for task in (whole, target, rolling):
        assert warnings({**task, "doc_to_text": ""}) == ()
    for context in ("topic", "{{'Text'}}", "Q: question", "Question: question\nAnswer:"):
        for task in (whole, target):
            assert len(warnings({**task, "doc_to_text": context})) == 1
        assert warnings({**rolling, "doc_to_text": context}) == ()
    assert warnings({**TASK, "doc_to_text": "What is it?"}, DOCS[:1]) == ()


def test_the_same_gold_for_all_is_a_warning() -> None:
    told = "all 8 documents have the same gold, 'green': is doc_to_target right? - at sums"
    assert warnings({**TASK, "doc_to_target": "green"}) == (told,)
    assert warnings({**TASK, "doc_to_target": lambda doc: "green"}) == (told,)
    assert warnings({**TASK, "doc_to_target": "green", "process_results": lambda doc, results: {"acc": 1}}) == ()
    for declared in (0, "0", "{{0}}"):  # the right choice comes first
        assert warnings({**QUIZ, "doc_to_target": declared}) == ()


def test_under_a_limit_golds_are_the_same_only_if_the_others_are_too() -> None:
    mixed = [{**doc, "answer": "yes" if at < 3 else "no"} for at, doc in enumerate(DOCS)]
    assert warnings(TASK, mixed, limit=3) == ()
    assert warnings({**TASK, "doc_to_target": lambda doc: doc["answer"]}, mixed, limit=3) == ()
    same = [{**doc, "answer": "yes"} for doc in DOCS]
    assert len(warnings(TASK, same, limit=3)) == 1
    assert warnings(TASK, [*same[:4], {"question": "without an answer"}], limit=3) == ()
    ordered = [{**DOCS[0], "question": f"{at}?", "answer": "yes" if at < 500 else "no"} for at in range(1000)]
    assert warnings(TASK, ordered, limit=3) == ()


def test_code_runs_on_no_document_that_is_not_asked_about() -> None:
    seen: list[object] = []

    def text(doc: Row) -> str:
        seen.append(doc["question"])
        return str(doc["question"])

    assert warnings({**TASK, "doc_to_text": text, "doc_to_target": "{{'4'}}"}, limit=2) == ()
    assert set(seen) == {"0 + 1?", "1 + 1?"}


@pytest.mark.parametrize(
    ("gold", "count", "first"),
    [
        ("{{answer if answer != '3' else 'three'}}", 1, "2, 'three'"),
        ("{{'9'}}", 8, "0, 9"),
        ("{{answer|int + 2}}", 2, "6, 9"),
    ],
)
def test_golds_that_are_no_choice_are_counted_and_the_first_is_shown(gold: str, count: int, first: str) -> None:
    found = [one for one in warnings({**QUIZ, "doc_to_target": gold}) if "choices" in one]
    (told,) = found
    assert told.startswith(
        f"{count} of 8 documents have a gold that is none of their choices; the first: doc {first} - at sums"
    )


def test_golds_that_nothing_is_scored_by_need_not_be_choices() -> None:
    own = {**QUIZ, "doc_to_target": "{{'9'}}", "process_results": lambda doc, results: {"acc": 1}}
    assert warnings(own) == ()


def test_names_of_columns_as_choices_are_a_warning() -> None:
    docs = [{**doc, "first": f"{at}", "second": "-", "A": "1", "B": "2", "gold": at % 2} for at, doc in enumerate(DOCS)]
    task = {**QUIZ, "doc_to_target": "gold"}
    (told,) = warnings({**task, "doc_to_choice": ["first", "second"]}, docs)
    assert told.endswith("for what the columns hold, write {{[first, second]}} - at sums")
    for meant in ("{{[first, second]}}", ["A", "B"], ["first", "other"]):
        assert warnings({**task, "doc_to_choice": meant}, docs) == ()


def test_a_method_that_is_not_called_is_a_warning() -> None:
    for key, given in (("doc_to_target", "{{answer.strip}}"), ("doc_to_text", "Q: {{question.upper}}")):
        (told,) = warnings({**TASK, key: given})
        assert told.startswith(f"{key} writes out a method instead of calling it, ")
        assert warnings({**TASK, key: given.replace("}}", "()}}")}) == ()


def test_copies_of_documents_are_counted() -> None:
    told = "2 of 10 documents are copies of an earlier one; the first: doc 8 - at sums"
    assert warnings(TASK, [*DOCS, DOCS[1], DOCS[5]]) == (told,)
    assert warnings(TASK, [*DOCS, DOCS[1]], limit=8) == ()


@pytest.mark.parametrize(
    ("splits", "advice"),
    [
        ({"test_split": "test"}, "fewshot_split: test"),
        ({"test_split": "test", "training_split": "test"}, "fewshot_split: test"),
        ({"test_split": None, "validation_split": "test", "fewshot_split": "test"}, "test_split: test"),
    ],
)
def test_documents_among_their_own_examples_are_counted_and_the_advice_leaves_them_out(
    splits: Row, advice: str
) -> None:
    task = {**TASK, **splits, "doc_to_text": "Q: {{question}}\nA:"}
    built = build_task(task, {"test": DOCS}, Asking(num_fewshot=3))
    prompts = [str(getattr(one, "prompt", "")) for one in built.requests]
    leaks = [at for at, doc in enumerate(DOCS) if prompts[at].count(str(doc["question"])) == 2]
    assert 0 < len(leaks) < 8
    told = f"{len(leaks)} of 8 documents are among their own examples, answer included; the first: doc {leaks[0]}; "
    assert built.warnings == (f"{told}to leave them out, write {advice} - at sums",)
    key, name = advice.split(": ")
    assert warnings({**task, key: name}, num_fewshot=3) == ()


def test_a_copy_among_the_examples_is_the_document_itself() -> None:
    first = {**TASK, "fewshot_config": {"sampler": "first_n"}}
    told = [one for one in warnings(first, [*DOCS, DOCS[0]], num_fewshot=1) if "examples" in one]
    assert [one.partition(" are")[0] for one in told] == ["2 of 9 documents"]
    assert warnings(first, [{"question": float("nan"), "answer": "1"}, *DOCS], num_fewshot=1)[0].startswith("1 of 9")


@pytest.mark.parametrize(
    "other",
    [
        {"fewshot_split": "test"},
        {"fewshot_split": "train"},
        {"training_split": "train"},
        {"validation_split": "train"},
        {"fewshot_config": {"sampler": "first_n", "samples": DOCS}},
        {"test_split": None, "validation_split": "test"},
        {"num_fewshot": 0},
    ],
)
def test_other_examples_are_no_leak(other: Row) -> None:
    assert warnings({**TASK, **other}, num_fewshot=3) == ()
    assert warnings(TASK, num_fewshot=3) != ()


@pytest.mark.parametrize("length", [0, -5, 1.5, True, "many", "", [4], float("inf"), float("nan")])
def test_a_length_that_is_no_positive_integer_is_refused(length: object) -> None:
    for task, run in (({"until": ["x"], "max_gen_toks": length}, None), ({}, {"max_gen_toks": length})):
        with pytest.raises(EvalError, match=r"expected max_gen_toks to be a positive integer, got .* - at sums"):
            warnings({**TASK, "generation_kwargs": task}, gen_kwargs=run)


@pytest.mark.parametrize("length", [1, 32, 32.0, "32", None])
def test_a_length_may_be_written_as_in_lm_eval(length: object) -> None:
    assert warnings({**TASK, "generation_kwargs": {"max_gen_toks": length}}, gen_kwargs={"max_gen_toks": length}) == ()


def test_generation_arguments_that_nobody_knows_are_named() -> None:
    given = {"until": ["\n"], "max_gen_tok": 5, "temprature": 0.5, "frobnicate": 1, "top_p": 0.9}
    assert warnings({**TASK, "generation_kwargs": given}) == (
        "unknown generation argument 'max_gen_tok'; did you mean 'max_gen_toks'? It is passed on as it is - at sums",
        "unknown generation argument 'temprature'; did you mean 'temperature'? It is passed on as it is - at sums",
        "unknown generation argument 'frobnicate'. It is passed on as it is - at sums",
    )
    assert len(warnings(TASK, gen_kwargs={"max_gen_tok": 5})) == 1


# --- when ---------------------------------------------------------------------------------------------------------------


def test_warnings_come_before_the_first_question_and_once_where_they_go_to_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, {**TASK, "doc_to_target": "green"})
    told = "all 8 documents have the same gold, 'green'"
    for form in ([], ["--json"], ["--quiet"]):
        assert main(["run", str(path), *form]) == 0
        said = capsys.readouterr()
        assert said.err.count(told) == 1
        assert said.out.count(told) == (1 if not form else "--json" in form)  # in the results, too
        if "--quiet" not in form:
            assert said.err.index(told) < said.err.index("asking: ")


def test_a_model_refuses_what_it_cannot_honour_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quiz = {**QUIZ, "task": "quiz"}
    with serve() as server:
        path = write(
            tmp_path,
            {**TASK, "generation_kwargs": {"until": 7}},
            tasks=[quiz, {**TASK, "generation_kwargs": {"until": 7}}],
            data={"*": "docs.jsonl"},
            model="local-completions",
            model_args={"model": "toy", "base_url": server.url},
        )
        assert main(["run", str(path)]) == 2
        assert "expected until to be a text or a list of texts, got 7 - at sums" in capsys.readouterr().err
        assert server.bodies == []
