"""Multiple choice by letter: what is asked, what is read, and that it is never taken for a likelihood score."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from fault_server import serve

import evalcore
from evalcore import EVALCORE
from evalcore.core.filters.letter import find_letter, letter
from evalcore.core.filters.reply import replies
from evalcore.core.pipeline import score_task
from evalcore.core.records.column import list_outcomes
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Answer, Generate, Instance, Sample
from evalcore.shell.cli import main
from evalcore.shell.prompts.build import build_task
from evalcore.shell.prompts.letters import write_lettered
from evalcore.shell.prompts.ready_task import Asking

DOCS = [
    {"q": "Which is a fruit?", "options": ["pear", "spade", "hat"], "gold": 0},
    {"q": "Which is a tool?", "options": ["pear", "spade", "hat"], "gold": 1},
    {"q": "Which is worn?", "options": ["pear", "spade", "hat"], "gold": 2},
    {"q": "Which is eaten?", "options": ["pear", "spade", "hat"], "gold": 0},
]
SAID = ["A", "The answer is **B**.", "I cannot say.", "(C) hat"]
"""Right, right, no letter, wrong."""

TASK: Mapping[str, object] = {
    "task": "things",
    "test_split": "test",
    "output_type": "multiple_choice",
    "doc_to_text": "Question: {{q}}\nAnswer:",
    "doc_to_choice": "options",
    "doc_to_target": "gold",
}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("B", "B"),
        (" c.", "C"),
        ("**D**", "D"),
        ("(A)", "A"),
        ("A) red\nbecause", "A"),
        ("B. spade", "B"),
        ("The answer is C", "C"),
        ("Answer: D", "D"),
        ("ANSWER: B", "B"),
        ("The correct answer is option B.", "B"),
        ("The best option is (C), as A and B are wrong", "C"),
        ("First A looks right. The answer is not A: the answer is B", "B"),
        ("so $\\boxed{C}$", "C"),
        ("It must be D", "D"),
        ("A dog barks", None),
        ("I think so", None),
        ("B or C", None),
        ("A or B", None),
        ("(A) or (B)", None),
        ("Either **A** or **B**.", None),
        ("A/B", None),
        ("A & B", None),
        ("Both A and B", None),
        ("A, B", None),
        ("A, B, or C.", None),
        ("Answer: A or B", None),
        ("The answer is A and/or option C, I think", None),
        ("The answer is A and C.", None),
        ("The answer is B, and A is wrong.", "B"),
        ("The answer is B, A is wrong", "B"),
        ("The answer is B and C is wrong", "B"),
        ("Answer: C, a dog", "C"),
        ("A, because a dog barks", "A"),
        ("It must be D, or so I think", "D"),
        ("Both are fine", None),
        ("", None),
        ("The answer is a matter of taste", None),
        ("The answer is A's friend", None),
    ],
)
def test_letters_beside_those_a_reader_finds(text: str, wanted: str | None) -> None:
    assert "letter" in EVALCORE.filters
    found = find_letter(text)
    assert (found and found[0]) == wanted
    kept = letter()(replies([[text]]), ())
    assert list(kept.values) == [wanted or "[no letter]"]
    assert (int(kept.rules[0]) == -1) is (wanted is None)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("Answer: I think B", "B"), ("I", "[no letter]"), ("The answer is E", "[no letter]"), ("\\boxed{D}", "D")],
)
def test_only_letters_of_the_documents_choices_count(text: str, wanted: str) -> None:
    of_four = Sample(0, gold="B", choices=("a", "b", "c", "d"))
    assert list(letter()(replies([[text]]), [of_four]).values) == [wanted]


@pytest.mark.parametrize(
    "text", ["option" + " " * 100_000, "answer:" + " " * 100_000, "A/" + " " * 100_000, "A or " * 50_000]
)
def test_no_reply_takes_long(text: str) -> None:
    assert find_letter(f"{text}x") is None  # with steps that grow with the square, for minutes


def test_the_prompt_shows_letters_and_keeps_the_cue_last() -> None:
    built = build_task(TASK, {"test": DOCS}, Asking(multiple_choice_by="letter"))
    assert len(built.requests) == len(DOCS)
    request = built.requests[1]
    assert isinstance(request, Generate)
    assert request.prompt == (
        "Question: Which is a tool?\n\nA. pear\nB. spade\nC. hat\n\n"
        "Answer with the letter of one choice alone: A, B or C.\nAnswer:"
    )
    assert "until" not in request.options
    assert [sample.gold for sample in built.samples] == ["A", "B", "C", "A"]


def test_choices_that_are_letters_are_not_listed_again() -> None:
    shown = write_lettered("Q?\nA. one\nB. two\nAnswer:", ("A", "B"))
    assert shown == "Q?\nA. one\nB. two\n\nAnswer with the letter of one choice alone: A or B.\nAnswer:"


def test_examples_are_answered_by_letters() -> None:
    config = {**TASK, "fewshot_split": "shots", "num_fewshot": 1, "fewshot_config": {"sampler": "first_n"}}
    built = build_task(config, {"test": DOCS, "shots": DOCS[2:3]}, Asking(multiple_choice_by="letter"))
    request = built.requests[0]
    assert isinstance(request, Generate)
    assert "A, B or C.\nAnswer: C\n\nQuestion: Which is a fruit?" in request.prompt


def test_several_inputs_are_whole_texts() -> None:
    config = {**TASK, "doc_to_text": "gold", "doc_to_target": "{{'grows.'}}"}
    built = build_task(config, {"test": DOCS}, Asking(multiple_choice_by="letter"))
    request = built.requests[0]
    assert isinstance(request, Generate)
    assert request.prompt.startswith("A. pear grows.\nB. spade grows.")
    assert built.samples[2].gold == "C"


def test_a_task_file_may_say_so_and_a_run_overrides_it() -> None:
    own = {**TASK, "multiple_choice_by": "letter"}
    assert isinstance(build_task(own, {"test": DOCS}, Asking()).requests[0], Generate)
    again = build_task(own, {"test": DOCS}, Asking(multiple_choice_by="likelihood"))
    assert not isinstance(again.requests[0], Generate)
    other = {"task": "t", "test_split": "test", "doc_to_text": "q", "doc_to_target": "q"}
    assert build_task(other, {"test": DOCS}, Asking(multiple_choice_by="letter")).task.filters == ()
    with pytest.raises(EvalError, match="expected output_type multiple_choice with multiple_choice_by"):
        build_task({**other, "multiple_choice_by": "letter"}, {"test": DOCS}, Asking())
    with pytest.raises(EvalError, match="unknown multiple_choice_by 'leter'; did you mean 'letter'"):
        build_task({**TASK, "multiple_choice_by": "leter"}, {"test": DOCS}, Asking())
    lost = {**TASK, "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}, {"metric": "brier_score"}]}
    warned = build_task(lost, {"test": DOCS}, Asking(multiple_choice_by="letter")).warnings
    assert warned == (
        "multiple_choice_by: letter does not measure acc_norm, brier_score, which needs likelihoods - at things",
    )


@pytest.mark.parametrize("gold", [7, -100, "hammer", [0, 9], []])
def test_a_gold_that_is_no_choice_is_no_wrong_answer(gold: object) -> None:
    docs = [DOCS[0], {**DOCS[1], "gold": gold}]
    built = build_task(TASK, {"test": docs}, Asking(multiple_choice_by="letter"))
    warned = f"1 of 2 documents have a gold that is none of their choices; the first: doc 1, {gold!r} - at things"
    assert built.warnings[-1] == warned
    answers = [Answer(Instance("things", at, 0, one), ("A",)) for at, one in enumerate(built.requests)]
    scored = score_task(built.task, built.samples, answers).column("acc,letter")
    assert [type(one).__name__ for _, one in list_outcomes(scored)] == ["Ok", "Unscorable"]


def test_nothing_of_letters_is_unknown() -> None:
    assert build_task(TASK, {"test": DOCS}, Asking(multiple_choice_by="letter_logprobs")).warnings == ()


# --- runs -----------------------------------------------------------------------------------------------------------


def reply_to(body: Mapping[str, object]) -> str:
    asked = json.dumps(body.get("messages", body.get("prompt")))
    return next(said for doc, said in zip(DOCS, SAID, strict=True) if str(doc["q"]) in asked)


def say(number: int, body: dict[str, object]) -> tuple[int, dict[str, str], bytes]:
    text = reply_to(body)
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return 200, {}, json.dumps({"choices": [choice]}).encode()


def say_tokens(number: int, body: dict[str, object]) -> tuple[int, dict[str, str], bytes]:
    """The first token is never a letter; letters are among the likeliest, the right one before the others."""
    asked = json.dumps(body["messages"])
    gold = next("ABC"[int(str(doc["gold"]))] for doc in DOCS if str(doc["q"]) in asked)
    others = [{"token": f" {one}", "logprob": -3.0, "bytes": None} for one in "ABC" if one != gold]
    tops = [{"token": "The", "logprob": -0.5, "bytes": None}, {"token": gold, "logprob": -1.5, "bytes": None}, *others]
    first = {**tops[0], "top_logprobs": tops}
    message = {"role": "assistant", "content": "The"}
    choice = {"index": 0, "finish_reason": "length", "message": message, "logprobs": {"content": [first]}}
    assert body["logprobs"] is True
    assert body["top_logprobs"] == 20
    assert body["max_tokens"] == 1
    assert "choose_letter" not in body
    return 200, {}, json.dumps({"choices": [choice]}).encode()


def write_task(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "docs.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in DOCS))
    data = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(folder / "docs.jsonl")}}}
    (folder / "things.yaml").write_text(json.dumps({**TASK, **data}))
    return folder / "things.yaml"


def run_letters(folder: Path, out: str, by: str | None, script: object, model: str = "local-chat-completions") -> Path:
    task = write_task(folder)
    with serve(script=script) as server:
        args = f"model=toy,base_url={server.url},max_retries=1"
        way = [] if by is None else ["--multiple_choice_by", by]
        where = ["--output_path", str(folder / out), "--apply_chat_template"]
        given = [] if model == "dummy" else ["--model_args", args]
        code = main(["run", "--model", model, *given, "--tasks", str(task), *where[: 3 if given else 2], *way])
    assert code == 0
    return folder / out


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def read_numbers(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "results.json").read_text())["results"]["things"]
    return found


def test_acc_by_letter_counted_by_hand(tmp_path: Path) -> None:
    numbers = read_numbers(run_letters(tmp_path, "run", "letter", say))
    by_name = {key.partition(",")[0]: value for key, value in numbers.items() if key.endswith(",letter")}
    assert by_name["acc"] == 2 / 4  # an unread letter is wrong
    assert by_name["extraction_rate"] == 3 / 4  # and counted
    assert not any(key.startswith("acc_norm") or key == "acc,none" for key in numbers)


def test_the_recipe_says_by_letter_and_scoring_again_gives_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_letters(tmp_path, "run", "letter", say)
    whole = json.loads((folder / "results.json").read_text())
    assert "filter:letter|multiple_choice_by:letter|steps:strip_thinking>letter>take_first" in json.dumps(whole)
    again = evalcore.score(folder)
    assert again.report.task("things")["acc,letter"].value == 0.5
    assert again.report.task("things")["extraction_rate,letter"].value == 0.75
    assert main(["explain", str(folder), "--task", "things", "--doc", "2"]) == 0
    assert "no letter was found" in capsys.readouterr().out


def test_first_token_log_probabilities_choose_where_the_server_gives_them(tmp_path: Path) -> None:
    numbers = read_numbers(run_letters(tmp_path, "run", "letter_logprobs", say_tokens))
    assert numbers["acc,letter_logprobs"] == 1.0


def test_a_server_without_them_fails_the_document_and_says_what_to_do(tmp_path: Path) -> None:
    task = write_task(tmp_path)
    with serve(script=say) as server:
        made = evalcore.run(
            {
                "model": "local-chat-completions",
                "model_args": {"model": "toy", "base_url": server.url, "max_retries": 0},
                "tasks": [str(task)],
                "multiple_choice_by": "letter_logprobs",
                "output_path": str(tmp_path / "out"),
                "allow_failures": "100%",
            }
        )
    assert made.report.task("things")["acc,letter_logprobs"].counts.failed == 4


def test_letters_are_never_compared_with_likelihoods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = run_letters(tmp_path, "letters", "letter", say)
    two = run_letters(tmp_path, "likelihoods", None, say, model="dummy")
    capsys.readouterr()
    code = main(["compare", str(one), str(two)])
    said = capsys.readouterr()
    assert "asked in other ways, which are no measure of each other" in said.out + said.err
    assert "--match-filter" not in said.out + said.err
    assert code in (1, 2)
    assert main(["compare", str(one), str(two), "--match-filter", "letter=none"]) == 2
    assert "no document is in two runs" in capsys.readouterr().err  # one target is a letter, the other an index


def test_groups_average_letters_under_their_own_key(tmp_path: Path) -> None:
    write_task(tmp_path)
    group = {"group": "all_things", "task": ["things"], "aggregate_metric_list": [{"metric": "acc"}]}
    (tmp_path / "group.yaml").write_text(json.dumps(group))
    with serve(script=say) as server:
        made = evalcore.run(
            {
                "model": "local-chat-completions",
                "model_args": {"model": "toy", "base_url": server.url},
                "tasks": ["all_things"],
                "include_path": str(tmp_path),
                "multiple_choice_by": "letter",
                "output_path": str(tmp_path / "out"),
            }
        )
    assert made.results["groups"]["all_things"]["acc,letter"] == 0.5


def test_a_chat_server_that_is_asked_for_likelihoods_advises_letters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(script=say) as server:
        args = f"model=toy,base_url={server.url}"
        given = ["--model", "local-chat-completions", "--model_args", args, "--tasks", str(write_task(tmp_path))]
        assert main(["run", *given, "--output_path", str(tmp_path / "out")]) == 2
    assert "multiple_choice_by: letter" in capsys.readouterr().err
