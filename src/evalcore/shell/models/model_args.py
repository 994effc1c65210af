"""What ``model_args`` of hf and vllm have in common: lm-eval's names that do nothing here, and objects as values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TypeVar

import msgspec
from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.core.secret_names import is_secret_name
from evalcore.shell.safety.secrets import HIDDEN

Settings = TypeVar("Settings", bound=Struct)

REVISIONS = ("revision", "tokenizer_revision")
THOUGHTS = "enable_thinking without think_end_token: thoughts are scored as answers; name it, as </think>"
SHOWN = 60


class Elsewise(Struct, frozen=True):
    """An argument of lm-eval that does nothing here: the values that may be given, none for any, and why others not."""

    fine: tuple[object, ...]
    why: str


class NotHonoured(EvalError):
    """A known argument that cannot do here what it does in lm-eval: the message has the advice that helps."""


def leave_out(given: Mapping[str, object], known: Mapping[str, Elsewise], where: str) -> dict[str, object]:
    """Leave out what is not given and what does nothing; refuse a value that would do something in lm-eval.

    >>> known = {"logits_cache": Elsewise((), ""), "tp_plan": Elsewise(("none",), "it needs torchrun")}
    >>> leave_out({"pretrained": "m", "revision": None, "logits_cache": True}, known, "")
    {'pretrained': 'm'}
    >>> leave_out({"tp_plan": "auto"}, known, "")
    Traceback (most recent call last):
    evalcore.shell.models.model_args.NotHonoured: tp_plan: auto is not supported: it needs torchrun
    """
    named = {key: value for key, value in given.items() if value is not None}
    for name in [name for name in known if name in named]:
        value, fine = named.pop(name), known[name].fine
        if fine and str(value).lower() not in fine:
            shown = HIDDEN if is_secret_name(name) else value
            raise NotHonoured(f"{name}: {shown} is not supported: {known[name].why}{where}")
    return named


def convert_args(named: Mapping[str, object], kind: type[Settings], where: str) -> Settings:
    """Convert arguments to settings: texts are read as numbers where those are expected, and objects kept as JSON."""
    read = dict(named)
    read |= {name: str(read[name]) for name in REVISIONS if isinstance(read.get(name), int | float)}  # 1.0 is a tag
    if "chat_template_args" in read:
        read["chat_template_args"] = write_object("chat_template_args", read["chat_template_args"], where)
    if isinstance(batch := read.get("batch_size"), str):
        read["batch_size"] = _read_batch(batch, where)
    if isinstance(template := read.get("chat_template"), str) and "{" not in template:
        got = f"got {template[:SHOWN]!r}, which would be every prompt: leave it out for the model's own"
        raise EvalError(f"expected a jinja2 template as chat_template, {got}{where}")
    try:
        return msgspec.convert(read, kind, strict=False)
    except msgspec.ValidationError as wrong:
        raise EvalError(f"{str(wrong).replace('$.', '').replace('Object', 'model_args')}{where}") from None


def read_variables(written: str | None, thinks: bool | None) -> dict[str, object]:
    """The variables that a chat template sees, as in lm-eval.

    >>> read_variables('{"tone": "mild"}', True)
    {'tone': 'mild', 'enable_thinking': True}
    """
    given: dict[str, object] = msgspec.json.decode(written or "{}")
    return given | ({} if thinks is None else {"enable_thinking": thinks})


def warn_of_thoughts(variables: Mapping[str, object], think_end: object) -> tuple[str, ...]:
    """Warn of thoughts that may be asked for, and are hardly meant as answers; lm-eval refuses them.

    >>> len(warn_of_thoughts({"enable_thinking": True}, None)), warn_of_thoughts({"enable_thinking": True}, "</think>")
    (1, ())
    """
    return (THOUGHTS,) if variables.get("enable_thinking") is True and think_end is None else ()


def _read_batch(text: str, where: str) -> str:
    """A number, or ``auto``; lm-eval's ``auto:4`` says how often to measure."""
    if not re.fullmatch(r"-?\d+|auto(:\d+(\.\d+)?)?", text):
        raise EvalError(f"expected batch_size as a number or auto, got {text!r}{where}")
    return text.partition(":")[0]


def write_object(name: str, value: object, where: str) -> str:
    """An object as JSON, which is how it is kept; what is given as text is JSON already.

    >>> write_object("device_map", {1: "cpu"}, "")
    Traceback (most recent call last):
    evalcore.EvalError: expected device_map as an object such as {"key": true}, got {1: 'cpu'}
    """
    with suppress(msgspec.DecodeError, RecursionError, TypeError, ValueError):  # what is no JSON, or cannot be
        read = msgspec.json.decode(value, type=dict[str, object]) if isinstance(value, str) else value
        if isinstance(read, Mapping):
            return msgspec.json.encode(dict(read), order="sorted").decode()
    raise EvalError(f'expected {name} as an object such as {{"key": true}}, got {value!r:.{SHOWN}}{where}')
