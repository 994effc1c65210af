"""Every filter of lm-eval 0.4.13, through its own classes and through ours, on random and realistic replies."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("lm_eval")

import lm_eval.filters  # noqa: F401  (fills its registry)
from lm_eval.api.registry import filter_registry, get_filter

from evalcore import EVALCORE, FILTERS, EvalError, Pipeline, Sample, Step, Tables
from evalcore.core.filters.chain import chain
from evalcore.core.filters.reply import nested, replies
from evalcore.lm_eval import LM_EVAL_0_4_13

BOTH = pytest.mark.parametrize("tables", [LM_EVAL_0_4_13, EVALCORE], ids=lambda tables: tables.name)

PIECES = [
    "The answer is ",
    "#### ",
    "Answer: ",
    "A",
    "B",
    "(C)",
    "(D).",
    "42",
    "-3.5",
    "1,000",
    "$5",
    ".",
    ",",
    " ",
    "\n",
    "\t",
    "\u00a0",
    "red",
    "RED",
    "blue",
    "Guilty",
    "Guilty of Romance",
    "é",
    "ß",
    "İ",
    "日本",
    "\\boxed{7}",
    "[",
    "]",
    "'",
    "",
]
PATTERNS = [
    r"#### (\-?[0-9\.\,]+)",
    r"The answer is (\-?[0-9\.\,]+).",
    r"(-?[$0-9.,]{2,})|(-?[0-9]+)",
    r"(?i)answer:\s*(.*?)(?:\.|$)",
    r"\(([A-D])\)|([A-D])\b",
    r"[0-9]*",
    r"(x)?(y)?",
    r"^\s*(\w+)",
    r"(?<=is )\w+",
    r"[A-Z]",
    r"(\d+)(?!\d)",
]
text = st.lists(st.sampled_from(PIECES), max_size=8).map("".join) | st.text(max_size=12)
units = st.lists(st.lists(text, min_size=1, max_size=5), min_size=1, max_size=6)


def theirs(
    name: str, resps: list[list[object]], docs: list[dict] | None = None, **options: object
) -> list[list[object]]:
    out = list(get_filter(name)(**options).apply([list(unit) for unit in resps], docs or [{}] * len(resps)))
    return [_listed(unit) for unit in out]


def _listed(unit: object) -> list[object]:
    return list(unit) if isinstance(unit, list | tuple) else [unit]


def ours(
    tables: Tables, name: str, resps: list[list[object]], docs: list[dict] | None = None, **options: object
) -> list[list[object]]:
    samples = [Sample(i, doc=json.dumps(doc).encode()) for i, doc in enumerate(docs or [{}] * len(resps))]
    apply = chain(Pipeline("p", (Step.of(name, **options),)), tables.filters)
    return nested(apply(replies(resps), samples))


def test_every_filter_of_lm_eval_is_here() -> None:
    assert set(filter_registry._objs) - {"decontaminate"} <= set(FILTERS)


@BOTH
@pytest.mark.parametrize("name", ["take_first", "remove_whitespace", "lowercase", "uppercase", "format_span"])
@given(given_units=units)
def test_filters_without_options(tables: Tables, name: str, given_units: list[list[str]]) -> None:
    assert ours(tables, name, given_units) == theirs(name, given_units)


@BOTH
@given(given_units=units, k=st.integers(1, 3))
def test_take_first_k(tables: Tables, given_units: list[list[str]], k: int) -> None:
    enough = [unit * k for unit in given_units]
    assert ours(tables, "take_first_k", enough, k=k) == theirs("take_first_k", enough, k=k)


@BOTH
def test_take_first_k_of_too_few_is_an_error_in_both(tables: Tables) -> None:
    with pytest.raises(AssertionError):
        theirs("take_first_k", [["a"]], k=2)
    with pytest.raises(EvalError, match="at least 2 replies, got 1"):
        ours(tables, "take_first_k", [["a"]], k=2)


@BOTH
@given(given_units=st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=9), min_size=1, max_size=6))
def test_majority_vote(tables: Tables, given_units: list[list[str]]) -> None:
    assert ours(tables, "majority_vote", given_units) == theirs("majority_vote", given_units)


@BOTH
@settings(max_examples=200)
@given(
    given_units=units,
    pattern=st.sampled_from(PATTERNS),
    select=st.sampled_from([0, -1]),
    fallback=st.sampled_from(["[invalid]", "", "none"]),
)
def test_regex(tables: Tables, given_units: list[list[str]], pattern: str, select: int, fallback: str) -> None:
    chosen = {"regex_pattern": pattern, "group_select": select, "fallback": fallback}
    assert ours(tables, "regex", given_units, **chosen) == theirs("regex", given_units, **chosen)


@BOTH
@given(given_units=units, pattern=st.sampled_from(PATTERNS), select=st.integers(-4, 4))
def test_regex_with_any_group_select(tables: Tables, given_units: list[list[str]], pattern: str, select: int) -> None:
    """Where lm-eval has an answer it is ours; where it raises IndexError (E20) ours is the fallback."""
    for unit in given_units:
        for reply in unit:
            mine = ours(tables, "regex", [[reply]], regex_pattern=pattern, group_select=select)
            try:
                assert mine == theirs("regex", [[reply]], regex_pattern=pattern, group_select=select)
            except IndexError:
                assert mine == [["[invalid]"]]


@BOTH
def test_regex_on_what_is_no_text(tables: Tables) -> None:
    odd: list[list[object]] = [[None, 4, "#### 4"]]
    assert ours(tables, "regex", odd) == theirs("regex", odd) == [["[invalid]", "[invalid]", "4"]]


@BOTH
@given(given_units=units, words=st.lists(st.tuples(st.text("ab'", max_size=3), st.sampled_from(["NOUN", "VERB", ""]))))
def test_regex_pos(tables: Tables, given_units: list[list[str]], words: list[tuple[str, str]]) -> None:
    resps = [*given_units, [str(words)]]
    found = [[list(value) for value in unit] for unit in ours(tables, "regex_pos", resps)]
    assert found == [[list(value) for value in unit] for unit in theirs("regex_pos", resps)]


@BOTH
@given(given_units=units, default=st.sampled_from([None, "x", -1]))
def test_map(tables: Tables, given_units: list[list[str]], default: object) -> None:
    table = {"A": 1, "42": "forty-two", "": "empty", " ": None}
    resps = [[*unit, "A", "42", ""] for unit in given_units]
    chosen = {"mapping_dict": table, "default_value": default}
    assert ours(tables, "map", resps, **chosen) == theirs("map", resps, **chosen)


@BOTH
@given(given_units=units)
def test_custom(tables: Tables, given_units: list[list[str]]) -> None:
    def longest_with_choice(resps: list[list[str]], docs: list[dict]) -> list[list[str]]:
        return [[max(unit, key=len) + doc["tail"]] for unit, doc in zip(resps, docs, strict=True)]

    docs = [{"tail": str(i)} for i in range(len(given_units))]
    chosen = {"filter_fn": longest_with_choice}
    assert ours(tables, "custom", given_units, docs, **chosen) == theirs("custom", given_units, docs, **chosen)


SPANS = [
    "Person: Ada Lovelace $$ Location: London, Paris $$ date: none",
    "PER: x$LOC: y",
    "people : a, b\ntime: now",
    "organization: IBM$$ORG: none, SAP $$",
    "persons: time: 5",
    "none",
    "",
    "company: a $ b: c",
    "superperson: q",
    "LOC: $$ PER: None",
    "Country: İstanbul, NONE$$$continent: Asia",
    "date:\n\nper:",
]


@BOTH
def test_format_span_on_entities(tables: Tables) -> None:
    rng = random.Random(3)
    resps = [["".join(rng.choices(SPANS, k=rng.randint(1, 3)))] for _ in range(300)] + [[one] for one in SPANS]
    assert ours(tables, "format_span", resps) == theirs("format_span", resps)


# lm-eval lists every punctuation character of Unicode anew for each call, so many documents go into one call.
CHOICES = [
    ["red", "blue", "green"],
    ["Guilty", "Guilty of Romance"],
    ["4", "42", "4.2", "(A)"],
    ["Yes.", "No."],
    [" é ", "ß"],
    ["a"],
]


@BOTH
@pytest.mark.parametrize("seed", range(6))
def test_multi_choice_regex(tables: Tables, seed: int) -> None:
    rng = random.Random(seed)
    docs = [{"choices": rng.choice(CHOICES)} for _ in range(200)]
    resps = [[_reply(rng, doc["choices"]) for _ in range(rng.randint(1, 3))] for doc in docs]
    chosen: dict[str, object] = {
        "regex_pattern": rng.choice([r"(\([A-Z]\))", r"answer is ([A-D])", *PATTERNS]),
        "ignore_case": rng.random() < 0.5,
        "ignore_punctuation": rng.random() < 0.5,
        "regexes_to_ignore": rng.choice([None, [r"\s+"], ["[0-9]", "the "]]),
        "group_select": rng.choice([0, -1]),
        "fallback": rng.choice(["[invalid]", "?"]),
    }
    assert ours(tables, "multi_choice_regex", resps, docs, **chosen) == theirs(
        "multi_choice_regex", resps, docs, **chosen
    )


def _reply(rng: random.Random, choices: list[str]) -> str:
    parts = [
        rng.choice(PIECES),
        rng.choice(["", ": ", ":", "the "]),
        rng.choice([*choices, "A", "B", "(B)", "z"]),
        rng.choice(PIECES),
    ]
    return "".join(part.upper() if rng.random() < 0.2 else part for part in parts)


@pytest.mark.parametrize("seed", range(20))
def test_chains(seed: int) -> None:
    """Chains of filters, as in gsm8k's self-consistency pipeline, under lm-eval's tables."""
    rng = random.Random(seed)
    resps: list[list[object]] = [["".join(rng.choices(PIECES, k=6)) for _ in range(5)] for _ in range(40)]
    steps: list[tuple[str, dict[str, object]]] = rng.sample(
        [
            ("lowercase", {}),
            ("uppercase", {}),
            ("remove_whitespace", {}),
            ("regex", {"regex_pattern": rng.choice(PATTERNS)}),
            ("take_first_k", {"k": rng.randint(2, 5)}),
        ],
        k=rng.randint(1, 5),
    )
    steps += [("majority_vote", {}), ("take_first", {})]
    expected = resps
    for name, chosen in steps:
        expected = theirs(name, expected, **chosen)
    pipeline = Pipeline("p", tuple(Step.of(name, **chosen) for name, chosen in steps))
    assert nested(chain(pipeline, LM_EVAL_0_4_13.filters)(replies(resps), [Sample(i) for i in range(40)])) == expected
