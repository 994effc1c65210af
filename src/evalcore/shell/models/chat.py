"""The chat template of a model: foreign code, so it runs in the sandbox of the task templates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from jinja2 import Template, TemplateError

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.shell.prompts.templates.sandbox import Sandbox, get_environment, guard_filter, refuse_unwritable
from evalcore.shell.prompts.turns import ChatTemplate, Message


def compile_chat(
    template: str,
    bos: str = "",
    eos: str = "",
    variables: Mapping[str, object] = FrozenDict(),
) -> ChatTemplate:
    """Compile a chat template to a function that writes messages as a prompt. It knows no clock: the same messages give
    the same prompt every day.

    As in lm-eval, messages whose turn is not opened end with the last message's own text, and a template without a
    system role gets the messages without theirs.

    >>> chat = compile_chat("{% for m in messages %}<{{ m.content }}>{% endfor %}{{ '!' if add_generation_prompt }}")
    >>> chat([{"role": "user", "content": "hi"}], True), chat([{"role": "user", "content": "hi"}], False)
    ('<hi>!', '<hi')
    """
    made = Sandbox(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"], finalize=refuse_unwritable
    )
    made.filters.update(get_environment().filters)
    made.filters["tojson"] = guard_filter("tojson", _write_json)
    del made.globals["lipsum"]  # random text of any length
    made.globals |= {"raise_exception": _refuse_messages, "bos_token": bos, "eos_token": eos, **variables}
    try:
        compiled = made.from_string(template)
    except TemplateError as wrong:
        raise EvalError(f"the model's chat template is not valid: {wrong}") from wrong

    def write(messages: Sequence[Message], open_turn: bool) -> str:
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


def _render_messages(template: Template, messages: Sequence[Message], open_turn: bool) -> str:
    given = [dict(message) for message in messages]
    return template.render(messages=given, add_generation_prompt=open_turn, tools=None, documents=None)


def _end_with(text: str, content: str) -> str:
    """Cut a text after the last occurrence of the content."""
    at = text.rfind(content.strip())
    if at < 0:
        raise EvalError("the model's chat template leaves out the last message, which is to be continued")
    tail = content.lstrip()
    return text[: at + len(tail if text[at:].startswith(tail) else content.strip())]


def _refuse_messages(message: str) -> str:
    raise TemplateError(message)


def _write_json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
