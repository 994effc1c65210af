"""The environment that templates run in: jinja2's immutable sandbox, strict about names, with limits on size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, wraps
from string import Formatter
from typing import Any

from jinja2 import StrictUndefined, nodes, pass_context
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEscapeFormatter, SandboxedFormatter
from markupsafe import Markup

from evalcore.core.filters.pattern import compile_pattern
from evalcore.core.records.errors import EvalError
from evalcore.shell.prompts.templates.limits import (
    GROWING,
    LONGEST,
    join_bounded,
    refuse_call,
    refuse_counts,
    refuse_growth,
    refuse_size,
    refuse_weight,
)
from evalcore.shell.safety.timer import TimeUp, get_budget, run_document, tell_budget

PLAIN = (int, str, bytes, list, tuple, dict)


class Concatenations(CodeGenerator):
    """Compiles ``a ~ b`` to a call that checks the size of the result."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("environment.concat_texts((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class ManySteps(EvalError):
    """A template takes more steps than it may."""


class Counted(Context):
    """A template's names, and how many turns of loops and calls it has taken."""

    steps = 0
    most = LONGEST

    def take_steps(self, count: int = 1) -> None:
        self.steps += count
        if self.steps > self.most:
            raise ManySteps(f"expected at most {self.most} turns of loops and calls, got more")


@pass_context
def count_turns(context: Counted, items: Iterable[object]) -> Iterable[object]:
    """The items of a loop, each of them a step: counted at once where their number is known."""
    try:
        count = len(items)  # type: ignore[arg-type]  # what has no length is counted as it comes
    except TypeError:
        return _count_each(context, items)
    context.take_steps(count)
    return items


def _count_each(context: Counted, items: Iterable[object]) -> Iterator[object]:
    for item in items:
        context.take_steps()
        yield item


class Bounded(Formatter):
    """``str.format`` field by field: widths are checked before, and the sum of all after. Made anew for every call."""

    size = 0

    def format_field(self, value: object, format_spec: str) -> str:
        refuse_counts(
            "format", [int(digits) for digits in re.findall(r"\d{1,40}", format_spec)]
        )  # digits of any script
        refuse_weight(value, "format")
        text = str(super().format_field(value, format_spec))
        self.size += len(text)
        refuse_size(self.size)
        return text


class BoundedFormatter(Bounded, SandboxedFormatter):
    """For plain texts."""


class BoundedEscapeFormatter(Bounded, SandboxedEscapeFormatter):
    """For texts marked as safe."""


class Sandbox(ImmutableSandboxedEnvironment):
    """A sandbox in which no single operation makes something huge. It has no state of its own."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})
    code_generator_class = Concatenations
    context_class = Counted
    concat = staticmethod(join_bounded)  # jinja2 joins the parts of templates, macros and blocks by it

    def _generate(self, source: nodes.Template, *given: Any, **named: Any) -> str:
        """Compile as jinja2 does, the turns of loops counted: nested, they outlast any limit on what they make."""
        for loop in list(source.find_all(nodes.For)):
            loop.iter = nodes.Filter(loop.iter, COUNT, [], [], None, None, lineno=loop.lineno)
        return super()._generate(source, *given, **named)

    def call_binop(self, context: object, operator: str, left: object, right: object) -> object:
        refuse_growth(operator, left, right)
        return self.binop_table[operator](left, right)

    def call(self, *given: object, **named: object) -> object:
        context, function, *values = given
        if isinstance(context, Counted):
            context.take_steps()
        name = str(getattr(function, "__name__", "a call"))
        values += named.values()
        if name != "format":  # its numbers are mostly written out; widths are checked where they are used
            refuse_counts(name, values)
        refuse_call(name, getattr(function, "__self__", None), values)
        return _keep_value(super().call(*given, **named))  # type: ignore[arg-type]  # positional-only, as in jinja2

    def wrap_str_format(self, value: object) -> Callable[..., str] | None:
        """Wrap ``str.format`` as jinja2 does, with limits."""
        wrapped = super().wrap_str_format(value)
        pattern = getattr(value, "__self__", None)
        if wrapped is None or not isinstance(pattern, str):
            return wrapped
        mapped = getattr(value, "__name__", "") == "format_map"

        def bounded(*given: object, **named: object) -> str:
            made: Formatter = BoundedFormatter(self)
            if isinstance(pattern, Markup):
                made = BoundedEscapeFormatter(self, escape=pattern.escape)
            fields = given[0] if mapped else named
            if not isinstance(fields, Mapping):
                raise TypeError("format_map() takes a mapping")
            return type(pattern)(made.vformat(pattern, () if mapped else given, fields))

        bounded.__name__ = "format"
        return bounded

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        # The general rule checks a dozen types; for these two this suffices.
        if type(obj) is str or type(obj) is LoopContext:
            return not attr.startswith("_")
        return super().is_safe_attribute(obj, attr, value)

    def concat_texts(self, parts: Iterable[object]) -> str:
        return join_bounded(map(_write_value, parts))


def get_environment() -> Sandbox:
    """Get the one environment of this process, which never changes once made.

    >>> get_environment().from_string("{{ 'a1b' | regex_replace('[0-9]', '-') }}").render()
    'a-b'
    >>> get_environment().from_string("{{ 'a' * 10 ** 8 }}").render()
    Traceback (most recent call last):
    evalcore.EvalError: expected at most 1000000 characters or items, got 'a' * 100000000
    """
    return _make_environment()


@lru_cache(1)
def _make_environment() -> Sandbox:
    made = Sandbox(undefined=StrictUndefined, keep_trailing_newline=True, finalize=refuse_unwritable)
    del made.globals["lipsum"]  # random text of any length
    made.filters["regex_replace"] = regex_replace
    made.filters.update({name: guard_filter(name, function) for name, function in made.filters.items()})
    made.filters[COUNT] = count_turns
    return made


COUNT = "turns of a loop"  # no name that a template can write


def guard_filter(name: str, function: Callable[..., object]) -> Callable[..., object]:
    """Guard a filter against huge results; ``wraps`` keeps jinja2's marks on the function."""

    @wraps(function)
    def guarded(*given: object, **named: object) -> object:
        values = [one for one in (*given, *named.values()) if isinstance(one, PLAIN)]
        if name in GROWING:
            refuse_counts(name, values[1:])
        refuse_call(name, values[0] if values else None, values[1:])
        return _keep_value(function(*given, **named))

    return guarded


def regex_replace(string: str, pattern: str, repl: str, count: int = 0) -> str:
    """Replace by ``re.sub``: lm-eval's filter.

    >>> regex_replace("a-b", "-", "+")
    'a+b'
    """
    try:
        return run_document(compile_pattern(pattern).sub, repl, string, count)
    except TimeUp:
        raise EvalError(f"the pattern {pattern!r:.100} {tell_budget(get_budget())}") from None


def refuse_unwritable(value: object) -> object:
    """Pass on what a template writes out, unless it is too large.

    >>> refuse_unwritable(5)
    5
    """
    if type(value) is not str:
        refuse_weight(value)
    return value


def _write_value(value: object) -> str:
    return str(refuse_unwritable(value))


def _keep_value(value: object) -> object:
    if isinstance(value, str | list | tuple):
        refuse_size(len(value))
    return value
