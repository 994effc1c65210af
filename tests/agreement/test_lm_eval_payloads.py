"""The bodies that lm-eval 0.4.13's own API models build, and ours, for the same requests; and what each reads from a reply."""

from __future__ import annotations

import copy
import json
import logging
import sys
from collections.abc import Iterator, Mapping
from math import isclose
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("lm_eval")

from lm_eval.api.instance import Instance
from lm_eval.models.openai_completions import (
    LocalChatCompletion,
    LocalCompletionsAPI,
    OpenAIChatCompletion,
    OpenAICompletionsAPI,
)

from evalcore.core.records.request import Generate, LogLikelihood
from evalcore.shell.models.model import Question
from evalcore.shell.models.openai.arguments import ServerKind, ServerSettings
from evalcore.shell.models.openai.backend import open_server
from evalcore.shell.models.openai.body import (
    is_reasoning,
    parse_messages,
    read_generation,
    render_messages,
    write_generation,
)
from evalcore.shell.models.openai.logprobs import place_text, read_likelihood, write_echo

sys.path.insert(0, str(Path(__file__).parents[1] / "shell"))
from fault_server import echo, serve, tokenize

THEIRS: Mapping[str, type[LocalCompletionsAPI]] = {
    "local-completions": LocalCompletionsAPI,
    "local-chat-completions": LocalChatCompletion,
    "openai-completions": OpenAICompletionsAPI,
    "openai-chat-completions": OpenAIChatCompletion,
}
KINDS = {name: ServerKind(name, "chat" in name, name.startswith("openai")) for name in THEIRS}
MODELS = ["m", "gpt-4o", "o1-mini", "o3", "o4-mini", "gpt-5", "davinci-002"]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def lm_eval_model(name: str, model: str, **args: object) -> LocalCompletionsAPI:
    return THEIRS[name](model=model, base_url="http://localhost/v1", tokenizer_backend=None, **args)  # type: ignore[arg-type]


def lm_eval_body(of: LocalCompletionsAPI, prompt: str, gen_kwargs: dict[str, object], chat: bool) -> dict[str, object]:
    """As its ``model_call`` builds it, for one request at a time."""
    message = of.create_message([of.apply_chat_template(parse_messages(prompt)) if chat else prompt])
    made = of._create_payload(
        message, generate=True, gen_kwargs=copy.deepcopy(gen_kwargs), seed=of._seed, eos=of.eos_string
    )
    assert isinstance(made, dict)
    return made


texts = st.text(max_size=8)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "until": st.lists(texts, max_size=6) | texts | st.none(),
        "do_sample": st.booleans(),
        "temperature": st.floats(0, 2),
        "max_gen_toks": st.integers(1, 4096),
        "max_tokens": st.integers(1, 4096),
        "top_p": st.floats(0, 1),
        "seed": st.integers(0, 99),
        "stop": st.lists(texts, max_size=2),
        "extra_body": st.dictionaries(texts, st.integers() | st.lists(st.integers(), max_size=2), max_size=2),
    },
)


@pytest.mark.parametrize("name", THEIRS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    options=OPTIONS,
    prompt=st.text(min_size=1, max_size=8),
    model=st.sampled_from(MODELS),
    eos=st.none() | st.just("</s>"),
    most=st.integers(1, 999),
    seed=st.integers(0, 9999),
)
def test_generation_bodies_are_equal(
    name: str, options: dict[str, object], prompt: str, model: str, eos: str | None, most: int, seed: int
) -> None:
    kind = KINDS[name]
    of = lm_eval_model(name, model, eos_string=eos, max_gen_toks=most, seed=seed)
    ours = ServerSettings(model, eos_string=eos, max_gen_toks=most, seed=seed)
    frozen = Generate(prompt, options).options  # type: ignore[arg-type]
    assert write_generation(kind, ours, prompt, frozen) == lm_eval_body(of, prompt, options, kind.chat)


@pytest.mark.parametrize("name", ["local-chat-completions", "openai-chat-completions"])
def test_chats_are_rendered_and_sent_alike(name: str) -> None:
    messages = [{"role": "system", "content": "Sé breve."}, {"role": "user", "content": 'Qu\'est-ce "ça" ?\n🌧'}]
    of = lm_eval_model(name, "m")
    theirs = of.apply_chat_template(messages)
    assert render_messages(messages, True) == theirs.prompt  # type: ignore[union-attr]
    assert parse_messages(render_messages(messages, True)) == of.create_message([theirs])  # type: ignore[list-item]


def test_likelihood_bodies_are_equal() -> None:
    of = lm_eval_model("local-completions", "m", seed=5)
    theirs = of._create_payload("a text", generate=False, seed=of._seed)
    assert write_echo(ServerSettings("m", seed=5), "a text") == theirs


def test_where_the_bodies_differ_on_purpose() -> None:
    """lm-eval takes any name with a 5 for a reasoning model; see docs/models.md."""
    of, kind = lm_eval_model("openai-chat-completions", "gpt-3.5-turbo"), KINDS["openai-chat-completions"]
    theirs = lm_eval_body(of, "x", {"until": ["\n"], "temperature": 0.0}, True)
    assert (theirs["temperature"], "stop" in theirs) == (1, False)
    ours = write_generation(kind, ServerSettings("gpt-3.5-turbo"), "x", {"until": ["\n"], "temperature": 0.0})
    assert (ours["temperature"], ours["stop"]) == (0.0, ["\n"])
    asked = write_generation(
        kind, ServerSettings("gpt-3.5-turbo", reasoning=True), "x", {"until": ["\n"], "temperature": 0.0}
    )
    assert asked == theirs
    assert not is_reasoning("gpt-3.5-turbo")


@pytest.mark.parametrize("text", ["plain", "", "a<think>b</think> c", " </think>\n x </think> y"])
@pytest.mark.parametrize("think_end", [None, "</think>"])
def test_replies_are_read_alike(text: str, think_end: str | None) -> None:
    reply = {"choices": [{"index": 0, "text": text, "message": {"content": text}, "finish_reason": "stop"}]}
    content = json.dumps(reply).encode()
    plain, chat = (
        lm_eval_model("local-completions", "m"),
        lm_eval_model("local-chat-completions", "m", think_end_token=think_end),
    )
    assert plain.parse_generations(reply) == [read_generation(KINDS["local-completions"], think_end, content)[0]]
    assert chat.parse_generations(reply) == [read_generation(KINDS["local-chat-completions"], think_end, content)[0]]


WORDS = st.lists(st.sampled_from(["river", "stone", "a", "Zug", "🌧"]), min_size=1, max_size=5).map(" ".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(context=WORDS, spaces=st.sampled_from(["", " ", "\n", " \n "]), continuation=WORDS, joined=st.booleans())
def test_likelihoods_are_read_alike(context: str, spaces: str, continuation: str, joined: bool) -> None:
    """lm-eval counts tokens with a tokenizer of its own, evalcore finds them by the text; also where a token crosses."""

    class Counted(LocalCompletionsAPI):
        def tok_encode(self, string: str, *_: object, **__: object) -> list[str]:  # type: ignore[override]
            return tokenize(string)

    of = Counted(model="m", base_url="http://localhost/v1", tokenizer_backend=None)
    request = LogLikelihood(context + spaces, continuation if joined else " " + continuation)
    before, after = of._encode_pair(request.context, request.continuation)
    prompt, start = place_text(request, None)
    reply = {"choices": [{"index": 0, "logprobs": echo(prompt, False)}]}
    if not after:
        return  # lm-eval gives 0, the likelihood of nothing; evalcore a failure
    [(value, greedy)] = of.parse_logprobs(reply, ctxlens=[len(before)])
    found = read_likelihood(json.dumps(reply).encode(), prompt, start, 2048)
    assert isclose(found.value, value)
    assert (found.greedy, found.tokens) == (greedy, len(after))


def test_a_whole_conversation_with_the_same_server() -> None:
    """Both ask the toy server the same; it hears the same bodies and both get the same texts."""
    asked: list[tuple[str, dict[str, object]]] = [
        (f"Question {n}?", {"until": ["\n"], "max_gen_toks": 3 + n}) for n in range(5)
    ]
    with serve() as server:
        of = LocalCompletionsAPI(model="m", base_url=f"{server.url}/completions", tokenizer_backend=None)
        theirs = of.generate_until([Instance("generate_until", {}, one, 0) for one in asked], disable_tqdm=True)
        heard_theirs, server.bodies[:] = list(server.bodies), []
        model = open_server(KINDS["local-completions"], {"model": "m", "base_url": server.url})
        ours = [one.reply for one in model.ask([Question(Generate(prompt, options)) for prompt, options in asked])]  # type: ignore[arg-type]
    assert ours == theirs
    assert sorted(json.dumps(body, sort_keys=True) for body in heard_theirs) == sorted(
        json.dumps(body, sort_keys=True) for body in server.bodies
    )
