"""Where requests go and what they carry; no printed form shows addresses in full or keys."""

from __future__ import annotations

import ipaddress
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Generic, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenRecord
from evalcore.shell.models.openai.arguments import OPENAI, ServerKind, ServerSettings
from evalcore.shell.safety.secrets import LONG

T = TypeVar("T")

TELLING = ("auth", "key", "token", "secret", "cookie", "password", "credential")
SIGNED = ("sig", "code", "pwd")


class Hidden(Generic[T]):
    """A value that no ``repr``, log or traceback with locals shows."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "[hidden]"

    def reveal(self) -> T:
        return self._value


class Sent(FrozenRecord, frozen=True):
    """What goes over the wire, and which parts of it are secret."""

    url: str
    headers: Mapping[str, str]
    secrets: tuple[str, ...] = ()


class Endpoint(Struct, frozen=True):
    """An address as it may be shown (no user, no query) and as it is used.

    ``routing`` is a hash of the headers and the query, which may lead to another model.
    """

    shown: str
    hidden: Hidden[Sent]
    loopback: bool
    key_env: str | None = None
    verify: bool = True
    ca_cert_path: str | None = None
    routing: str = ""


def is_loopback(host: str) -> bool:
    """Whether a host is this machine.

    >>> is_loopback("localhost"), is_loopback("127.8.0.1"), is_loopback("::1"), is_loopback("localhost.example.com")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def find_endpoint(kind: ServerKind, settings: ServerSettings, environ: Mapping[str, str]) -> Endpoint:
    """Find the endpoint of a backend with these settings.

    >>> kind, settings = ServerKind("local-completions"), ServerSettings("m", base_url="http://localhost:8000/v1/")
    >>> find_endpoint(kind, settings, {}).shown
    'http://localhost:8000/v1/completions'
    """
    url = _parse_address(kind, settings.base_url or (OPENAI if kind.hosted else None))
    shown = urlunsplit((url.scheme, url.netloc.rpartition("@")[2], url.path, "", ""))
    key = _find_key(kind, settings, environ)
    credentials = _read_credentials(url, key)
    loopback = is_loopback(url.hostname or "")
    _refuse_insecure(settings, shown, url.scheme == "http" and not loopback and bool(credentials))
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
    headers |= {"User-Agent": "evalcore"} | _check_headers(settings.header or {}) | credentials
    target = urlunsplit((url.scheme, url.netloc.rpartition("@")[2], url.path, url.query, ""))
    query = parse_qsl(url.query, keep_blank_values=True)
    hidden = [value or name for name, value in query if _is_telling(name) or len(value or name) >= LONG]
    hidden += [value for value in (settings.header or {}).values() if len(value) >= LONG]
    secrets = (
        key or "",
        unquote(url.password or url.username or ""),
        credentials.get("Authorization", "").partition(" ")[2],
        *hidden,
    )
    return Endpoint(
        shown,
        Hidden(Sent(target, headers, tuple(dict.fromkeys(filter(None, secrets))))),
        loopback,
        settings.api_key_env,
        settings.verify_certificate,
        settings.ca_cert_path,
        _hash_pairs([(name.lower(), value) for name, value in (settings.header or {}).items()] + query),
    )


def _is_telling(name: str) -> bool:
    return name.lower() in SIGNED or any(word in name.lower() for word in TELLING)


def _hash_pairs(pairs: Sequence[tuple[str, str]]) -> str:
    """Hash what is sent besides the request, without secrets: a new key leads to the same model."""
    shown = sorted(pair for pair in pairs if not _is_telling(pair[0]))
    return sha256(repr(shown).encode("utf-8", "replace")).hexdigest()[:12] if shown else ""


def _parse_address(kind: ServerKind, given: str | None) -> SplitResult:
    """Parse the address, with the path of this kind of endpoint."""
    example = f"http://localhost:8000/v1{kind.path}"
    if given is None:
        raise EvalError(f"model {kind.name} needs the address of a server: model_args base_url, as in {example}")
    try:
        url = urlsplit(given.strip())
        fine = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        fine = False
    if not fine:  # not shown: it may contain a password
        raise EvalError(
            f"expected an http or https address as base_url, as in {example} - at model_args of {kind.name}"
        )
    path = url.path.rstrip("/")
    if path.endswith("/chat/completions") != kind.chat and path.endswith("/completions"):
        other = kind.name.replace("-chat", "") if kind.chat else kind.name.replace("-completions", "-chat-completions")
        raise EvalError(f"base_url ends in {path!r}, an endpoint of {other}; {kind.name} needs one like {example}")
    return url._replace(path=path if path.endswith("/completions") else f"{path or '/v1'}{kind.path}")


def _find_key(kind: ServerKind, settings: ServerSettings, environ: Mapping[str, str]) -> str | None:
    key = environ.get(settings.api_key_env, "").strip() if settings.api_key_env else ""
    if not key and kind.hosted and settings.base_url is None:
        raise EvalError(
            f"model {kind.name} needs a key: put it into the environment variable "
            f"{settings.api_key_env or 'OPENAI_API_KEY'}, or name another one with api_key_env"
        )
    if not key.isascii() or not key.isprintable():
        raise EvalError(f"the key in {settings.api_key_env} has characters that no HTTP header can carry")
    return key or None


def _read_credentials(url: SplitResult, key: str | None) -> dict[str, str]:
    if url.username or url.password:
        pair = f"{unquote(url.username or '')}:{unquote(url.password or '')}"
        return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
    return {"Authorization": f"Bearer {key}"} if key else {}


def _refuse_insecure(settings: ServerSettings, shown: str, readable: bool) -> None:
    if settings.allow_insecure:
        return
    if readable:
        raise EvalError(
            f"a key would go to {shown} over plain http, readable by anyone on the way: use https, say that there is "
            "no key (model_args api_key_env: ''), or allow it (allow_insecure: true)"
        )
    if not settings.verify_certificate:
        raise EvalError(
            "verify_certificate: false lets anyone on the way read the key and forge answers: give ca_cert_path, or "
            "allow it (model_args allow_insecure: true)"
        )


def _check_headers(given: Mapping[str, str]) -> dict[str, str]:
    for name, value in given.items():
        if _is_telling(name):
            raise EvalError(
                f"header {name} in model_args would put a secret into files: put the key into the environment "
                "variable OPENAI_API_KEY, or name another one with api_key_env"
            )
        if not name.replace("-", "").replace("_", "").isalnum() or not (name + value).isascii() or "\n" in value:
            raise EvalError(f"expected an HTTP header of ASCII letters, got {name!r} in model_args header")
    return dict(given)
