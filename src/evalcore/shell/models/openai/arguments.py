"""The arguments of an OpenAI-compatible model, read and checked; secrets stay hidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from pyrsistent import pmap

from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.frozen_dict import FrozenRecord

OPENAI = "https://api.openai.com/v1"


class ServerKind(Struct, frozen=True):
    """Which of the four backends this is."""

    name: str
    chat: bool = False
    hosted: bool = False

    @property
    def path(self) -> str:
        return "/chat/completions" if self.chat else "/completions"


Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0, lt=1e9)]


class ServerSettings(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The supported arguments, with lm-eval's defaults."""

    model: str
    base_url: str | None = None
    num_concurrent: Count = 1
    max_retries: Annotated[int, Meta(ge=0)] = 12
    timeout: Seconds = 300.0
    connect_timeout: Seconds = 10.0
    read_timeout: Seconds | None = None
    give_up_after: Seconds = 300.0
    keep_alive: bool = True
    max_length: Count = 2048
    max_gen_toks: Count = 256
    seed: int = 1234
    eos_string: str | None = None
    think_end_token: str | None = None
    reasoning: bool | UnsetType = UNSET
    header: Mapping[str, str] | None = None
    api_key_env: str | None = "OPENAI_API_KEY"
    verify_certificate: bool = True
    ca_cert_path: str | None = None
    allow_insecure: bool = False
    check_logprobs: bool = True


ARGUMENTS: tuple[tuple[str, str], ...] = (
    ("model", "name of the model as the server knows it (pretrained is the same); needed"),
    ("base_url", "address of the endpoint, or of the API up to /v1; needed for local-*"),
    ("num_concurrent", "requests in flight at once (1)"),
    ("max_retries", "further tries after a fault that may pass (12)"),
    ("timeout", "seconds for a whole reply (300)"),
    ("connect_timeout", "seconds to connect (10)"),
    ("read_timeout", "seconds without a byte (as timeout)"),
    ("give_up_after", "seconds without a connection until the run stops, to be resumed (300)"),
    ("keep_alive", "false opens a connection for each request, for servers and proxies that send replies twice (true)"),
    ("max_gen_toks", "tokens to generate where the task does not say (256)"),
    ("max_length", "most tokens of a text whose likelihood is asked; longer ones fail, nothing is cut (2048)"),
    ("seed", "sent with every request; a repeat adds its number (1234)"),
    ("eos_string", "a further stop string, and what stands before a text without context"),
    ("think_end_token", "chat: only what follows this is the answer"),
    ("reasoning", "openai-chat: no stop and temperature 1 (by the model's name: o1, o3, o4, gpt-5)"),
    ("header", "further HTTP headers, none of them secret"),
    ("api_key_env", "environment variable that holds the key (OPENAI_API_KEY); empty for none"),
    ("verify_certificate", "false only with allow_insecure"),
    ("ca_cert_path", "certificates to trust instead of the system's"),
    ("allow_insecure", "allow a key over plain http, and unverified certificates"),
    ("check_logprobs", "before likelihoods, check that echoed log-probabilities are not shifted (true)"),
)

SENT_AS_TEXT = "texts are sent as text and the server tokenizes them"
ONE_EACH = "one request each; num_concurrent sets how many at once"
IGNORED = pmap(
    {
        "tokenizer": (SENT_AS_TEXT, ()),
        "tokenizer_backend": (SENT_AS_TEXT, ("none", "None")),
        "tokenized_requests": (SENT_AS_TEXT, (False, "False", "false")),
        "use_fast_tokenizer": (SENT_AS_TEXT, (True, "True", "true")),
        "trust_remote_code": (SENT_AS_TEXT, (False, "False", "false")),
        "revision": ("the server has the weights it has", ("main",)),
        "add_bos_token": ("the server decides how a text begins", (False, "False", "false")),
        "custom_prefix_token_id": ("give eos_string, the text of that token", ()),
        "batch_size": (ONE_EACH, (1, "1")),
        "max_batch_size": (ONE_EACH, ()),
        "truncate": ("nothing is cut", (False, "False", "false")),
        "device": ("the server has its own", ()),
        "dtype": ("the server has its own", ()),
        "max_images": ("only text is sent", (1, "1")),
    }
)
"""lm-eval's arguments that are ignored here: why, and the values for which that changes nothing."""

SECRET = frozenset({"api_key", "auth_token", "authorization", "token", "openai_api_key", "key"})


def warn_of_ignored(given: Mapping[str, object]) -> tuple[str, ...]:
    """Warn of each argument that lm-eval would honour and this backend ignores.

    >>> warn_of_ignored({"model": "m", "batch_size": 8, "truncate": False})
    ('model_args: batch_size has no effect: one request each; num_concurrent sets how many at once',)
    """
    return tuple(
        f"model_args: {name} has no effect: {IGNORED[name][0]}"
        for name, value in given.items()
        if name in IGNORED and value is not None and value not in IGNORED[name][1]
    )


def read_settings(kind: ServerKind, given: Mapping[str, object]) -> ServerSettings:
    """Read the settings in model_args; unknown arguments, wrong types and visible secrets are errors.

    >>> read_settings(ServerKind("local-completions"), {"pretrained": "m", "num_concurrent": "8"}).num_concurrent
    8
    >>> read_settings(ServerKind("local-completions"), {"model": "m", "num_concurent": 8})
    Traceback (most recent call last):
    evalcore.EvalError: unknown argument 'num_concurent'; did you mean 'num_concurrent'? Known: ...
    """
    where = f" - at model_args of {kind.name}"
    fields = ServerSettings.__struct_fields__
    for name in given:
        if name.lower() in SECRET:
            raise EvalError(
                f"a secret in model_args ({name}) would end up in files: put it into the environment variable "
                f"OPENAI_API_KEY, or name another one with api_key_env{where}"
            )
        if name not in fields and name not in IGNORED and name != "pretrained":
            raise unknown("argument", name, [*fields, *IGNORED, "pretrained"], where)
    wanted = {name: value for name, value in given.items() if name in fields and value is not None}
    wanted.setdefault("model", given.get("pretrained"))
    if not isinstance(wanted["model"], str | int) or not str(wanted["model"]):
        raise EvalError(f"expected the name of a model, as in model: my-model, got {wanted['model']!r}{where}")
    for name in ("model", "eos_string", "think_end_token"):
        wanted |= {name: str(wanted[name])} if name in wanted else {}
    if "api_key_env" in given:
        wanted["api_key_env"] = given["api_key_env"] or None
        if not str(given["api_key_env"] or "_").isidentifier():  # most likely the key itself, so it is not repeated
            raise EvalError(f"expected the name of an environment variable in api_key_env, not the key{where}")
    try:
        return msgspec.convert(wanted, ServerSettings, strict=False)
    except msgspec.ValidationError as wrong:
        raise EvalError(f"{str(wrong).replace('$.', '').replace('Expected', 'expected')}{where}") from None
