"""Laws of make_finder: as if by findall, whatever short cut it takes."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from evalcore.core.filters.pattern import compile_pattern, make_finder

LAW = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


def by_findall(pattern, select, text):
    """lm-eval's reading: the select-th match, of a tuple the first group that is not empty; stripped."""
    matches = re.findall(pattern, text)
    if not -len(matches) <= select < len(matches):
        return None
    match = matches[select]
    if isinstance(match, tuple):
        match = next((group for group in match if group), None)
    return None if match is None else match.strip()


ATOMS = st.sampled_from(
    ["a", "b", " ", "-", r"\.", r"\$", "[0-9]", "[a-c]", "[^a]", r"\d", r"\w", r"\s", ".", "[-a ]", r"[\d.,]", "é", "]"]
)
ANCHORS = st.sampled_from(["^", "$", r"\b", "(?=a)", "(?!b)", "(?<=a)"])
QUANTIFIERS = st.sampled_from(["", "", "", "?", "+", "*", "{1,2}", "{2}", "+?", "*?", "??", "{0,1}?"])


def patterns():
    """A small grammar of literals, classes, groups, alternations and quantifiers."""

    def larger(inner):
        several = st.lists(inner, min_size=1, max_size=3).map("".join)
        either = st.tuples(several, several | st.just("")).map("|".join)
        grouped = st.tuples(st.sampled_from(["({})", "(?:{})"]), several | either).map(lambda p: p[0].format(p[1]))
        return st.tuples(grouped, QUANTIFIERS).map("".join) | several | either

    atom = st.tuples(ATOMS, QUANTIFIERS).map("".join)
    return st.recursive(atom | atom | atom | ANCHORS, larger, max_leaves=6)


TEXTS = st.text(alphabet="ab c-.,$09é]\n", max_size=14)


@LAW
@given(patterns(), st.sampled_from([0, -1, 1, -2]), st.lists(TEXTS, min_size=1, max_size=4))
def test_finder_is_findall(pattern, select, texts):
    """make_finder(pattern, select)(text) is the select-th match of findall."""
    try:
        rule = compile_pattern(pattern)
    except ValueError:
        assume(False)
    find = make_finder(rule, select)
    for text in texts:
        assert find(text) == by_findall(pattern, select, text), (pattern, select, text)


REALISTIC = (
    r"#### (\-?[0-9\.\,]+)",
    r"(-?[$0-9.,]{2,})|(-?[0-9]+)",
    r"The answer is (\-?[0-9\.\,]+).",
    r"(\([A-Z]\))",
    r"((?<=The answer is )(.*)(?=.)|(?<=answer is )(.*)(?=.))",
    r"(?i)answer(?: is)?:?\s*\(?([A-D])\b",
    r"\\boxed\{([^}]*)\}",
    r"[Aa]nswer\s*[:=]\s*([-+]?\d+(?:[.,]\d+)*)",
    r"\b([A-J])\b",
    r"answer is \(?([ABCDEFGHIJ])\)?",
    r":[\s]*(A|B|C|D)",
    r"([0-9]+)|(x)|()",
    r"\d+(?:\.\d+)?",
    r"[^\d]+",
    r"(?s)<answer>(.*?)</answer>",
    r"^\s*(yes|no)\b",
    r"((?:\d{1,3},)*\d{1,3}) dollars",
    r"(a+)\1",
    r"[\w']+$",
)
SPOKEN = (
    "",
    "The answer is 42.",
    "The answer is 4",
    "so 3 + 4 = 7, and $1,234.50 is paid.\n#### 1,234.50",
    "Answer: (B) because (A) is wrong; answer is (C).",
    "#### -5\n#### 6\n####",
    "x = 5 dollars, then 1,000 dollars; answer = 7.25",
    r"\boxed{12} or \boxed{} or \boxed{ 13 }",
    "<answer> yes\nno </answer><answer></answer>",
    "No, yes, A: B:C : D",
    "١٢٣ and 日本 aaaa é",
    "  yes ",
    "A" * 30 + "1" * 30 + "!",
)


@pytest.mark.parametrize("select", [0, -1, 1])
@pytest.mark.parametrize("pattern", REALISTIC)
def test_realistic_patterns(pattern, select):
    """The patterns that tasks use, on replies that models give."""
    find = make_finder(compile_pattern(pattern), select)
    for text in SPOKEN:
        assert find(text) == by_findall(pattern, select, text), text


@pytest.mark.parametrize("pattern", REALISTIC)
@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(SPOKEN), max_size=4).map(" ".join), st.sampled_from([0, -1, 1]))
def test_realistic_patterns_on_longer_replies(pattern, text, select):
    """The same on replies put together from several."""
    assert make_finder(compile_pattern(pattern), select)(text) == by_findall(pattern, select, text)
