"""Requests as lm-eval words them for the OpenAI API, and the texts in the replies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import CHOOSE
from evalcore.shell.data.wire import decode_line, encode_line
from evalcore.shell.models.openai.arguments import ServerKind, ServerSettings
from evalcore.shell.models.openai.http_faults import Wrong, excerpt_text, read_message
from evalcore.shell.prompts.turns import Message

END = "<|endoftext|>"
STOPS = 4
"""The largest number of stop strings that the OpenAI API takes."""

FEW_TRIES = 2
"""A well-formed reply without text is rarely an accident, and each further try costs a generation."""


def render_messages(messages: Sequence[Message], opening: bool) -> str:
    """Render messages as the prompt of a chat model: as JSON, as lm-eval's sample logs have them.

    >>> render_messages([{"role": "user", "content": "Où ?"}], True)
    '[{"role": "user", "content": "Où ?"}]'
    """
    import json

    return json.dumps(list(messages), ensure_ascii=False)


def parse_messages(prompt: str) -> list[dict[str, object]]:
    """Parse the messages of a prompt; a plain text is a message of the user.

    >>> parse_messages('[{"role": "system", "content": "Be brief."}]'), parse_messages("[1]")
    ([{'role': 'system', 'content': 'Be brief.'}], [{'role': 'user', 'content': '[1]'}])
    """
    if prompt.startswith("[") and prompt.rstrip().endswith("]"):
        try:
            messages = decode_line(prompt.encode("utf-8", "surrogatepass"), "prompt")
        except EvalError:
            messages = None
        if isinstance(messages, list) and messages and all(isinstance(one, dict) and "role" in one for one in messages):
            return messages
    return [{"role": "user", "content": prompt}]


def is_reasoning(model: str) -> bool:
    """Whether OpenAI's models of this name take neither stop strings nor a temperature.

    >>> [name for name in ("o1-mini", "gpt-5", "ft:o3:me", "gpt-3.5-turbo", "gpt-4o") if is_reasoning(name)]
    ['o1-mini', 'gpt-5', 'ft:o3:me']
    """
    return re.search(r"(^|[/:])(o[134]|gpt-5)(?![0-9.])", model) is not None


def write_generation(
    kind: ServerKind, settings: ServerSettings, prompt: str, options: Mapping[str, object], repeat: int = 0
) -> dict[str, object]:
    """Make the body that asks to continue a prompt: lm-eval's for the first repeat; later ones add to the seed.

    >>> kind, settings = ServerKind("local-completions"), ServerSettings("m")
    >>> body = write_generation(kind, settings, "2+2=", {"until": ["\\n"], "do_sample": False})
    >>> sorted(body.items())
    [('max_tokens', 256), ('model', 'm'), ('prompt', '2+2='), ('seed', 1234), ('stop', ['\\n']), ('temperature', 0)]
    """
    own_chat = kind.hosted and kind.chat
    left = {name: thaw_options(value) for name, value in options.items() if name != "do_sample"}
    left |= _ask_tops(kind) if left.pop(CHOOSE, False) else {}
    most = left.pop("max_tokens") if "max_tokens" in left else left.pop("max_gen_toks", settings.max_gen_toks)
    temperature = left.pop("temperature", 0)
    stop = _read_stops(left.pop("until", [END] if own_chat else None), settings.eos_string)
    seed = left.pop("seed", settings.seed)
    body: dict[str, object] = {
        **({"messages": parse_messages(prompt)} if kind.chat else {"prompt": prompt}),
        "model": settings.model,
        "max_completion_tokens" if own_chat else "max_tokens": most,
        "temperature": temperature,
        "stop": stop[:STOPS] if kind.chat else stop,
        "seed": seed + repeat if isinstance(seed, int) else seed,
        **left,
    }
    if own_chat and (settings.reasoning if isinstance(settings.reasoning, bool) else is_reasoning(settings.model)):
        del body["stop"]
        body["temperature"] = 1
    return body


def _ask_tops(kind: ServerKind) -> dict[str, object]:
    """Ask for the likeliest first tokens: as many as OpenAI's endpoints give, which others give as well."""
    return {"logprobs": True, "top_logprobs": 20} if kind.chat else {"logprobs": 5}


def thaw_options(value: object) -> object:
    """Thaw frozen options to what JSON knows.

    >>> thaw_options((1, (2,)))
    [1, [2]]
    """
    if isinstance(value, Mapping):
        return {str(key): thaw_options(item) for key, item in value.items()}
    return [thaw_options(item) for item in value] if isinstance(value, list | tuple) else value


def _read_stops(until: object, eos: str | None) -> list[str]:
    stops = [until] if isinstance(until, str) else [] if until is None else until
    if not isinstance(stops, list) or not all(isinstance(one, str) for one in stops):
        raise EvalError(f"expected until to be a text or a list of texts, got {until!r}")
    return stops if eos is None or eos in stops else [*stops, eos]


def encode_body(body: Mapping[str, object]) -> bytes:
    """Encode a body as bytes; what is not JSON (a lone surrogate) is escaped."""
    return encode_line(body).rstrip()


def read_choice(content: bytes) -> dict[str, object]:
    """Read the one choice of a reply; any other number of choices, or an index other than 0, is an error.

    >>> read_choice(b'{"choices": [{"index": 0, "text": " 4"}]}')["text"]
    ' 4'
    """
    if not content.strip():
        raise Wrong("bad_response: an empty body")
    try:
        reply = decode_line(content, "body")
    except EvalError:
        raise Wrong(f"bad_response: not JSON: {excerpt_text(content.decode('utf-8', 'replace'))}") from None
    choices = reply.get("choices") if isinstance(reply, dict) else None
    if not isinstance(choices, list) or not choices:
        raise Wrong(f"bad_response: no choices: {read_message(content)}")
    choice = choices[0]
    if len(choices) != 1 or not isinstance(choice, dict) or choice.get("index") != 0 or choice.get("index") is False:
        raise Wrong(f"bad_response: expected one choice of index 0: {read_message(content)}")
    return choice


def read_generation(kind: ServerKind, think_end: str | None, content: bytes) -> tuple[str, str]:
    """Read the text of a reply, and why it ended.

    >>> read_generation(ServerKind("c", chat=True), "</think>", b'''{"choices": [{"index": 0, "finish_reason": "stop",
    ...     "message": {"content": "2 and 2...</think> 4"}}]}''')
    ('4', 'stop')
    """
    choice = read_choice(content)
    message = choice.get("message") if kind.chat else None
    text = (message.get("content") if isinstance(message, dict) else None) if kind.chat else choice.get("text")
    finish = choice.get("finish_reason")
    if not isinstance(text, str):
        ended = f" (finish_reason {finish})" if isinstance(finish, str) else ""
        raise Wrong(f"bad_response: no text{ended}: {read_message(content)}", again=FEW_TRIES)
    if kind.chat and think_end:
        text = text.split(think_end)[-1].lstrip()
    return text, finish if isinstance(finish, str) else ""
