"""YAML is read as data, with the line of everything that is odd."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore import EvalError
from evalcore.shell.config.yaml_file import FunctionTag, read_yaml


class Plain(yaml.CSafeLoader):
    """PyYAML's own safe loader, with functions as names."""


Plain.add_constructor("!function", lambda loader, node: FunctionTag(node.value, node.start_mark.line + 1, "t.yaml"))


def test_a_duplicate_key_is_a_located_error_or_a_warning():
    text = "task: a\nmetric_list:\n  - metric: acc\n    metric: acc_norm\n"
    with pytest.raises(EvalError, match=r"t\.yaml:4: the key 'metric' is given twice, first on line 3"):
        read_yaml(text, "t.yaml")
    loaded = read_yaml(text, "t.yaml", duplicates="warn")
    assert loaded.value == {"task": "a", "metric_list": [{"metric": "acc_norm"}]}
    assert len(loaded.warnings) == 1


def test_keys_that_are_equal_as_values_are_duplicates():
    with pytest.raises(EvalError, match=r"t\.yaml:2: the key 1 is given twice, first on line 1"):
        read_yaml("1: a\n0x1: b", "t.yaml")


def test_the_line_of_every_outermost_key():
    loaded = read_yaml("a: 1\nb:\n  c: 2\nd: |\n  x\n  y\ne: 3", "t.yaml")
    assert [loaded.line_of(key) for key in "abde"] == [1, 2, 4, 7]


def test_functions_are_names_and_nothing_runs():
    assert read_yaml("f: !function utils.f", "t.yaml").value == {"f": FunctionTag("utils.f", 1, "t.yaml")}
    for text in ("!!python/object/apply:os.getcwd []", "a: !!python/name:os.getcwd", "a: !unknown 1", "a: !!str [1]"):
        with pytest.raises(EvalError, match=r"t\.yaml:1: the tag .* is not read"):
            read_yaml(text, "t.yaml")


@pytest.mark.parametrize(
    "text",
    [
        *("a: [", "a: b: c", "\tx: 1", "? [1, 2]\n: 3", "? {a: 1}\n: 3", "a: &x [1]\nb: *x", "--- 1\n--- 2"),
        *("a: 2024-13-45", "a: !!int x", "a: !!bool x", "a: !!float x", "<<: {a: 1}", "a: =", "!!str [a]: 1"),
        *("[" * 100_000, "- " * 100_000, "? " * 100_000, "{a: " * 100_000, "a: " + "[" * 300 + "]" * 300),
    ],
    ids=lambda text: text[:12],
)
def test_what_is_not_read_is_said_with_its_line(text):
    with pytest.raises(EvalError, match=r"^t\.yaml:\d+: "):
        read_yaml(text, "t.yaml")


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b"a: \xff", "a: \ud800", "a: \x00", "a" * 17_000_000])
def test_what_is_no_text_is_refused_too(text):
    with pytest.raises(EvalError, match=r"^t\.yaml"):
        read_yaml(text, "t.yaml")


def test_an_anchor_or_a_star_alone_is_text_like_any_other():
    assert read_yaml("a: '**bold** & more'\nb: 2 * 3", "t.yaml").value == {"a": "**bold** & more", "b": "2 * 3"}
    assert read_yaml("a: &x 1", "t.yaml").value == {"a": 1}


WORDS = "yes no Yes NO on Off true False TRUE y n null Null ~ 0 -0 +1 007 0o7 0x1F 0b101 1_000 12:30:45 1:60 -1:30"
NUMBERS = (
    ".5 1. 1.5e3 1e3 1.0e+3 -.inf .NaN .inf 1_0.5 1:30.5 6.02E23 0.1 2024-02-29 2024-2-9 2001-12-14t21:59:43.10-05:00"
)
SCALARS = [
    *WORDS.split(),
    *NUMBERS.split(),
    *("2001-12-15 2:59:43.10", "2001-12-14 21:59:43", "''", "'1'", '"a\\nb"', "hello world", "!!str 5", "! 5"),
    *("!!float 3", "!!null x", "!!binary aGk=", "1.2.3", "-", "1e", "0x", "08", "1__0", "99999999999999999999999"),
    *("", "a#b", "é", "🙂"),
]


def both(text: str) -> None:
    """PyYAML and ours say the same, or both refuse."""
    try:
        expected = yaml.load(text, Loader=Plain)
    except (yaml.YAMLError, ValueError, KeyError, OverflowError):
        expected = None
        with pytest.raises(EvalError):
            read_yaml(text, "t.yaml", duplicates="warn")
    else:
        found = read_yaml(text, "t.yaml", duplicates="warn").value
        assert repr(found) == repr(expected)  # types too, and not-a-number


@pytest.mark.parametrize("scalar", SCALARS)
def test_every_scalar_is_what_pyyaml_makes_of_it(scalar):
    both(f"a: {scalar}\nb: [{scalar}]" if scalar not in ("-", "") else f"a: {scalar}")
    both(f"{scalar or 'x'}: 1")


PIECES = st.sampled_from([*"abc:-[]{}#&!|>'\"%@`, \n0123456789.~", "\n  ", ": ", "- ", "yes", "!function f.g", "1:2"])


@given(st.lists(PIECES, max_size=25).map("".join))
@settings(max_examples=400, deadline=None)
def test_any_text_is_read_as_pyyaml_reads_it_or_refused(text):
    """Law: no traceback, and no other value."""
    try:
        found = read_yaml(text, "t.yaml", duplicates="warn").value
    except EvalError:
        return
    assert repr(found) == repr(yaml.load(text, Loader=Plain))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.dates(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    )
)
@settings(max_examples=100, deadline=None)
def test_what_pyyaml_writes_is_read_back(value):
    text = yaml.dump({"value": value}, Dumper=yaml.CSafeDumper, allow_unicode=True)
    if "*id" not in text:
        assert read_yaml(text, "t.yaml").value == yaml.load(text, Loader=Plain)


def test_without_the_c_parser_the_same():
    code = (
        "import yaml; yaml.__with_libyaml__ = False\n"
        "from evalcore.shell.config.yaml_file import PARSER, read_yaml\n"
        "assert PARSER is yaml.SafeLoader\n"
        "print(read_yaml('a: 1\\nb: [yes, 2024-01-01, !function u.f]', 't.yaml').value)\n"
        "try: read_yaml('[' * 5000, 't.yaml')\n"
        "except ValueError as wrong: print(wrong)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "{'a': 1, 'b': [True, datetime.date(2024, 1, 1), FunctionTag(" in out
    assert "t.yaml:1: nested more than 200 deep" in out


@pytest.mark.parametrize("step", [50, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def test_lm_evals_files_read_as_pyyaml_reads_them(step):
    """Its library has files that give a key twice; ours says which, with the line (E44)."""
    spec = find_spec("lm_eval")
    if spec is None or spec.origin is None:
        pytest.skip("lm_eval is not installed")
    files = sorted((Path(spec.origin).parent / "tasks").rglob("*.yaml"))
    assert len(files) > 10_000
    odd = 0
    for file in files[::step]:
        text = file.read_bytes()
        loaded = read_yaml(text, "t.yaml", duplicates="warn")
        odd += len(loaded.warnings)
        assert loaded.value == yaml.load(text, Loader=Plain), file
    assert odd > 0 or step > 1
