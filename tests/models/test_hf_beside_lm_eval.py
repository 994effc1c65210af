"""hf beside lm-eval's own HFLM on one real model: the same greedy flags and texts, likelihoods to 1e-4."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalcore.core.records.request import Generate, Likelihood, LogLikelihood, Reply, Request, Rolling, freeze_options
from evalcore.shell.models.hf.hf_loader import open_hf
from evalcore.shell.models.model import Heard, Model, Question

pytestmark = pytest.mark.models

SHOTS = "".join(f"Question: How many legs have {n} cats?\nAnswer: {4 * n}\n\n" for n in range(1, 6))
OTHER = "".join(f"Question: What is {n} times {n}?\nAnswer: {n * n}\n\n" for n in range(3, 8))
PLACES = ("Paris", "a small village by the sea", "Rome, which is a city in Italy", "the moon")
LETTERS = (" A", " B", " C", " D")


def ask(model: Model, requests: Sequence[Request]) -> list[Reply]:
    """The replies in the order of the requests."""
    heard = (one for one in model.ask([Question(request) for request in requests]) if isinstance(one, Heard))
    return [reply for _, reply in sorted((one.at, one.reply) for one in heard)]


@pytest.fixture(scope="module")
def theirs(small_model: Path) -> Callable[..., Any]:
    from lm_eval.models.huggingface import HFLM

    made: dict[tuple[object, ...], Any] = {}

    def build(**given: object) -> Any:
        key = tuple(sorted(given.items()))
        if key not in made:
            made[key] = HFLM(pretrained=str(small_model), dtype="float32", device="cpu", batch_size=4, **given)
        return made[key]

    return build


@pytest.fixture(scope="module")
def ours(small_model: Path) -> Callable[..., Model]:
    made: dict[tuple[object, ...], Model] = {}

    def build(**given: object) -> Model:
        key = tuple(sorted(given.items()))
        if key not in made:
            made[key] = open_hf({"pretrained": str(small_model), "dtype": "float32", "device": "cpu", **given})
        return made[key]

    return build


def pairs_of(contexts: Sequence[str], choices: Sequence[str]) -> list[LogLikelihood]:
    return [LogLikelihood(context, choice) for context in contexts for choice in choices]


LIKELIHOODS = {
    "one token, five shots": pairs_of([f"{SHOTS}Question: Which letter is {n}?\nAnswer:" for n in "xyz"], LETTERS),
    "many tokens, no shots": pairs_of(
        [f"{name} spent the summer in" for name in ("Anna", "My uncle")], [f" {p}" for p in PLACES]
    ),
    "many tokens, other shots": pairs_of(
        [f"{SHOTS}Anna lives in", f"{OTHER}Anna lives in", "Anna lives in"], [f" {place}" for place in PLACES]
    ),
    "white space and empty contexts": [
        LogLikelihood("Hello ", "world"),
        LogLikelihood("", "Once upon a time"),
        LogLikelihood("Hello\n", " there"),
        LogLikelihood("Hello", " there"),
    ],
    "a context that continues another": [
        LogLikelihood(SHOTS[:200], SHOTS[200:260]),
        LogLikelihood(SHOTS[:260], SHOTS[260:300]),
        LogLikelihood(SHOTS, " 4"),
    ],
}


PROMPTS = (
    *(f"{SHOTS}Question: How many legs has {one}?\nAnswer:" for one in ("a dog", "one very old horse", "an ant")),
    "The capital of France is",
    "Once upon a time",
)
TURNS = (
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "2 + 2?"},
    {"role": "assistant", "content": "4"},
    {"role": "user", "content": "3 + 3?"},
)


def assert_same_likelihoods(ours: Model, theirs: Any, requests: Sequence[LogLikelihood]) -> None:
    asked = [SimpleNamespace(args=(one.context, one.continuation)) for one in requests]
    wanted = theirs.loglikelihood(asked, disable_tqdm=True)
    for mine, (value, greedy) in zip(ask(ours, requests), wanted, strict=True):
        assert isinstance(mine, Likelihood)
        assert mine.value == pytest.approx(value, rel=1e-4, abs=1e-4)
        assert mine.greedy == greedy


def assert_same_rolling(ours: Model, theirs: Any) -> None:
    texts = [SHOTS, OTHER[:90], "A short one."]
    wanted = theirs.loglikelihood_rolling([SimpleNamespace(args=(text,)) for text in texts], disable_tqdm=True)
    assert ask(ours, [Rolling(text) for text in texts]) == pytest.approx(wanted, rel=1e-4)


def assert_same_texts(ours: Model, theirs: Any, **more: object) -> None:
    how = {"until": ["\n\n", "Question:"], "max_gen_toks": 24, **more}
    wanted = theirs.generate_until([SimpleNamespace(args=(one, dict(how))) for one in PROMPTS], disable_tqdm=True)
    assert ask(ours, [Generate(one, freeze_options(how)) for one in PROMPTS]) == wanted


def assert_same_chat(ours: Model, theirs: Any) -> None:
    assert ours.chat is not None
    turns = [dict(one) for one in TURNS]
    assert ours.chat(turns, True) == theirs.apply_chat_template(turns)
    begun = [*turns, {"role": "assistant", "content": "The answer is"}]
    assert ours.chat(begun, False) == theirs.apply_chat_template(begun, add_generation_prompt=False)


@pytest.mark.parametrize("cached", [True, False], ids=["tree", "plain"])
@pytest.mark.parametrize("length", [None, 48], ids=["whole", "truncated"])
@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_likelihoods_are_those_of_lm_eval(
    ours: Callable[..., Model], theirs: Callable[..., Any], kind: str, length: int | None, cached: bool
) -> None:
    given = {} if length is None else {"max_length": length}
    assert_same_likelihoods(ours(prefix_cache=cached, **given), theirs(**given), LIKELIHOODS[kind])


@pytest.mark.parametrize("length", [None, 40], ids=["one window", "windows"])
def test_rolling_likelihoods_are_those_of_lm_eval(
    ours: Callable[..., Model], theirs: Callable[..., Any], length: int | None
) -> None:
    given = {} if length is None else {"max_length": length}
    assert_same_rolling(ours(**given), theirs(**given))


@pytest.mark.parametrize("cached", [True, False], ids=["tree", "plain"])
@pytest.mark.parametrize("length", [None, 120], ids=["whole", "truncated"])
def test_texts_are_those_of_lm_eval(
    ours: Callable[..., Model], theirs: Callable[..., Any], length: int | None, cached: bool
) -> None:
    given = {} if length is None else {"max_length": length}
    assert_same_texts(ours(prefix_cache=cached, **given), theirs(**given))


def test_chat_prompts_are_those_of_lm_eval(ours: Callable[..., Model], theirs: Callable[..., Any]) -> None:
    assert_same_chat(ours(), theirs())


def test_draws_depend_on_the_request_and_the_repeat_alone(ours: Callable[..., Model]) -> None:
    request = Generate("Once upon a time", freeze_options({"max_gen_toks": 8, "temperature": 1.0, "do_sample": True}))
    other = Generate("The sea is", freeze_options({"max_gen_toks": 8, "temperature": 1.0, "do_sample": True}))
    together = {
        (one.at): one.reply
        for one in ours().ask([Question(request), Question(request, 1), Question(other)])
        if isinstance(one, Heard)
    }
    assert together[0] != together[1]
    assert ask(ours(), [request])[0] == together[0]
