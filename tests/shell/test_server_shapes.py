"""Stand-ins for SGLang and llama-server: the shapes of log-probabilities that each really returns."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import isclose

import pytest
from fault_server import Server, answer, echo, likeliest, logprob, serve, tokenize

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure, Generate, Likelihood, LogLikelihood, Request, freeze_options
from evalcore.shell.models.model import Heard, Question
from evalcore.shell.models.openai.arguments import ServerKind
from evalcore.shell.models.openai.backend import open_server
from evalcore.shell.models.openai.http_faults import Wrong
from evalcore.shell.models.openai.logprobs import read_columns

COMPLETIONS, CHAT = ServerKind("local-completions"), ServerKind("local-chat-completions", chat=True)
Body = dict[str, object]
Raw = tuple[int, dict[str, str], bytes]
LETTER = freeze_options(max_gen_toks=1, temperature=0.0, choose_letter="ABCD")


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


Script = Callable[[int, Body], Raw]


def reply(choice: Body) -> Raw:
    return 200, {}, json.dumps({"object": "text_completion", "choices": [{"index": 0, **choice}]}).encode()


def sglang(number: int, body: Body) -> Raw:
    """Columns as OpenAI's; offsets are -1 throughout, and the first token has neither value nor alternatives."""
    prompt = str(body["prompt"])
    if not body.get("echo"):
        token, value = likeliest(prompt)
        columns: Body = {"tokens": [token], "token_logprobs": [value], "top_logprobs": [{token: value}]}
        return reply({"text": token, "finish_reason": "length", "logprobs": {**columns, "text_offset": [-1]}})
    columns = echo(prompt, False)
    offsets = [-1] * len(tokenize(prompt)) + [-1]
    text = prompt + likeliest(prompt)[0]
    return reply({"text": text, "finish_reason": "length", "logprobs": {**columns, "text_offset": offsets}})


def record(token: str, value: float, others: dict[str, float]) -> Body:
    tops = [{"id": 7, "token": one, "bytes": list(one.encode()), "logprob": lp} for one, lp in others.items()]
    return {"id": 7, "token": token, "bytes": list(token.encode()), "logprob": value, "top_logprobs": tops}


def older_llama_server(number: int, body: Body) -> Raw:
    """As the newer, but ``echo`` is an error of the server's own."""
    if body.get("echo"):
        error = {"code": 500, "message": "Only no echo is supported", "type": "server_error"}
        return 500, {}, json.dumps({"error": error}).encode()
    return llama_server(number, body)


def llama_server(number: int, body: Body) -> Raw:
    """A record for each generated token, on both endpoints; ``echo`` has no effect."""
    asked = json.dumps(body["messages"]) if "messages" in body else str(body["prompt"])
    token, value = likeliest(asked)
    others = {token: value, " B": -1.5, "C": -1.25, "b": -0.1, "I": -0.2}  # "I" is no choice of four
    logprobs = {"content": [record(token, value, others)]}
    if "messages" in body:
        message = {"role": "assistant", "content": token}
        return reply({"finish_reason": "length", "message": message, "logprobs": logprobs})
    return reply({"text": token, "finish_reason": "length", "logprobs": logprobs})


def ask(kind: ServerKind, request: Request, script: object, **args: object) -> tuple[Heard, Server]:
    with serve(script=script) as server:
        made = open_server(kind, {"model": "toy", "base_url": server.url, "max_retries": 3, **args}, base=0.001)
        [heard] = [one for one in made.ask([Question(request)]) if isinstance(one, Heard)]
    return heard, server


def test_sglang_gives_likelihoods_without_offsets() -> None:
    heard, _ = ask(COMPLETIONS, LogLikelihood("One two", " three four"), sglang)
    assert isinstance(heard.reply, Likelihood)
    wanted = logprob("One two", " three") + logprob("One two three", " four")
    assert isclose(heard.reply.value, wanted)
    assert heard.reply.tokens == 2


@pytest.mark.parametrize(
    ("script", "asked", "reason"),
    [(older_llama_server, 2, "Only no echo is supported"), (llama_server, 3, "did not echo the prompt token by token")],
    ids=["older", "newer"],
)
def test_llama_server_cannot_give_likelihoods_and_the_message_says_what_can(
    script: Script, asked: int, reason: str
) -> None:
    with serve(script=script) as server:
        made = open_server(COMPLETIONS, {"model": "toy", "base_url": server.url, "max_retries": 9}, base=0.001)
        with pytest.raises(EvalError) as caught:
            list(made.ask([Question(LogLikelihood("a", " b"))]))
    said = str(caught.value)
    assert reason in said
    for advice in (
        "model: llama runs its GGUF file",
        "model: hf",
        "vLLM and SGLang echo",
        "multiple_choice_by: letter",
    ):
        assert advice in said
    assert len(server.bodies) == asked  # a refusal is not tried again


@pytest.mark.parametrize("kind", [COMPLETIONS, CHAT])
def test_llama_server_gives_letters_by_the_first_token(kind: ServerKind) -> None:
    heard, server = ask(kind, Generate("Which?", LETTER), llama_server)
    assert heard.reply == "C"  # the likeliest capital letter, whatever was generated
    assert heard.finish == "stop"  # a letter was asked for: nothing is cut off
    sent = server.bodies[0]
    assert sent["logprobs"] == (True if kind.chat else 5)
    assert sent.get("top_logprobs") == (20 if kind.chat else None)


def test_columns_give_letters_as_well() -> None:
    def script(number: int, body: Body) -> Raw:
        tops = {" The": -0.2, " A": -2.0, "\u2581D": -1.0}
        columns = {"tokens": [" The"], "token_logprobs": [-0.2], "top_logprobs": [tops]}
        return reply({"text": " The", "finish_reason": "length", "logprobs": columns})

    assert ask(COMPLETIONS, Generate("Which?", LETTER), script)[0].reply == "D"


def test_no_letter_among_the_likeliest_leaves_the_text() -> None:
    def script(number: int, body: Body) -> Raw:
        first = record("The", -0.1, {"The": -0.1, "An": -2.0})
        return reply({"message": {"content": "The"}, "finish_reason": "length", "logprobs": {"content": [first]}})

    assert ask(CHAT, Generate("Which?", LETTER), script)[0].reply == "The"


def test_a_server_without_log_probabilities_fails_the_question() -> None:
    def script(number: int, body: Body) -> Raw:
        return 200, {}, json.dumps(answer("/v1/chat/completions", body)).encode()

    heard, server = ask(CHAT, Generate("Which?", LETTER), script)
    assert isinstance(heard.reply, Failure)
    assert "bad_logprobs: the reply has none" in heard.reply.reason
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    "damaged",
    [None, [], {}, {"content": [7]}, {"content": [{"token": 7}]}, {"tokens": ["a"]}, {"tokens": [], "content": {}}],
)
def test_damaged_log_probabilities_are_refused(damaged: object) -> None:
    with pytest.raises(Wrong, match="bad_logprobs"):
        read_columns(damaged)
