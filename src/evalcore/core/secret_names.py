"""Names whose values are secret: of arguments, headers and environment variables."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

SECRET_NAME = re.compile(
    r"(?i)(api|access|private|secret|auth|encryption|account|subscription)[-_ .]?key|^key$|authori[sz]ation|bearer"
    r"|passw(or)?d|passphrase|secret|credential|cookie|(^|[-_ .])(auth|pwd|signature|sig|token|headers?)$"
    r"|(^|[-_ .])(api|access|auth|bearer|refresh)[-_ .]?tokens?$"
)
# Tokens of a vocabulary, not of an account (bos_token, add_bos_token, max_token), and names of environment variables.
NO_SECRET = re.compile(
    r"(?i)(^|[-_ .])(bos|eos|pad|eot|unk|sep|cls|mask|prefix|stop|end|start|max|min|special)[-_ .]?token$"
    r"|[-_ .]env$"
)


def is_secret_name(name: object) -> bool:
    """Whether what goes by this name is a secret.

    >>> [name for name in ("api_key", "max_tokens", "bos_token", "tokenizer", "X-Auth-Token") if is_secret_name(name)]
    ['api_key', 'X-Auth-Token']
    """
    return isinstance(name, str) and bool(SECRET_NAME.search(name)) and not NO_SECRET.search(name)


def drop_secrets(environ: Mapping[str, str], keep: Collection[str] = ()) -> dict[str, str]:
    """An environment without secrets; ``keep`` are names, and beginnings of names that end in an underscore.

    >>> drop_secrets({"HOME": "/me", "OPENAI_API_KEY": "k", "AWS_SECRET_ACCESS_KEY": "s"}, ["AWS_"])
    {'HOME': '/me', 'AWS_SECRET_ACCESS_KEY': 's'}
    """
    begun = tuple(one for one in keep if one.endswith("_"))
    return {
        name: value
        for name, value in environ.items()
        if not is_secret_name(name) or name in keep or name.startswith(begun)
    }
