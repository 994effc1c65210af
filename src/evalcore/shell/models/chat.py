"""The chat template of a model: foreign code, so it runs in the sandbox of the task templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from functools import cache
from json import JSONEncoder

from jinja2 import Template, TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.shell.prompts.templates.limits import join_bounded
from evalcore.shell.prompts.templates.sandbox import Sandbox, get_environment, guard_filter, refuse_unwritable
from evalcore.shell.prompts.turns import CHAT_DATE, ChatTemplate, Message

LONGEST_FORMAT = 1000


class Generation(Extension):
    """``{% generation %}`` marks what the model said, for training: it is rendered as if it were not marked."""

    tags = {"generation"}  # noqa: RUF012  # jinja2's own name

    def parse(self, parser: Parser) -> nodes.Node:
        """Parse the block to a scope, which keeps to itself what is set in it, as in transformers."""
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


def compile_chat(
    template: str, variables: Mapping[str, object] = FrozenDict(), today: date = CHAT_DATE
) -> ChatTemplate:
    """Make a chat template a function that writes messages as a prompt. It knows no clock but ``today``: the same
    messages give the same prompt every day. It is compiled for the first prompt: a model that is not asked to chat may
    have a template that is not valid.

    As in lm-eval, messages whose turn is not opened end with the last message's own text, and a template without a
    system role gets the messages without theirs.

    >>> chat = compile_chat("{% for m in messages %}<{{ m.content }}>{% endfor %}{{ '!' if add_generation_prompt }}")
    >>> chat([{"role": "user", "content": "hi"}], True), chat([{"role": "user", "content": "hi"}], False)
    ('<hi>!', '<hi')
    """

    @cache
    def compile_once() -> Template:
        return _compile_template(template, {**variables, "strftime_now": _stop_clock(today)})

    def write(messages: Sequence[Message], open_turn: bool) -> str:
        compiled = compile_once()
        try:
            text = _render_messages(compiled, messages, open_turn)
        except TemplateError as wrong:
            rest = [message for message in messages if message["role"] != "system"]
            if len(rest) == len(messages):
                raise EvalError(f"the model's chat template refuses these messages: {wrong}") from wrong
            return write(rest, open_turn)
        except EvalError:
            raise
        except Exception as wrong:  # foreign code may raise anything
            raise EvalError(f"the model's chat template fails: {type(wrong).__name__}: {wrong}") from wrong
        return text if open_turn else _end_with(text, messages[-1]["content"])

    return write


def _compile_template(template: str, variables: Mapping[str, object]) -> Template:
    """Compile a template in an environment like that of transformers, but with limits."""
    extensions = ["jinja2.ext.loopcontrols", Generation]
    made = Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=extensions, finalize=refuse_unwritable)
    made.filters.update(get_environment().filters)
    made.filters["tojson"] = guard_filter("tojson", _write_json)
    del made.globals["lipsum"]  # random text of any length
    made.globals |= {"raise_exception": _refuse_messages, "tools": None, "documents": None, **variables}
    try:
        return made.from_string(template)
    except Exception as wrong:  # jinja2's parser and Python's compiler, on whatever nests too deeply
        raise EvalError(f"the model's chat template is not valid: {wrong}") from wrong


def _render_messages(template: Template, messages: Sequence[Message], open_turn: bool) -> str:
    """Write messages; the text may be a million characters longer than theirs, however long these are."""
    given: dict[str, object] = {"messages": [dict(message) for message in messages]}
    context = template.new_context({**given, "add_generation_prompt": open_turn})
    return join_bounded(template.root_render_func(context), given)


def _end_with(text: str, content: str) -> str:
    """Cut a text after the last occurrence of the content."""
    at = text.rfind(content.strip())
    if at < 0:
        raise EvalError("the model's chat template leaves out the last message, which is to be continued")
    tail = content.lstrip()
    return text[: at + len(tail if text[at:].startswith(tail) else content.strip())]


# --- what a template may call ---------------------------------------------------------------------------------------


def _refuse_messages(message: str) -> str:
    raise TemplateError(message)


def _stop_clock(today: date) -> Callable[[str], str]:
    """The ``strftime_now`` of transformers, at the first minute of a given day."""
    moment = datetime.combine(today, time())

    def strftime_now(format: str) -> str:
        if len(format) > LONGEST_FORMAT:  # a directive of two characters makes many more
            raise EvalError(f"expected a format of at most {LONGEST_FORMAT} characters, got {len(format)}")
        return moment.strftime(format)

    return strftime_now


def _write_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """The ``tojson`` of transformers, in parts: indents of nested lists add up to more than any of them shows."""
    encoder = JSONEncoder(ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    return join_bounded(encoder.iterencode(value), {"": value})
