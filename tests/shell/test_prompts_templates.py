"""Templates: the quick ways equal jinja2, and hostile ones end at once in an error."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest
from counting import count_steps
from hypothesis import example, given
from hypothesis import strategies as st
from jinja2 import Environment, StrictUndefined

from evalcore import EvalError
from evalcore.shell.models.chat import compile_chat
from evalcore.shell.prompts.fields import read_choices, read_target
from evalcore.shell.prompts.templates.compile import compile_template

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


BIG = {"a": 1000001, "b": "", "c": [], "d": {}, "n": 0, "f": 0.0}


@example(["'%s-%s'|format(a, n)", "'{}'.format(a)"], BIG, "")
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
    "{{ '{:>\uff11\uff10\uff10\uff10\uff10\uff10\uff10\uff10}'.format(1) }}",  # digits of another script
    "{{ ('a,' * 100000).split(',')|join('b' * 100000) }}",
    "{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
    "{{ range(10**7)|list }}",
    "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x %}{{ns.x}}{{ns.x}}{% endset %}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) %}" + "x" * 80 + "{% endfor %}{% endfor %}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{{ '{:1500000000}'.format('a') }}",
    "{{ '{:{}}'.format('a', 10**9) }}",
    "{{ '{a:{b[0]}}'.format(a='a', b=[999999999]) }}",
    "{{ '{a:99999999}'.format_map({'a': 1}) }}",
    "{{ ('{:99999999}'|safe).format('a') }}",
    "{{ ('{0:999999}' * 4000).format('a') }}",
    "{% set x = 'a' * 999999 %}{{ ('%s' * 4000) % ((x,) * 4000) }}",
    "{% set x = 'a' * 999999 %}{{ ('%(x)s' * 4000) % {'x': x} }}",
    "{% set x = 'a' * 999999 %}{{ ('%(x(y))s' * 4000) % {'x(y)': x} }}",
    "{{ ('%999999d' * 4000) % ((1,) * 4000) }}",
    "{{ ('%999999d' * 4000)|format(*((1,) * 4000)) }}",
    "{{ ('a\n' * 3000)|indent(999999) }}",
    "{{ ('a\n' * 3000)|indent('b' * 999999) }}",
    "{{ ('\t' * 2000).expandtabs(1000000) }}",
    "{{ ('a' * 1600).replace('a', 'b' * 900000) }}",
    "{{ ('a,' * 1600).split(',')|join('b' * 900000) }}",
    "{{ ','.join(['a' * 999999] * 4000) }}",
    "{{ ('a ' * 400000)|wordwrap(1, wrapstring='b' * 900000) }}",
    "{{ ('http://a.bc ' * 9000)|urlize(target='x' * 900000) }}",
    "{% set x = 'a' * 999999 %}{% for i in range(9999) %}{{ x }}{% endfor %}",
    "{% macro m(x) %}{% for i in range(9999) %}{{ x }}{% endfor %}{% endmacro %}{{ m('a' * 999999)|length }}",
    "{% set x = 'a' * 999999 %}{% set y %}{% for i in range(9999) %}{{ x }}{% endfor %}{% endset %}",
    *(
        "{% set ns = namespace(x='ab') %}{% for i in range(28) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}" + write
        for write in (
            "{{ ns.x }}",
            "{{ ns }}",
            "{{ ns.x|tojson }}",
            "{{ ns.x|string }}",
            "{{ ns.x ~ '' }}",
            "{{ '%s' % ns.x }}",
            "{{ '{}'.format(ns.x) }}",
            "{{ '{0!r}'.format(ns.x) }}",
            "{{ {'a': ns.x}.values() }}",
        )
    ),
    "{{ lipsum(n=1000000) }}",
    "{{ cycler.__init__.__globals__.os.getpid() }}",
    "{{ a.__class__.__mro__ }}",
    "{{ a|attr('__class__') }}",
    "{{ c.append('x') }}",
    "{% include '/etc/hostname' %}",
    "{% import 'os' as os %}",
    "{{ " + "(" * 3000 + "a" + ")" * 3000 + " }}",
]


MOST_STEPS = 3_000_000
"""The longest take half of that: they split or write some hundred thousand pieces before they are stopped."""


def refuse(work: Callable[[], object]) -> None:
    with pytest.raises(EvalError):
        work()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_templates_end_soon_in_an_error(text: str) -> None:
    read = lambda: read_target(text, [], choices=False)({"a": "x", "c": ["y"]})  # noqa: E731
    count_steps(lambda: refuse(read), MOST_STEPS)
    tracemalloc.start()
    try:
        refuse(read)
        assert tracemalloc.get_traced_memory()[1] < 200_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{{ '{:>4}|{a[0]}|{!r}'.format(1, 'b', a=c) }}", "   1|y|'b'"),
        ("{{ '{a}'.format_map({'a': 2}) }}", "2"),
        ("{{ ('{}'|safe).format('<') }}", "&lt;"),
        ("{{ '%5.1f %s %%' % (2.5, c) }}", "  2.5 ['y'] %"),
        ("{{ '%(a)s-%(a)s' % {'a': 'z'} }}", "z-z"),
        ("{{ 'a\nb'|indent(2) }}", "a\n  b"),
        ("{{ 'a\tb'.expandtabs(4) }}", "a   b"),
        ("{{ ('a ' * 100000).replace('a', 'b')|length }}", "200000"),
        ("{{ (('a,' * 10000).split(','))|join(', ')|length }}", "30000"),
        ("{{ [2000000, 7]|select('gt', 1000000)|list }}{{ [1]|sum(start=5000000) }}", "[2000000]5000001"),
        ("{{ 'a b'|wordwrap(1) }}", "a\nb"),
        ("{{ {'a': [1]}|tojson(indent=1) }}", '{\n "a": [\n  1\n ]\n}'),
        ("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(1) }}{% set y %}{{ 2 }}{% endset %}{{ y }}", "<1>2"),
    ],
)
def test_ordinary_growth_is_jinja2s(text: str, wanted: str) -> None:
    assert compile_template(text)({"a": "x", "c": ["y"]}) == wanted == PLAIN.from_string(text).render(a="x", c=["y"])


def test_a_document_is_never_a_template() -> None:
    assert compile_template("{{a}}{{a|trim}}")({"a": "{{ 1 + 1 }}"}) == "{{ 1 + 1 }}{{ 1 + 1 }}"


def test_a_list_too_deep_to_read_stays_a_text() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    assert read_target("{{a}}", ["x"], choices=False)({"a": deep}) == deep


@pytest.mark.parametrize("text", ["[{[]: 1}]", "[" + "1," * 999_999 + "]"])
def test_hostile_lists(text: str) -> None:
    with pytest.raises(EvalError):
        read_target("{{a}}", ["x"], choices=False)({"a": text})


@pytest.mark.parametrize(
    "text",
    [
        "{% for i in range(9999) %}{{ messages[0].content * 999 }}{% endfor %}",
        "{% set ns = namespace(x=messages) %}{% for i in range(28) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=messages) %}{% for i in range(28) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
        "{{ ns.x|tojson }}",
        "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x %}{{ns.x}}{{ns.x}}{% endset %}{% endfor %}",
        "{{ '{:1500000000}'.format('a') }}",
        "{{ lipsum(n=100000) }}",
        "{{ strftime_now('%c' * 100000) }}",
        "{{ strftime_now.__globals__ }}{% unknown %}",
        "{{ range(9999) | list | tojson(separators=('a' * 999999, ':')) }}",
        "{% set ns = namespace(x=messages) %}{% for i in range(900) %}{% set ns.x = [ns.x] %}{% endfor %}"
        "{{ ns.x|tojson(indent=999) }}",
        "{% generation %}" * 5000 + "{% endgeneration %}" * 5000,
        "{% generation %}{% for i in range(9999) %}{{ messages[0].content * 999 }}{% endfor %}{% endgeneration %}",
    ],
)
def test_hostile_chat_templates_end_soon_in_an_error(text: str) -> None:
    write = lambda: compile_chat(text)([{"role": "user", "content": "hello there"}], True)  # noqa: E731
    count_steps(lambda: refuse(write), MOST_STEPS)
