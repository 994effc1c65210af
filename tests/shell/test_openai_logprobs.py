"""Likelihoods from echoed log-probabilities: right, or refused."""

from __future__ import annotations

import json
from math import inf, isclose, nan

import pytest
from fault_server import answer, continue_text, echo, likeliest, logprob, serve, tokenize
from hypothesis import given
from hypothesis import strategies as st

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure, Likelihood, LogLikelihood, Reply, Request, Rolling
from evalcore.shell.models.model import Question
from evalcore.shell.models.openai.arguments import ServerKind
from evalcore.shell.models.openai.backend import open_server
from evalcore.shell.models.openai.http_faults import Wrong
from evalcore.shell.models.openai.logprobs import find_offsets, place_text, read_likelihood

COMPLETIONS = ServerKind("local-completions")


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def ask(request: Request, script: object = None, shifted: bool = False, **args: object) -> Reply:
    with serve(script=script, shifted=shifted) as server:
        made = open_server(COMPLETIONS, {"model": "toy", "base_url": server.url, "max_retries": 1, **args}, base=0.001)
        [heard] = made.ask([Question(request)])
    assert heard.finish == ""
    return heard.reply


def expected(context: str, continuation: str) -> Likelihood:
    """From the toy model itself."""
    before, total, greedy, words = context, 0.0, True, tokenize(continuation)
    for word in words:
        total += logprob(before, word)
        greedy &= likeliest(before)[0] == word
        before += word
    return Likelihood(total, greedy, len(words))


@pytest.mark.parametrize(
    ("context", "continuation"),
    [("The sky is", " blue"), ("One two", " three four five"), ("Zeile\nÜber dem 🌧", " Regen 🌈 und"), ("Q:", "\n\nA")],
)
def test_the_likelihood_is_the_models_own(context: str, continuation: str) -> None:
    found = ask(LogLikelihood(context, continuation))
    wanted = expected(context, continuation)
    assert isinstance(found, Likelihood)
    assert isclose(found.value, wanted.value)
    assert found[1:] == wanted[1:]


def test_greedy_is_what_the_model_would_say() -> None:
    text, _ = continue_text("Then came", 4, [], 0)
    found, wrong = ask(LogLikelihood("Then came", text)), ask(LogLikelihood("Then came", text + " else"))
    assert isinstance(found, Likelihood)
    assert isinstance(wrong, Likelihood)
    assert found.greedy
    assert not wrong.greedy


def test_spaces_at_the_end_of_a_context_belong_to_the_continuation() -> None:
    assert ask(LogLikelihood("The sky is ", "blue")) == ask(LogLikelihood("The sky is", " blue"))


def test_a_token_across_the_boundary_counts_with_the_context() -> None:
    found = ask(LogLikelihood("The sk", "y is blue"))
    assert isinstance(found, Likelihood)
    assert found.tokens == 2
    assert ask(LogLikelihood("The sk", "y")) == Failure("bad_logprobs: no token begins within the continuation")


def test_a_text_without_context_follows_the_given_beginning() -> None:
    assert "give eos_string" in str(ask(LogLikelihood("", "One two")))
    assert "give eos_string" in str(ask(Rolling("One two")))
    assert "give eos_string" in str(ask(LogLikelihood("  ", "One two")))
    found, whole = ask(LogLikelihood("", " One two"), eos_string="</s>"), ask(Rolling(" One two"), eos_string="</s>")
    assert found == ask(LogLikelihood("</s>", " One two"))
    assert isinstance(found, Likelihood)
    assert found.tokens == 2
    assert type(whole) is float
    assert whole == found.value


def test_a_beginning_that_the_server_adds_by_itself_is_enough() -> None:
    def script(number: int, body: dict[str, object]) -> tuple[int, dict[str, str], bytes]:
        prompt = str(body["prompt"])
        made = echo("<s> " + prompt, False)
        columns = {name: list(column) for name, column in made.items() if isinstance(column, list)}
        columns["tokens"][:2] = ["<s>", tokenize(prompt)[0]]
        columns["text_offset"] = [0, *(start + 3 for start in columns["text_offset"][1:])]  # as vLLM counts
        return 200, {}, json.dumps({"choices": [{"index": 0, "logprobs": columns}]}).encode()

    found = ask(LogLikelihood("", "One two three"), script, check_logprobs=False)
    assert isinstance(found, Likelihood)
    assert found.tokens == 3
    assert ask(Rolling("One two three"), script, check_logprobs=False) == found.value


def test_nothing_is_cut() -> None:
    text = " word" * 30
    assert "too_long: 31 tokens, more than max_length 20" in str(ask(LogLikelihood("x", text), max_length=20))
    assert isinstance(ask(LogLikelihood("x", text), max_length=31), Likelihood)
    refusal = (400, {}, b'{"error": {"message": "maximum context length is 16"}}')
    assert ask(Rolling("x" + text), lambda number, body: refusal if "word" in str(body["prompt"]) else None) == Failure(
        "http_400: maximum context length is 16"
    )


# --- servers that are not to be believed ------------------------------------------------------------------------------


def test_a_shifted_echo_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(EvalError, match=r"are not those of their tokens: ' \w+' after '1 2 3.*one token late"):
        ask(LogLikelihood("The sky is", " blue"), shifted=True)
    assert isinstance(ask(LogLikelihood("The sky is", " blue"), shifted=True, check_logprobs=False), Likelihood)


def test_a_first_token_with_a_probability_is_refused() -> None:
    def script(number: int, body: dict[str, object]) -> tuple[int, dict[str, str], bytes] | None:
        made = answer("/v1/completions", body)
        if body.get("echo"):
            made["choices"][0]["logprobs"]["token_logprobs"][0] = -1.0  # type: ignore[index]
        return 200, {}, json.dumps(made).encode()

    with pytest.raises(EvalError, match="to the first token of a text"):
        ask(LogLikelihood("a", " b"), script)


def test_a_server_that_does_not_echo_is_refused() -> None:
    def script(number: int, body: dict[str, object]) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, json.dumps(answer("/v1/completions", {**body, "echo": False})).encode()

    with pytest.raises(EvalError, match=r"does not echo log-probabilities.*first tokens are"):
        ask(LogLikelihood("a", " b"), script)
    with pytest.raises(EvalError, match="gives no log-probabilities: bad_logprobs: a generated token comes without"):
        ask(LogLikelihood("a", " b"), lambda number, body: (200, {}, b'{"choices": [{"index": 0, "text": " x"}]}'))


def test_generation_needs_no_check_and_likelihoods_only_one() -> None:
    with serve() as server:
        made = open_server(COMPLETIONS, {"model": "toy", "base_url": server.url})
        list(made.ask([Question(LogLikelihood("a", f" {word}")) for word in "bcdef"]))
        assert len(server.bodies) == 2 + 5


def changed(**columns: object) -> bytes:
    good = echo("The sky is blue", False)
    return json.dumps({"choices": [{"index": 0, "logprobs": {**good, **columns}}]}).encode()


NUMBERS = [None, -1.0, -1.0, -1.0, -1.0]


@pytest.mark.parametrize(
    "content",
    [
        b'{"choices": [{"index": 0}]}',
        b'{"choices": [{"index": 0, "logprobs": null}]}',
        b'{"choices": [{"index": 0, "logprobs": {}}]}',
        b'{"choices": [{"index": 0, "logprobs": []}]}',
        *(changed(token_logprobs=[None, -1.0, -1.0, bad, -1.0]) for bad in (None, nan, inf, 0.5, "x", True, [1])),
        changed(token_logprobs=NUMBERS[:-1]),
        changed(token_logprobs=None),
        changed(tokens=["The", " sky", " is", " blue"]),
        changed(tokens=["The", " sky", " is", " green", " x"]),
        changed(tokens=[1, 2, 3, 4, 5]),
        changed(tokens=["TheĠ", "skyĠ", "isĠ", "blue", "x"], text_offset=[0, 4, 8, 11, 15]),
        changed(top_logprobs=None),
        changed(top_logprobs=[None] * 5),
        changed(top_logprobs=[None, {}, {}, {}, {}]),
        changed(top_logprobs=[None, *[{"a": "b"}] * 4]),
    ],
)
def test_broken_logprobs_are_named_and_never_a_number(content: bytes) -> None:
    with pytest.raises(Wrong, match=r"^bad_logprobs: ") as caught:
        read_likelihood(content, "The sky is blue", 10, 2048)
    assert caught.value.again == 0


def test_minus_infinity_is_a_likelihood() -> None:
    tops = [None, *[{"x": -0.5}] * 4]
    found = read_likelihood(
        changed(token_logprobs=[None, -1, -1, -inf, -1], top_logprobs=tops), "The sky is blue", 10, 99
    )
    assert found == Likelihood(-inf, False, 1)


@given(st.text(max_size=30), st.integers(0, 2), st.lists(st.integers(0, 30), max_size=6))
def test_offsets_follow_from_the_tokens(text: str, extra: int, cuts: list[int]) -> None:
    places = sorted({0, *(cut for cut in cuts if 0 < cut < len(text))})
    tokens = [text[a:b] for a, b in zip(places, [*places[1:], len(text)], strict=True)]
    found = find_offsets(["<|begin of text|>"] * extra + tokens, None, text) if text else None
    assert found == ([-1] * extra + places if text else None)


def test_given_offsets_are_used_for_parts_of_characters_and_only_if_they_fit() -> None:
    text = "Hi 🌧 there"
    tokens = ["Hi", "bytes: \\xf0\\x9f", "bytes:\\x8c\\xa7", " there", " x"]
    assert find_offsets(tokens, [0, 2, 3, 4, 10], text) == [0, 2, 3, 4, 10]
    assert find_offsets(tokens, [0, 2, 3, 6, 12], text) is None
    assert find_offsets(tokens, [0, 3, 2, 4, 10], text) is None
    assert find_offsets(tokens, [0, 2, 3], text) is None
    assert find_offsets(tokens, ["0", 2, 3, 4, 10], text) is None
    assert find_offsets([], [], text) is None


@given(st.text(max_size=12), st.text(min_size=1, max_size=12), st.none() | st.text(max_size=3))
def test_the_whole_text_is_sent_and_the_place_is_in_it(context: str, continuation: str, before: str | None) -> None:
    prompt, start = place_text(LogLikelihood(context, continuation), before)
    assert prompt.endswith(context + continuation)
    assert prompt[start:].lstrip() == (context[len(context.rstrip()) :] + continuation).lstrip()
