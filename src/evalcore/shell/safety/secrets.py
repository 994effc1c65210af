"""Secrets out of what is written down, and out of what a server sends back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from evalcore.core.secret_names import is_secret_name

HIDDEN = "[redacted]"
LONG = 16
"""A header, or a value in the query of an address, of this length counts as a key, whatever its name."""

# Keys as issued by the large providers, and what follows "Bearer".
ISSUED = re.compile(
    r"(?<![\w/.-])(?:(?:sk|pk|rk)-[A-Za-z0-9_-]{20,}|(?:hf|gsk|r8)_[A-Za-z0-9]{24,}|gh[pousr]_[A-Za-z0-9]{30,}"
    r"|(?:xai|pplx|nvapi)-[A-Za-z0-9_-]{30,}|glpat-[A-Za-z0-9_-]{20,}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,})"
    r"|(?i:(?<=bearer )|(?<=basic ))[A-Za-z0-9._~+/=-]{6,}"
)
USERINFO = re.compile(r"(?<=://)[^/\s@?#]+@")
PAIR = re.compile(r"(?<![\w-])([\w.-]+)=([^\s,&;#]+)")
JSON_PAIR = re.compile(r"""(["'])([\w.-]+)\1(\s*:\s*)(["'])([^"']+)\4""")
IN_TASKS = ("metadata", "generation_kwargs", "dataset_kwargs")
"""The keys of a task's config that may hold a secret; prompts and documents are written as they are."""


def redact(value: object, secrets: Iterable[str] = ()) -> object:
    """Plain data without secrets: values under telling keys, issued keys, passwords in addresses, and the given ones.

    >>> redact({"model": "m", "api_key": "abc", "bos_token": "<s>", "base_url": "https://me:pw@host/v1?key=1"})
    {'model': 'm', 'api_key': '[redacted]', 'bos_token': '<s>', 'base_url': 'https://[redacted]@host/v1?key=[redacted]'}
    >>> redact("model=m,api_key=abc")
    'model=m,api_key=[redacted]'
    """
    return _redact_value(value, sorted((one for one in secrets if one), key=len, reverse=True))


def _redact_value(value: object, known: list[str]) -> object:
    if isinstance(value, Mapping):
        return {
            _redact_text(key, known) if isinstance(key, str) else key: _hide_value(one)
            if is_secret_name(key)
            else _redact_value(one, known)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [_redact_value(one, known) for one in value]
    return _redact_text(value, known) if isinstance(value, str) else value


def _hide_value(value: object) -> object:
    """All that could be a secret; the names of headers, and that there is nothing, may be known."""
    if isinstance(value, Mapping):
        return {key: _hide_value(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_hide_value(one) for one in value]
    return value if value is None or isinstance(value, bool) or value == "" else HIDDEN


def _redact_text(text: str, known: list[str]) -> str:
    for secret in known:
        text = text.replace(secret, HIDDEN)
    text = USERINFO.sub(HIDDEN + "@", ISSUED.sub(HIDDEN, text))
    text = JSON_PAIR.sub(lambda pair: _hide_span(pair, 5) if is_secret_name(pair[2]) else pair[0], text)
    return PAIR.sub(lambda pair: _hide_span(pair, 2) if is_secret_name(pair[1]) else pair[0], text)


def _hide_span(found: re.Match[str], group: int) -> str:
    """What was found, with one of its groups hidden."""
    start, whole = found.start(), found[0]
    return whole[: found.start(group) - start] + HIDDEN + whole[found.end(group) - start :]


def hide_keys(value: object) -> object:
    """Plain data without the values under telling keys; texts stay as they are.

    >>> hide_keys({"until": ["key=1"], "api_key": "abc", "extra": {"token": "t"}})
    {'until': ['key=1'], 'api_key': '[redacted]', 'extra': {'token': '[redacted]'}}
    """
    if isinstance(value, Mapping):
        return {key: _hide_value(one) if is_secret_name(key) else hide_keys(one) for key, one in value.items()}
    return [hide_keys(one) for one in value] if isinstance(value, list | tuple) else value


def redact_task(config: Mapping[str, object], secrets: Iterable[str] = ()) -> dict[str, object]:
    """The config of a task, or of a group with the tasks that it lists, without secrets.

    >>> redact_task({"task": "t", "doc_to_text": "api_key=abc", "generation_kwargs": {"api_key": "abc"}})
    {'task': 't', 'doc_to_text': 'api_key=abc', 'generation_kwargs': {'api_key': '[redacted]'}}
    """
    known, listed = list(secrets), config.get("task")
    held = {key: redact(config[key], known) for key in IN_TASKS if key in config}
    if isinstance(listed, list | tuple):
        held["task"] = [redact_task(one, known) if isinstance(one, Mapping) else one for one in listed]
    return {**config, **held}


def find_secrets(value: object) -> Iterator[str]:
    """Find what ``redact`` would hide: values under telling keys, passwords in addresses, issued keys.

    >>> sorted(find_secrets({"api_key": "abc", "base_url": "http://me:pw@host/?key=k", "n": ["max_tokens=3"]}))
    ['abc', 'k', 'me:pw', 'pw']
    """
    if isinstance(value, Mapping):
        for key, one in value.items():
            several = isinstance(one, Mapping)  # headers, of which few are secret
            texts = _list_texts(one) if is_secret_name(key) else find_secrets(one)
            yield from (text for text in texts if not several or not is_secret_name(key) or len(text) >= LONG)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from find_secrets(one)
    elif isinstance(value, str):
        for found in USERINFO.findall(value):
            yield from (found[:-1], found[:-1].rpartition(":")[2])
        yield from ISSUED.findall(value)
        yield from (one for name, one in PAIR.findall(value) if is_secret_name(name))
        yield from (one for _, name, _, _, one in JSON_PAIR.findall(value) if is_secret_name(name))


def _list_texts(value: object) -> Iterator[str]:
    """List every text and number inside lists and mappings, as text."""
    if isinstance(value, Mapping | list | tuple):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _list_texts(one)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


# --- known secrets in what a server echoes ----------------------------------------------------------------------------

FEW, SHORTEST = 4, 8
PLACEHOLDERS = frozenset({"dummy-key", "lm-studio", "not-needed", "no-key-required", "placeholder"})
"""What people write where a server wants a key and checks none."""


def hide_in_text(text: str, secrets: Iterable[str]) -> str:
    """The text without these secrets, whatever a server echoes.

    >>> hide_in_text("no such key: sk-123456", ["sk-123456"])
    'no such key: [secret]'
    """
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= FEW:
            text = text.replace(secret, "[secret]")
    return text


def hide_in_body(content: bytes, secrets: Iterable[str]) -> bytes:
    """A body without real keys, plain or escaped as JSON may escape them. Placeholders (EMPTY) may stay.

    >>> hide_in_body(rb'{"text": "sk\\u002d12\\/45678, EMPTY"}', ["sk-12/45678", "EMPTY"])
    b'{"text": "[secret], EMPTY"}'
    """
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= SHORTEST and secret not in PLACEHOLDERS:
            content = content.replace(secret.encode("utf-8", "replace"), b"[secret]")
            if b"\\" in content:
                content = re.sub(b"".join(map(_build_pattern, secret)), b"[secret]", content)
    return content


def _build_pattern(char: str) -> bytes:
    """A pattern for the ways in which JSON can write a character."""
    units = char.encode("utf-16-be", "surrogatepass")
    escaped = b"".join(b"\\\\u(?i:%04x)" % int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    plain = re.escape(char.encode("utf-8", "surrogatepass"))
    return b"(?:%b|\\\\%b|%b)" % (plain, plain, escaped) if char in '"\\/' else b"(?:%b|%b)" % (plain, escaped)
