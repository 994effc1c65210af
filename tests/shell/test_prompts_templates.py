"""Templates: the quick ways equal jinja2, and hostile ones end at once in an error."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment, StrictUndefined

from evalcore import EvalError
from evalcore.shell.prompts.reading import read_choices, read_target
from evalcore.shell.prompts.templates import compile_template

Row = dict[str, object]
PLAIN = Environment(undefined=StrictUndefined, keep_trailing_newline=True)

EXPRESSIONS = [
    "a",
    "b",
    "c",
    "c[0]",
    "c[-1]",
    "c[n]",
    "d.x",
    "d['x']",
    "d.x[0]",
    "d.items",
    "d.get('x')",
    "a.strip()",
    "a.split(' ')",
    "a.split(' ')[0]",
    "a.upper().lower()",
    "[a, b]",
    "[c[0], a.strip()]",
    "n",
    "n + 1",
    "a[0]",
    "a ~ b",
    "a + b",
    "a * 2",
    "none",
    "true",
    "f",
    "missing",
    "range(3)|list",
    "a|trim",
    "c|join(', ')",
    "a|replace('e', 'E')",
    "'%s-%s'|format(a, n)",
    "c|length",
    "d",
]
texts = st.text(max_size=8)
docs = st.fixed_dictionaries(
    {
        "a": texts | st.integers() | st.none(),
        "b": texts,
        "c": st.lists(texts, max_size=3) | texts,
        "d": st.dictionaries(st.sampled_from(["x", "y", "items"]), st.lists(texts, max_size=2) | texts, max_size=2),
        "n": st.integers(-2, 2),
        "f": st.floats(),
    }
)


@given(st.lists(st.sampled_from(EXPRESSIONS) | st.just(None), min_size=1, max_size=4), docs, texts)
def test_rendering_is_jinja2s(parts: list[str | None], doc: Row, between: str) -> None:
    plain = between.replace("{", "(")
    text = "".join(plain if part is None else "{{" + part + "}}" for part in parts)
    try:
        wanted = PLAIN.from_string(text).render(**doc)
    except Exception:
        with pytest.raises(Exception):  # whatever it is: a reading tells it with its place
            compile_template(text)(doc)
        return
    if " at 0x" not in wanted:
        assert compile_template(text)(doc) == wanted


@given(docs)
def test_a_list_of_texts_is_what_its_literal_would_be(doc: Row) -> None:
    from ast import literal_eval

    for text in ("{{c}}", "{{[a, b]}}", "{{d.x}}"):
        try:
            wanted = literal_eval(PLAIN.from_string(text).render(**doc))
        except Exception:
            continue
        assert read_choices(text, [])(doc) == wanted
        if isinstance(wanted, list):
            assert read_target(text, [], choices=False)(doc) == wanted


HOSTILE = [
    "{{ 'a' * 10**8 }}",
    "{{ 10**8 * 'a' }}",
    "{{ [0] * 10**8 }}",
    "{{ 9 ** (9 ** 9) }}",
    "{{ 'a'.ljust(10**8) }}",
    "{{ 'a'.center(width=10**8) }}",
    "{{ 'a'|center(10**8) }}",
    "{{ 'a\\nb'|indent(10**8) }}",
    "{{ '%0100000000d'|format(1) }}",
    "{{ '%0100000000d' % 1 }}",
    "{{ '%*d' % (10**8, 1) }}",
    "{{ '{:>100000000}'.format(1) }}",
    "{{ ('a,' * 100000).split(',')|join('b' * 100000) }}",
    "{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
    "{{ range(10**7)|list }}",
    "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x %}{{ns.x}}{{ns.x}}{% endset %}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) %}xxxxxxxx{% endfor %}{% endfor %}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{{ lipsum(n=1000000) }}",
    "{{ cycler.__init__.__globals__.os.getpid() }}",
    "{{ a.__class__.__mro__ }}",
    "{{ a|attr('__class__') }}",
    "{{ c.append('x') }}",
    "{% include '/etc/hostname' %}",
    "{% import 'os' as os %}",
    "{{ " + "(" * 3000 + "a" + ")" * 3000 + " }}",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_templates_end_soon_in_an_error(text: str) -> None:
    read = lambda: read_target(text, [], choices=False)({"a": "x", "c": ["y"]})  # noqa: E731
    start = time.process_time()
    with pytest.raises(EvalError):
        read()
    assert time.process_time() - start < 5


def test_a_document_is_never_a_template() -> None:
    assert compile_template("{{a}}{{a|trim}}")({"a": "{{ 1 + 1 }}"}) == "{{ 1 + 1 }}{{ 1 + 1 }}"


def test_a_list_too_deep_to_read_stays_a_text() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    assert read_target("{{a}}", ["x"], choices=False)({"a": deep}) == deep


@pytest.mark.parametrize("text", ["[{[]: 1}]", "[" + "1," * 999_999 + "]"])
def test_hostile_lists(text: str) -> None:
    with pytest.raises(EvalError):
        read_target("{{a}}", ["x"], choices=False)({"a": text})
