"""Values as a command line writes them: ``key=value`` pairs, numbers, JSON, names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

import msgspec

from evalcore.core.records.errors import EvalError

RunPath = str | Path
Names = str | Iterable[str]
"""A name, or several."""

LONGEST = 300
"""How many characters a number has at most; Python itself refuses very long ones."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?)")
WORDS = {"true": True, "false": False, "none": None, "null": None}


def parse_value(text: str) -> object:
    """Parse a value: a boolean, a number, a quoted text or a list; anything else is text.

    >>> [parse_value(one) for one in ("true", "0.5", "10", "'10'", '["a"]', "gpt2")]
    [True, 0.5, 10, '10', ['a'], 'gpt2']
    """
    text = text.strip()
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    if NUMBER.fullmatch(text) and len(text) <= LONGEST:
        return float(text) if set(text) & set(".eE") else int(text)
    if text[:1] in "\"'[{(" and text:
        try:
            return _list_tuples(ast.literal_eval(text))  # a literal only: no names, no calls
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return text
    return text


def _list_tuples(value: object) -> object:
    return [_list_tuples(one) for one in value] if isinstance(value, list | tuple) else value


def split_at_commas(text: str) -> list[str]:
    """Split at commas outside of brackets and quotes.

    >>> split_at_commas('a=1,stop=["x","y"],b=2')
    ['a=1', 'stop=["x","y"]', 'b=2']
    """
    parts, depth, quote = [""], 0, ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "[({":
            depth += 1
        elif char in "])}":
            depth = max(depth - 1, 0)
        elif char == "," and not depth:
            parts.append("")
            continue
        parts[-1] += char
    return [part for part in parts if part.strip()]


def parse_pairs(given: str | Sequence[str], what: str) -> dict[str, object]:
    """Parse ``key=value`` pairs, separated by commas or spaces, or one JSON object.

    >>> parse_pairs("model=gpt2,num_concurrent=4", "model_args")
    {'model': 'gpt2', 'num_concurrent': 4}
    >>> parse_pairs('{"stop": ["a"]}', "gen_kwargs")
    {'stop': ['a']}
    """
    parts = [given] if isinstance(given, str) else list(given)
    if len(parts) == 1 and parts[0].lstrip().startswith("{"):
        try:
            return msgspec.json.decode(parts[0], type=dict[str, object])
        except (msgspec.DecodeError, RecursionError) as wrong:
            raise EvalError(
                f"expected {what} as a JSON object with double quotes: {wrong}"
            ) from None  # the rest may be secret
    out: dict[str, object] = {}
    for pair in (pair for part in parts for pair in split_at_commas(part)):
        key, equals, value = pair.partition("=")
        if not equals:
            raise EvalError(f"expected {what} as key=value, got {pair!r}")
        out[key.strip()] = parse_value(value)
    return out


def split_names(given: Names) -> tuple[str, ...]:
    """Split names given one by one or separated by commas.

    >>> split_names(["a,b", "c"]), split_names("a, b")
    (('a', 'b', 'c'), ('a', 'b'))
    """
    return tuple(name.strip() for text in list_names(given) for name in text.split(",") if name.strip())


def list_names(given: Names) -> tuple[str, ...]:
    """List names that may contain commas, as ``acc,none`` does.

    >>> list_names("acc,none"), list_names(["acc", "f1"])
    (('acc,none',), ('acc', 'f1'))
    """
    return (given,) if isinstance(given, str) else tuple(given)


def parse_allowance(given: object, where: str) -> str:
    """How many documents may lack a score before a run counts as failed: a number of them, or a share in percent.

    >>> parse_allowance(3, ""), parse_allowance("0.5 %", "")
    ('3', '0.5%')
    >>> parse_allowance("half", "run.yaml:3")
    Traceback (most recent call last):
    evalcore.EvalError: expected allow_failures as a number of documents (3) or a share (0.5%), got 'half' - at ...
    """
    text = "".join(str(given).split())
    whole = not text.endswith("%")
    if not (re.fullmatch(r"\d{1,18}", text) if whole else re.fullmatch(r"(\d{1,2}(\.\d{1,12})?|100)%", text)):
        told = "expected allow_failures as a number of documents (3) or a share (0.5%)"
        raise EvalError(f"{told}, got {given!r} - at {where}")
    return text


def is_allowed(lost: int, documents: int, allowance: str) -> bool:
    """Whether an allowance covers so many documents without a score.

    >>> is_allowed(3, 300, "3"), is_allowed(3, 300, "1%"), is_allowed(4, 300, "1%"), is_allowed(0, 0, "0")
    (True, True, False, True)
    """
    share = allowance.removesuffix("%")
    return lost <= int(share) if share == allowance else Fraction(lost) * 100 <= Fraction(share) * documents


def split_tasks(given: Sequence[object]) -> list[object]:
    """Split texts of several names, which lm-eval accepts too.

    >>> split_tasks(["a, b", "c"])
    ['a', 'b', 'c']
    """
    return [
        part.strip() if isinstance(part, str) else part
        for one in given
        for part in (one.split(",") if isinstance(one, str) else [one])
        if part != ""
    ]
