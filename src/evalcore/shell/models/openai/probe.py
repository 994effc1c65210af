"""A check before likelihoods are asked: the server echoes log-probabilities, each for its own token."""

from __future__ import annotations

from functools import partial

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure
from evalcore.shell.models.openai.arguments import ServerSettings
from evalcore.shell.models.openai.body import encode_body, read_choice
from evalcore.shell.models.openai.http_client import post_body
from evalcore.shell.models.openai.http_faults import NEVER, Wrong
from evalcore.shell.models.openai.http_session import Session
from evalcore.shell.models.openai.logprobs import Echo, read_columns, read_echo, write_echo

PROBES = (
    "1 2 3 4 5 6 7 8 9 10 11 12",
    "a b c d e f g h i j k l",
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday Monday Tuesday Wednesday",
)
"""Texts whose next token is clear and unlikely to repeat: shifted by one place, its probability would differ."""

TOLERANCE = 0.5
"""Reading a prompt and generating differ by rounding, up to some hundredths; one token off by several units."""

INSTEAD = (
    ". llama-server gives those of the tokens that it generates alone: model: llama runs its GGUF file in this one, "
    "model: hf and model: vllm run one of transformers; servers of vLLM and SGLang echo them; "
    "multiple_choice_by: letter needs none"
)

SKIP = "; check_logprobs: false in model_args asks without this check"


async def check_echo(session: Session, settings: ServerSettings) -> None:
    """Generate a token, have it echoed, and refuse a server that gives it two different log-probabilities."""
    for text in PROBES:
        body = {**write_echo(settings, text), "echo": False}
        said = (await post_body(session, encode_body(body), _read_first_token)).value
        if isinstance(said, Failure):
            raise EvalError(f"{session.endpoint.shown} gives no log-probabilities: {said.reason}{INSTEAD}{SKIP}")
        token, generated = said
        asked = text + token
        echo = (
            await post_body(session, encode_body(write_echo(settings, asked)), partial(read_echo, prompt=asked))
        ).value
        if isinstance(echo, Failure):
            raise EvalError(
                f"{session.endpoint.shown} does not echo log-probabilities, so it cannot answer likelihood "
                f"requests: {echo.reason}{INSTEAD}{SKIP}"
            )
        if _compare_token(session, echo, text, token, generated):
            return
    raise EvalError(
        f"{session.endpoint.shown}: echoed tokens are not those that were generated, which leaves nothing "
        f"to compare log-probabilities by{SKIP}"
    )


def _compare_token(session: Session, echo: Echo, text: str, token: str, generated: float) -> bool:
    """Compare both log-probabilities: False if there was nothing to compare; an error if they differ."""
    if isinstance(echo.logprobs[0], float | int):
        raise EvalError(
            f"{session.endpoint.shown} gives a log-probability to the first token of a text, which follows nothing: "
            f"its log-probabilities are not those of their tokens{SKIP}"
        )
    places = [at for at, offset in enumerate(echo.offsets) if offset == len(text) and echo.tokens[at] == token]
    if not token or not places:
        return False
    echoed = echo.logprobs[places[-1]]
    if isinstance(echoed, bool) or not isinstance(echoed, int | float) or not abs(echoed - generated) <= TOLERANCE:
        raise EvalError(
            f"the log-probabilities that {session.endpoint.shown} echoes are not those of their tokens: {token!r} "
            f"after {text!r} has {generated:.6g} when generated and {echoed!r} when echoed. "
            "llama-cpp-python's server is known to echo them one token late: serve the model with another "
            f"server, or use model: llama{SKIP}"
        )
    return True


def _read_first_token(content: bytes) -> tuple[str, float]:
    """Read the generated token and its log-probability.

    >>> _read_first_token(b'''{"choices": [{"index": 0, "logprobs":
    ...   {"content": [{"token": " 13", "logprob": -0.1}]}}]}''')
    (' 13', -0.1)
    """
    logprobs = read_choice(content).get("logprobs")
    found = read_columns(logprobs) if isinstance(logprobs, dict) else None
    if found and found.tokens and isinstance(value := found.values[0], int | float):
        return found.tokens[0], float(value)
    raise Wrong("bad_logprobs: a generated token comes without one", again=NEVER)
