"""Chat templates of the shapes that models have, beside transformers' own apply_chat_template."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Likelihood, LogLikelihood
from evalcore.shell.models.chat import compile_chat
from evalcore.shell.prompts.turns import CHAT_DATE
from tests.models.test_hf_kinds import ask, open_folder

pytestmark = pytest.mark.models

TURNS = [
    {"role": "system", "content": "Be <brief> & kind."},
    {"role": "user", "content": "What is 1 + 1?"},
    {"role": "assistant", "content": "<think>\none and one\n</think>\n\n2"},
    {"role": "user", "content": " Wie heißt du? "},
]
TEMPLATES = {
    "trained by TRL": """
        {%- for message in messages %}
            {%- if message.role == 'assistant' %}
        {% generation %}{{ '<|im_start|>assistant\n' + message.content + '<|im_end|>' }}{% endgeneration %}
            {%- else %}{{ '<|im_start|>' ~ message.role ~ '\n' ~ message['content'] ~ '<|im_end|>' }}{% endif -%}
        {% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}""",
    "names set in a generation": """
        {%- set seen = 'none' %}{% for m in messages %}
        {%- generation -%}{% set seen = m.role %}{% for c in m.content[:3] %}{{ loop.index }}{{ c }}{% endfor %}{{ loop.index }}
        {%- endgeneration -%}{{ seen }};{% endfor %}""",
    "Llama 3": """{{- bos_token }}
        {%- if not date_string is defined %}
            {%- if strftime_now is defined %}{%- set date_string = strftime_now("%d %b %Y") %}
            {%- else %}{%- set date_string = "26 Jul 2024" %}{%- endif %}
        {%- endif %}
        {%- if messages[0]['role'] == 'system' %}
            {%- set system_message = messages[0]['content']|trim %}{%- set messages = messages[1:] %}
        {%- else %}{%- set system_message = "" %}{%- endif %}
        {{- "<|start_header_id|>system<|end_header_id|>\n\nToday Date: " + date_string + "\n\n" + system_message }}
        {%- for message in messages %}
            {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
                {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
            {%- endif %}
        {%- endfor %}
        {%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %}""",
    "gpt-oss": """
        {%- macro render(tools) %}{% for tool in tools %}{{ tool | tojson(indent=2) }}{% endfor %}{% endmacro -%}
        <|start|>system<|message|>Knowledge cutoff: 2024-06\nCurrent date: {{ strftime_now("%Y-%m-%d") }} {{ strftime_now("%A, %j") }}
        {%- if tools %}{{ render(tools) }}{% endif -%}
        {%- if builtin_tools is defined %}{{ builtin_tools }}{% endif -%}
        {%- for m in messages -%}
            {%- if loop.last and not add_generation_prompt %}{% break %}{% endif -%}
            {%- if m.role == 'system' %}{% continue %}{% endif -%}
            <|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>
        {%- endfor -%}
        {%- if add_generation_prompt %}<|start|>assistant{% endif %}""",
    "Qwen 3": """
        {%- if tools is none %}no tools{% endif %}{% if documents %}documents{% endif %}
        {%- set ns = namespace(multi_step_tool=true, last=messages|length - 1) %}
        {%- for message in messages[::-1] %}
            {%- set index = (messages|length - 1) - loop.index0 %}
            {%- if ns.multi_step_tool and message.role == "user" and message.content is string %}
                {%- set ns.multi_step_tool = false %}{%- set ns.last = index %}
            {%- endif %}
        {%- endfor %}
        {%- for message in messages %}
            {%- set content = message.content %}
            {%- if message.reasoning_content is string %}{{ message.reasoning_content }}
            {%- elif '</think>' in content %}{%- set content = content.split('</think>')[-1].lstrip('\n') %}{% endif %}
            {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>\n' }}
        {%- endfor %}
        {%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}
            {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{% endif %}
        {%- endif %}""",
    "special tokens": """{{ bos_token }}{{ eos_token }}{{ unk_token }}{{ pad_token }}{{ sep_token is defined }}
        {%- for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}""",
    "JSON": """{{ messages | tojson }}{{ messages | tojson(ensure_ascii=True) }}
        {{- messages[:2] | tojson(indent=4, sort_keys=True) }}{{ messages | tojson(separators=(',', ':')) }}
        {{- {'b': [1, {}], 'a': 1.5} | tojson(indent='\t', separators=(', ', '='), sort_keys=True) }}{{ messages | tojson(true, 1) }}""",
    "nested loops": """
        {%- for m in messages %}{% for word in m.content.split() %}
            {%- if word == 'is' %}{% continue %}{% endif %}{% if loop.index > 3 %}{% break %}{% endif %}
            {{- loop.index0 ~ word }}{{ ',' if not loop.last }}
        {%- endfor %}{{ loop.cycle('a', 'b') }}{% endfor %}""",
}


@pytest.fixture(scope="module")
def tokenizer(small_model: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(small_model)


@pytest.mark.parametrize("kind", TEMPLATES)
@pytest.mark.parametrize("open_turn", [True, False])
def test_templates_write_what_they_write_in_transformers(
    tokenizer: Any, kind: str, open_turn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.utils import chat_template_utils

    class Stopped(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Stopped:
            return cls(2026, 1, 31)

    monkeypatch.setattr(chat_template_utils, "datetime", Stopped)
    given = {"enable_thinking": False, "tone": "mild"}
    turns = TURNS if open_turn else [*TURNS, {"role": "assistant", "content": "I am"}]
    chat = compile_chat(TEMPLATES[kind], {**tokenizer.special_tokens_map, **given}, datetime.date(2026, 1, 31))
    wanted = tokenizer.apply_chat_template(
        turns, chat_template=TEMPLATES[kind], tokenize=False, add_generation_prompt=open_turn, **given
    )
    if open_turn:
        assert chat(turns, True) == wanted
    elif "I am" in wanted:
        assert chat(turns, False) == wanted[: wanted.rindex("I am") + len("I am")]
    else:
        with pytest.raises(EvalError, match="leaves out the last message"):
            chat(turns, False)


def test_a_refusal_of_the_template_is_told(tokenizer: Any) -> None:
    from jinja2 import TemplateError

    strict = (
        "{% if messages|length % 2 == 0 %}{{ raise_exception('turns must alternate: ' ~ messages|length) }}{% endif %}"
    )
    with pytest.raises(TemplateError, match="turns must alternate: 2"):
        tokenizer.apply_chat_template(TURNS[1:3], chat_template=strict, tokenize=False)
    with pytest.raises(EvalError, match="refuses these messages: turns must alternate: 2"):
        compile_chat(strict)(TURNS[1:3], True)


def test_the_date_is_an_argument_that_names_the_model(small_model: Path) -> None:
    given = {"chat_template": "{{ strftime_now('%d %b %Y %H:%M') }}"}
    usual, other = open_folder(small_model, **given), open_folder(small_model, **given, chat_date="2026-01-31")
    assert usual.chat is not None
    assert other.chat is not None
    assert usual.chat(TURNS, True) == f"{CHAT_DATE:%d %b %Y} 00:00" == "26 Jul 2024 00:00"
    assert other.chat(TURNS, True) == "31 Jan 2026 00:00"
    assert '"chat_date":"2026-01-31"' in other.identity


def test_a_template_that_is_not_valid_is_an_error_in_chat_alone(small_model: Path) -> None:
    model = open_folder(small_model, chat_template="{% unknown %}")
    assert isinstance(ask(model, [LogLikelihood("A cat", " sat")])[0], Likelihood)
    assert model.chat is not None
    with pytest.raises(EvalError, match="chat template is not valid: Encountered unknown tag 'unknown'"):
        model.chat(TURNS, True)
