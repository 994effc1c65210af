"""The environment that templates run in: jinja2's immutable sandbox, strict about names, with limits on size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, wraps

from jinja2 import StrictUndefined, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from evalcore.core.errors import EvalError

__all__ = ["LARGEST", "LONGEST", "environment", "refuse_growth", "regex_replace"]

LONGEST = 1_000_000
"""Characters or items that a template may make of nothing: a repetition, a width, a count."""
LARGEST = 16_000_000
"""Characters of a text made of a document's own."""

BITS = 100_000
GROWING_FILTERS = ("batch", "center", "format", "indent", "join", "replace", "slice", "truncate", "wordwrap")
SIZED = (str, bytes, list, tuple, dict)


class Concatenations(CodeGenerator):
    """Compiles ``a ~ b`` to a call that looks at the size of the result."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("environment.concat_texts((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class Sandbox(ImmutableSandboxedEnvironment):
    """A sandbox in which no single operation makes something huge. It holds no state of its own."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})
    code_generator_class = Concatenations

    def call_binop(self, context: object, operator: str, left: object, right: object) -> object:
        refuse_growth(operator, left, right)
        return self.binop_table[operator](left, right)

    def call(self, *given: object, **named: object) -> object:
        _context, function, *values = given
        _refuse_arguments(function, values, named)
        return _kept(super().call(*given, **named))  # type: ignore[arg-type]  # jinja2 hides its first names

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        # The general rule looks through a dozen types; for these two this is all of it.
        if type(obj) is str or type(obj) is LoopContext:
            return not attr.startswith("_")
        return super().is_safe_attribute(obj, attr, value)

    def concat_texts(self, parts: Iterable[object]) -> object:
        return _kept("".join(map(str, parts)))


def environment() -> Sandbox:
    """The one environment of this process: it is never changed after it is made.

    >>> environment().from_string("{{ 'a1b' | regex_replace('[0-9]', '-') }}").render()
    'a-b'
    >>> environment().from_string("{{ 'a' * 10 ** 8 }}").render()
    Traceback (most recent call last):
    evalcore.core.errors.EvalError: expected at most 1000000 characters or items, got 'a' * 100000000
    """
    return _environment()


@lru_cache(1)
def _environment() -> Sandbox:
    made = Sandbox(undefined=StrictUndefined, keep_trailing_newline=True)
    del made.globals["lipsum"]  # random text, as much as is asked for
    made.filters["regex_replace"] = regex_replace
    made.filters.update({name: _guarded(name, made.filters[name]) for name in GROWING_FILTERS})
    return made


def regex_replace(string: str, pattern: str, repl: str, count: int = 0) -> str:
    """lm-eval's filter: ``re.sub``.

    >>> regex_replace("a-b", "-", "+")
    'a+b'
    """
    return re.sub(pattern, repl, string, count=count)


def refuse_growth(operator: str, left: object, right: object) -> None:
    """An error where the result of an operation would be huge.

    >>> refuse_growth("*", "ab", 10)
    >>> refuse_growth("**", 9, 10**7)
    Traceback (most recent call last):
    evalcore.core.errors.EvalError: expected at most 1000000 characters or items, got 9 ** 10000000
    """
    if type(left) is int and type(right) is int:
        power = operator == "**" and left.bit_length() * max(right, 0) > BITS
        big = power or (operator == "*" and left.bit_length() + right.bit_length() > BITS)
    elif operator == "*":
        one, times = (left, right) if isinstance(left, SIZED) else (right, left)
        big = isinstance(one, SIZED) and isinstance(times, int) and len(one) * times > LONGEST
    elif operator == "+":
        big = isinstance(left, SIZED) and isinstance(right, SIZED) and len(left) + len(right) > LARGEST
    else:
        big = operator == "%" and isinstance(left, str) and _wide(left, right)
    if big:
        raise _too_much(LONGEST, f"{_short(left)} {operator} {_short(right)}")


def _wide(pattern: str, given: object) -> bool:
    """Whether a ``%`` format has a huge width, written out or given by ``*``."""
    values = given if isinstance(given, tuple) else (given,)
    starred = "*" in pattern and any(isinstance(one, int) and abs(one) > LONGEST for one in values)
    return starred or any(int(digits) > LONGEST for digits in re.findall(r"[0-9]{6,40}", pattern))


def _refuse_arguments(function: object, given: Sequence[object], named: Mapping[str, object]) -> None:
    values = [*given, *named.values()]
    if values:
        name = str(getattr(function, "__name__", "a call"))
        _refuse_values(name, getattr(function, "__self__", None), values)


def _guarded(name: str, function: Callable[..., object]) -> Callable[..., object]:
    """A filter that is asked for nothing huge; ``wraps`` keeps jinja2's marks on the function."""

    @wraps(function)
    def guarded(*given: object, **named: object) -> object:
        values = [one for one in (*given, *named.values()) if isinstance(one, (int, *SIZED))]
        _refuse_values(name, values[0] if values else None, values[1:])
        return _kept(function(*given, **named))

    return guarded


def _refuse_values(name: str, subject: object, values: Sequence[object]) -> None:
    if any(type(one) is int and abs(one) > LONGEST for one in values):
        raise _too_much(LONGEST, f"{name}({', '.join(map(_short, values))})")
    if name == "format" and isinstance(subject, str) and _wide(subject, tuple(values)):
        raise _too_much(LONGEST, f"format of {_short(subject)}")
    if name in ("replace", "join", "translate") and isinstance(subject, SIZED):
        longest = max((len(one) for one in values if isinstance(one, SIZED)), default=0)
        if (len(subject) + 1) * longest > LARGEST * 100:  # a bound that a long text with short parts stays below
            raise _too_much(LARGEST, f"{name} with {len(subject)} and {longest}")


def _kept(value: object) -> object:
    if isinstance(value, str | list | tuple) and len(value) > LARGEST:
        raise _too_much(LARGEST, str(len(value)))
    return value


def _too_much(most: int, found: str) -> EvalError:
    return EvalError(f"expected at most {most} characters or items, got {found}")


def _short(value: object) -> str:
    text = repr(value[:40]) if isinstance(value, str | bytes | list | tuple) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
