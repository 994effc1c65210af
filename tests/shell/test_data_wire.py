"""JSON lines: every value survives, every bad line is one located line of complaint."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.core.records.errors import EvalError
from evalcore.shell.data.wire import decode_line, encode_line, number_lines

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_every_value_comes_back(value: object) -> None:
    line = encode_line(value)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert repr(decode_line(line, "x:1")) == repr(value)  # repr: NaN is not equal to itself, 1 and 1.0 are


@given(st.lists(st.text(st.characters(codec=None)), max_size=5))
def test_lines_end_at_newlines_only(texts: list[str]) -> None:
    data = b"".join(map(encode_line, texts))
    assert [decode_line(line, "") for _, line in number_lines(data.split(b"\n"))] == texts


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, "\ud83d", [None, math.nan], {"a": None, "b": [-math.inf]}]
)
def test_what_json_has_no_word_for(value: object) -> None:
    assert repr(decode_line(encode_line(value), "")) == repr(value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"a": ', "f:3: not JSON: Expecting value at byte 6"),
        (b'{"a": 1} {"b": 2}', "f:3: not JSON: Extra data at byte 9"),
        ("é ".encode() + b"x", "f:3: not JSON: Expecting value at byte 0"),
        (b'{"a": "\xff"}', "f:3: not UTF-8: invalid start byte at byte 7"),
        (b'{"a": "\xed\xa0\xbd"}', "f:3: not UTF-8"),
        (b"[" * 100_000, "f:3: not read as JSON: maximum recursion depth"),
        (b'{"a":' * 100_000, "f:3: not read as JSON: maximum recursion depth"),
        (b"1" * 5000, "f:3: not read as JSON: Exceeds the limit"),
        (b'"\x00"', "f:3: not JSON: Invalid control character"),
        (b"", "f:3: not JSON"),
        (b'{\n"a": 1,\n"b": x}', "f:3:3: not JSON: Expecting value at byte 15"),
    ],
)
def test_bad_lines(line: bytes, said: str) -> None:
    with pytest.raises(EvalError) as raised:
        decode_line(line, "f:3")
    assert str(raised.value).startswith(said)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300


def test_what_cannot_be_written() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (deep, object(), {"a": {object()}}):
        with pytest.raises(EvalError, match="cannot write this as JSON"):
            encode_line(value)
