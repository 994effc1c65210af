"""The flags of ``run``: one for every key of a run config, under lm-eval's own names."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import msgspec

from evalcore.core.records.errors import EvalError, unknown
from evalcore.shell.config.keys import KEYS, Key
from evalcore.shell.config.values import parse_pairs, parse_value

METAVARS = {"int": "N", "number": "X", "pairs": "KEY=VALUE", "names": "NAME", "seeds": "N[,N,N,N]", "json": "JSON"}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Every key as ``--key_name``, as lm-eval writes it."""
    for name, key in KEYS.items():
        spellings = [f"--{name}", *filter(None, [key.short])]
        text = argparse.SUPPRESS if key.ignored else key.help.replace("%", "%%")
        if key.kind == "flag":
            parser.add_argument(*spellings, dest=name, nargs="?", const="true", metavar="true|false", help=text)
        elif key.kind in ("pairs", "names"):
            parser.add_argument(
                *spellings, dest=name, nargs="+", action="extend", metavar=METAVARS[key.kind], help=text
            )
        else:
            parser.add_argument(*spellings, dest=name, metavar=METAVARS.get(key.kind, "TEXT"), help=text)


def spell_keys(argv: Sequence[str]) -> list[str]:
    """``--num-fewshot`` is ``--num_fewshot``.

    >>> spell_keys(["--num-fewshot", "5", "--limit=0.5", "a-b"])
    ['--num_fewshot', '5', '--limit=0.5', 'a-b']
    """
    return list(map(_spell_key, argv))


def _spell_key(typed: str) -> str:
    flag, equals, value = typed.partition("=")
    name = flag[2:].replace("-", "_")
    return f"--{name}{equals}{value}" if flag.startswith("--") and name in KEYS else typed


def read_flags(namespace: argparse.Namespace) -> dict[str, object]:
    """The values of the flags that were typed, as a config file would hold them.

    >>> parser = argparse.ArgumentParser()
    >>> add_flags(parser)
    >>> read_flags(parser.parse_args("--tasks a,b c --limit 10 --model_args model=m --log_samples false".split()))
    {'model_args': {'model': 'm'}, 'tasks': ['a,b', 'c'], 'limit': 10, 'log_samples': False}
    """
    typed = {name: getattr(namespace, name) for name in KEYS}
    _give_back_config(namespace, typed)
    return {name: _read_value(name, KEYS[name], raw) for name, raw in typed.items() if raw is not None}


def refuse_rest(rest: Sequence[str]) -> None:
    """What is no flag of ours, with the nearest that is.

    >>> refuse_rest(["--limt", "3"])
    Traceback (most recent call last):
    evalcore.EvalError: unknown flag '--limt'; did you mean '--limit'?...
    """
    for typed in rest:
        if typed.startswith("-"):
            raise unknown(
                "flag", typed.partition("=")[0], [f"--{name}" for name, key in KEYS.items() if not key.ignored]
            )
    if rest:
        raise EvalError(f"expected one config file, got also {' '.join(rest)!r}")


def _give_back_config(namespace: argparse.Namespace, typed: dict[str, str]) -> None:
    """``--predict_only config.yaml``: the flag needs no value, so the file is the config."""
    for name, raw in typed.items():
        if (
            KEYS[name].kind == "flag"
            and str(raw).endswith((".yaml", ".yml"))
            and not getattr(namespace, "config", True)
        ):
            namespace.config, typed[name] = raw, "true"


def _read_value(name: str, key: Key, raw: str | Sequence[str]) -> object:
    if key.kind == "pairs":
        return parse_pairs(raw, name)
    if not isinstance(raw, str):
        return [part for one in raw for part in one.split(",")] if name == "include_path" else list(raw)
    match key.kind:
        case "text":
            return raw
        case "flag":
            return parse_value(raw)
        case "json":
            return _read_json(name, raw)
        case "seeds":
            return [parse_value(part) for part in raw.split(",")]
    value = parse_value(raw)
    if isinstance(value, bool) or not isinstance(value, int if key.kind == "int" else int | float):
        raise EvalError(f"expected --{name} to be a {'whole ' if key.kind == 'int' else ''}number, got {raw!r}")
    return value


def _read_json(name: str, raw: str) -> object:
    if not raw.lstrip().startswith("{"):
        return parse_pairs(raw, name) if name == "data" else raw
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as wrong:
        raise EvalError(f"expected --{name} as JSON with double quotes: {wrong}") from None
