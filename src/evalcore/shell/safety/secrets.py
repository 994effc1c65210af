"""Secrets out of what is written down, and out of what a server sends back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

HIDDEN = "[redacted]"

SECRET_KEY = re.compile(
    r"(?i)(api|access|private|secret|auth|encryption|account)[-_ .]?key|^key$|authori[sz]ation|bearer|passw(or)?d"
    r"|passphrase|secret|credential|cookie|(^|[-_ .])(auth|pwd|signature|sig|token|headers?)$"
)
# Tokens of a vocabulary, not of an account: bos_token, add_bos_token, max_token, ...
VOCABULARY = re.compile(
    r"(?i)(^|[-_ .])(bos|eos|pad|eot|unk|sep|cls|mask|prefix|stop|end|start|max|min|special)[-_ .]?token$"
)
# Keys as issued by the large providers, and what follows "Bearer".
ISSUED = re.compile(
    r"(?<![\w/.-])(?:(?:sk|pk|rk)-[A-Za-z0-9_-]{20,}|(?:hf|gsk|r8)_[A-Za-z0-9]{24,}|gh[pousr]_[A-Za-z0-9]{30,}"
    r"|(?:xai|pplx|nvapi)-[A-Za-z0-9_-]{30,}|glpat-[A-Za-z0-9_-]{20,}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,})"
    r"|(?i:(?<=bearer )|(?<=basic ))[A-Za-z0-9._~+/=-]{6,}"
)
USERINFO = re.compile(r"(?<=://)[^/\s@?#]+@")
PAIR = re.compile(r"(?<![\w-])([\w.-]+)=([^\s,&;#]+)")


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
            if _is_telling(key)
            else _redact_value(one, known)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [_redact_value(one, known) for one in value]
    return _redact_text(value, known) if isinstance(value, str) else value


def _is_telling(key: object) -> bool:
    return isinstance(key, str) and bool(SECRET_KEY.search(key)) and not VOCABULARY.search(key)


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
    return PAIR.sub(lambda pair: f"{pair[1]}={HIDDEN}" if _is_telling(pair[1]) else pair[0], text)


# --- known secrets in what a server echoes ----------------------------------------------------------------------------

FEW, SOME = 4, 8
PLACEHOLDERS = frozenset({"dummy-key", "lm-studio", "not-needed", "no-key-required", "placeholder"})
"""What people write where a server wants a key and checks none."""


def hide_in_text(text: str, secrets: Iterable[str]) -> str:
    """The text without these secrets, whatever a server echoes.

    >>> hide_in_text("no such key: sk-123456", ["sk-123456"])
    'no such key: [secret]'
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= FEW:
            text = text.replace(secret, "[secret]")
    return text


def hide_in_body(content: bytes, secrets: Iterable[str]) -> bytes:
    """A body without real keys, plain or escaped as JSON may escape them. Placeholders (EMPTY) may stay.

    >>> hide_in_body(rb'{"text": "sk\\u002d12\\/45678, EMPTY"}', ["sk-12/45678", "EMPTY"])
    b'{"text": "[secret], EMPTY"}'
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SOME and secret not in PLACEHOLDERS:
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
