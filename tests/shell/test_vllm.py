"""vLLM in this process, beside a stand-in of its API: a bigram model of characters. vLLM itself is not run here."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from math import isclose, log
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import pytest

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure, Generate, Likelihood, LogLikelihood, Reply, Request, Rolling
from evalcore.core.records.request import freeze_options as options
from evalcore.shell.models import find_backend
from evalcore.shell.models.model import Heard, Notice, Question
from evalcore.shell.models.vllm.vllm_work import read_likelihood

LETTERS = "^abcdefgh .?"
"""The vocabulary; the first is the beginning and the end of a text."""

SPECIAL = "?"
"""A token that vLLM leaves out of texts unless told otherwise."""


class Tokenizer:
    """Characters as tokens."""

    bos_token_id = eos_token_id = 0
    special_tokens_map: ClassVar = {"bos_token": "^", "eos_token": "^"}
    chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}{{ '?' if add_generation_prompt }}"

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return [0] * add_special_tokens + [LETTERS.index(one) for one in text]

    def __call__(self, texts: Sequence[str], add_special_tokens: bool = True) -> dict[str, list[list[int]]]:
        return {"input_ids": [self.encode(text, add_special_tokens) for text in texts]}

    def decode(self, tokens: Sequence[int], skip_special_tokens: bool = False) -> str:
        return "".join(LETTERS[one] for one in tokens if one or not skip_special_tokens)


def rank_next(last: int) -> list[int]:
    """Tokens from the likeliest on: the next letter of the vocabulary comes first."""
    return [(last + step) % len(LETTERS) for step in range(1, len(LETTERS) + 1)]


def logprob(last: int, token: int) -> float:
    weights = [1 / (1 + at) ** 2 for at in range(len(LETTERS))]
    return log(weights[rank_next(last).index(token)] / sum(weights))


class SamplingParams:
    def __init__(self, **given: object) -> None:
        known = {
            "temperature",
            "top_k",
            "top_p",
            "min_p",
            "repetition_penalty",
            "max_tokens",
            "stop",
            "seed",
            "prompt_logprobs",
            "detokenize",
            "skip_special_tokens",
            "spaces_between_special_tokens",
        }
        assert set(given) <= known
        vars(self).update({"stop": None, "prompt_logprobs": None, "skip_special_tokens": True, **given})


class LLM:
    """What the backend uses of ``vllm.LLM``."""

    made: SimpleNamespace = SimpleNamespace()

    def __init__(self, **given: object) -> None:
        LLM.made = SimpleNamespace(given=given, asked=[])
        if given["model"] == "missing":
            raise OSError("missing is no model")
        self.longest = int(str(given.get("max_model_len", 40)))
        self.llm_engine = SimpleNamespace(model_config=SimpleNamespace(max_model_len=self.longest))

    def get_tokenizer(self) -> Tokenizer:
        return Tokenizer()

    def generate(
        self, prompts: list[dict[str, list[int]]], how: list[SamplingParams], use_tqdm: bool, lora_request: object
    ) -> list[object]:
        assert len(prompts) == len(how)
        LLM.made.lora = lora_request
        LLM.made.asked.append(list(zip(prompts, how, strict=True)))
        return [self.answer(one["prompt_token_ids"], two) for one, two in zip(prompts, how, strict=True)]

    def answer(self, tokens: list[int], how: SamplingParams) -> object:
        assert len(tokens) + 1 <= self.longest  # vLLM refuses a prompt that leaves no room
        said: list[int] = []
        finish, text = "length", ""
        for _ in range(how.max_tokens):  # type: ignore[attr-defined]
            token = rank_next((tokens + said)[-1])[0]
            said.append(token)
            if token == 0:
                finish = "stop"
                break
            text += "" if LETTERS[token] == SPECIAL and how.skip_special_tokens else LETTERS[token]  # type: ignore[attr-defined]
            if stops := [one for one in how.stop or () if one in text]:  # type: ignore[attr-defined]
                text, finish = text.partition(stops[0])[0], "stop"
                break
        rows: list[object] = [None]
        for last, token in pairwise(tokens):
            best = rank_next(last)[0]
            rows.append({one: SimpleNamespace(logprob=logprob(last, one), rank=rank_next(last).index(one) + 1)
                         for one in (best, token)})  # fmt: skip
        given = rows if how.prompt_logprobs else None  # type: ignore[attr-defined]
        output = SimpleNamespace(text=text, token_ids=said, finish_reason=finish)
        return SimpleNamespace(prompt_logprobs=given, outputs=[output], num_cached_tokens=None)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("vllm")
    vars(module).update({"LLM": LLM, "SamplingParams": SamplingParams, "__version__": "0.0"})
    adapters = ModuleType("vllm.lora.request")
    vars(adapters).update({"LoRARequest": lambda *given: given})
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setitem(sys.modules, "vllm.lora", ModuleType("vllm.lora"))
    monkeypatch.setitem(sys.modules, "vllm.lora.request", adapters)


def ask(*requests: Request, **given: object) -> list[Reply]:
    model = find_backend("vllm").open({"pretrained": "toy", **given})
    heard = [one for one in model.ask(list(map(Question, requests))) if isinstance(one, Heard)]
    assert sorted(one.at for one in heard) == list(range(len(requests)))
    return [one.reply for one in sorted(heard, key=lambda one: one.at)]


def expected(context: str, continuation: str) -> Likelihood:
    tokens = Tokenizer().encode(context + continuation)
    pairs = list(pairwise(tokens))[-len(continuation) :]
    return Likelihood(
        sum(logprob(*pair) for pair in pairs), all(rank_next(one)[0] == two for one, two in pairs), len(pairs)
    )


@pytest.mark.parametrize(("context", "continuation"), [("ab", "cd"), ("ab", "ce"), ("a ", "b"), ("", "abc")])
def test_likelihoods_are_the_models_own(context: str, continuation: str) -> None:
    [found] = ask(LogLikelihood(context, continuation))
    moved = len(context) - len(context.rstrip())
    wanted = expected(context.rstrip(), context[len(context) - moved :] + continuation)
    assert isinstance(found, Likelihood)
    assert isclose(found.value, wanted.value)
    assert found[1:] == wanted[1:]


def test_contexts_lose_their_beginning_and_texts_roll() -> None:
    long = "abc" * 9
    [found, whole, failed] = ask(
        LogLikelihood(long, "de"), Rolling(long), LogLikelihood("a", long), max_length=12, batch_size=2
    )
    assert isinstance(found, Likelihood)
    assert isclose(found.value, expected(long, "de").value)
    assert isinstance(whole, float)
    assert isclose(whole, expected("", long).value + logprob(0, 0))  # a BOS token of its own, as in lm-eval
    assert isinstance(failed, Failure)
    assert LLM.made.given["max_model_len"] == 12


def test_texts_stop_at_strings_ends_and_lengths() -> None:
    prompts = [
        ("a", options(until=["f"], max_gen_toks=9)),
        ("g", options(max_gen_toks=9)),
        ("a", options(max_gen_toks=2)),
    ]
    assert ask(*(Generate(*one) for one in prompts)) == ["bcde", "h .?", "bc"]
    stops = [how.stop for _, how in LLM.made.asked[0]]
    assert stops[0] == ["f"]
    assert ask(Generate("a", options(until=["f"], max_gen_toks=9)), think_end_token="d") == ["e"]


def test_a_stop_string_after_thoughts_is_why_a_text_ended() -> None:
    model = find_backend("vllm").open({"pretrained": "toy", "think_end_token": "d"})
    asked = [Question(Generate("a", options(until=[stop], max_gen_toks=6))) for stop in "fc"]
    assert [(one.reply, one.finish) for one in model.ask(asked)] == [("e", "stop"), ("efg", "length")]


def test_stop_strings_and_ends_of_thoughts_may_be_special_tokens() -> None:
    [stopped] = ask(Generate("g", options(until=["?"], max_gen_toks=9)))
    [thought] = ask(Generate("g", options(until=["h"], max_gen_toks=9)), think_end_token="?")
    assert (stopped, thought) == ("h .", "")
    assert LLM.made.asked[0][0][1].stop is None


def test_how_many_requests_lost_their_beginning_is_said() -> None:
    model = find_backend("vllm").open({"pretrained": "toy", "max_length": 12, "batch_size": 1})
    long = "abc" * 9
    asked = [LogLikelihood(long, "de"), LogLikelihood("a", "b"), Generate(long, options(max_gen_toks=2)), Rolling(long)]
    told = [one.text for one in model.ask(list(map(Question, asked))) if isinstance(one, Notice)]
    assert told == ["2 of 4 requests lost their beginning: 12 tokens fit"]


def test_repeats_have_seeds_of_their_own_and_options_reach_the_sampler() -> None:
    model = find_backend("vllm").open({"pretrained": "toy"})
    request = Generate("a", options(do_sample=True, temperature=0.7, top_p=0.9, max_gen_toks=3))
    list(model.ask([Question(request), Question(request, 1)]))
    [(_, one), (_, two)] = LLM.made.asked[0]
    assert (one.temperature, one.top_p, one.max_tokens) == (0.7, 0.9, 3)
    assert one.seed != two.seed
    list(model.ask([Question(Generate("a", options(repetition_penalty=1.5, max_gen_toks=3))), Question(request)]))
    assert [how.repetition_penalty for _, how in LLM.made.asked[1]] == [1.5, 1.0]
    model.check({"repetition_penalty": 1.5})
    with pytest.raises(EvalError, match="no generation option num_beams"):
        model.check({"num_beams": 4})
    with pytest.raises(EvalError, match="letter_logprobs is for servers"):
        model.check({"choose_letter": "ABCD"})


def test_chat_templates_and_identity() -> None:
    model = find_backend("vllm").open({"pretrained": "org/toy", "gpu_memory_utilization": 0.5})
    assert model.chat is not None
    assert model.chat([{"role": "user", "content": "ab"}], True) == "ab?"
    assert "gpu_memory_utilization" not in model.identity
    assert '"max_model_len":40' in model.identity
    assert LLM.made.given["enable_prefix_caching"] is True


def test_wrong_arguments_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = find_backend("vllm").open
    with pytest.raises(EvalError, match="vLLM cannot load missing: missing is no model - at model_args of vllm"):
        opened({"pretrained": "missing"})
    with pytest.raises(EvalError, match="name the commit that you read as revision"):
        opened({"pretrained": "toy", "trust_remote_code": True})
    with pytest.raises(EvalError, match="expected max_model_len or max_length, got both"):
        opened({"pretrained": "toy", "max_length": 9, "max_model_len": 9})
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(EvalError, match=r'pip install "evalcore\[vllm\]"'):
        opened({"pretrained": "toy"})


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (RuntimeError("CUDA out of memory. Tried 2 GiB.\nMore"), r"CUDA out of memory\. Tried 2 GiB\.; try a smaller"),
        (ValueError("Token id 99 is out of vocabulary"), r"Token id 99 is out of vocabulary; are max_model_len \(40\)"),
        (AssertionError(), "AssertionError; what vLLM wrote above says why"),
    ],
)
def test_an_engine_that_fails_ends_in_a_line(raised: Exception, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = find_backend("vllm").open({"pretrained": "toy", "batch_size": 1})
    replies = model.ask([Question(LogLikelihood("a", "b")), Question(LogLikelihood("a", "c"))])
    assert isinstance(next(replies), Heard)

    def fail(*given: object, **more: object) -> None:
        raise raised

    monkeypatch.setattr(LLM, "generate", fail)
    with pytest.raises(EvalError, match=f"^the model cannot go on: {told}") as wrong:
        list(replies)
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize("value", [float("nan"), 0.5])
def test_log_probabilities_that_cannot_be_are_refused(value: float) -> None:
    rows = [None, {7: SimpleNamespace(logprob=-0.5, rank=1)}, {8: SimpleNamespace(logprob=value, rank=1)}]
    with pytest.raises(EvalError, match="expected log-probabilities of at most 0"):
        read_likelihood(rows, (5,), (7, 8))
