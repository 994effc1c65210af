"""Strategies for the records that enter the pipe: requests, instances, answers, samples, results."""

from __future__ import annotations

from math import inf
from typing import Any

from hypothesis import strategies as st

from evalcore.core.answers.result import GenResult, LLResult, MCResult, Result, RollingResult
from evalcore.core.records.request import (
    Answer,
    Failure,
    Generate,
    Instance,
    Likelihood,
    LogLikelihood,
    Request,
    Rolling,
    Sample,
    freeze_options,
)

EDGES = (
    "",
    " ",
    "a",
    "A",
    "4",
    "42",
    "The answer is 42.",
    "#### 4",
    "é",
    "ﬁ",
    "日本 語",
    "👩‍👩‍👧",
    "a\nb",
    "...",
    "the a",
)


def texts() -> st.SearchStrategy[str]:
    """Draw texts that break scorers: empty, blank, accented, composed, of other scripts, and any others.

    >>> from hypothesis import find
    >>> "é" in find(texts(), lambda text: "é" in text)
    True
    """
    return st.sampled_from(EDGES) | st.text(max_size=6)


def values(*, infinite: bool = True) -> st.SearchStrategy[float]:
    """Draw log-likelihoods: often tied, at times 0 or (``infinite``) minus infinity.

    >>> from hypothesis import find
    >>> find(values(), lambda value: value < -1e9)
    -inf
    """
    tied = st.sampled_from((-1.0, -2.0, -0.5, 0.0, -3.25))
    smooth = st.floats(-60.0, 0.0, allow_subnormal=False)
    return tied | smooth | (st.just(-inf) if infinite else st.nothing())


def likelihoods(*, infinite: bool = True) -> st.SearchStrategy[Likelihood]:
    """Draw a model's reply to a likelihood request.

    >>> from hypothesis import find
    >>> find(likelihoods(infinite=False), lambda reply: reply.greedy).value > -inf
    True
    """
    return st.builds(Likelihood, values(infinite=infinite), st.booleans(), st.integers(0, 9))


def requests() -> st.SearchStrategy[Request]:
    """Draw any of the three kinds of request.

    >>> from hypothesis import find
    >>> for kind in (Generate, LogLikelihood, Rolling):
    ...     assert find(requests(), lambda request: isinstance(request, kind))
    """
    generate = st.builds(
        Generate, texts(), st.sampled_from((freeze_options(), freeze_options(until=["\n"], temperature=0.0)))
    )
    return st.builds(LogLikelihood, texts(), texts()) | st.builds(Rolling, texts()) | generate


def instances() -> st.SearchStrategy[Instance]:
    """Draw one request for one document of one task.

    >>> from hypothesis import given, settings
    >>> @settings(max_examples=20, deadline=None)
    ... @given(instances())
    ... def check(one):
    ...     assert 1 <= one.repeats <= 4
    >>> check()
    """
    places = st.integers(0, 9)
    return st.builds(Instance, st.sampled_from(("t", "u")), places, st.integers(0, 3), requests(), st.integers(1, 4))


def replies(request: Request) -> st.SearchStrategy[Any]:
    """Draw what a model may reply to this request; now and then it fails.

    >>> from hypothesis import find
    >>> find(replies(Generate("?")), lambda reply: isinstance(reply, Failure))
    Failure(reason='timeout')
    """
    good: st.SearchStrategy[Any] = texts() if isinstance(request, Generate) else likelihoods()
    return st.one_of(good, good, good, st.just(Failure("timeout")))


def answers() -> st.SearchStrategy[Answer]:
    """Draw an instance with its replies, one per repeat.

    >>> from hypothesis import given, settings
    >>> @settings(max_examples=20, deadline=None)
    ... @given(answers())
    ... def check(one):
    ...     assert len(one.replies) == one.instance.repeats
    >>> check()
    """
    return instances().flatmap(
        lambda one: st.builds(
            Answer,
            st.just(one),
            st.lists(replies(one.request), min_size=one.repeats, max_size=one.repeats).map(tuple),
        )
    )


def samples() -> st.SearchStrategy[Sample]:
    """Draw a document with no, one or several golds, with and without choices, id and cluster.

    >>> from hypothesis import given, settings
    >>> @settings(max_examples=20, deadline=None)
    ... @given(samples())
    ... def check(one):
    ...     assert one.gold is None or isinstance(one.gold, int | str | tuple)
    >>> check()
    """
    several = st.lists(st.integers(0, 3), max_size=3).map(tuple) | st.lists(texts(), max_size=3).map(tuple)
    gold = st.none() | st.integers(0, 3) | texts() | several
    choices = st.lists(texts(), max_size=4).map(tuple)
    docs = st.sampled_from((b"{}", b'{"idx": {"paragraph": 1, "question": 2}}', '{"q": "é"}'.encode()))
    name = st.none() | st.integers(0, 5) | texts()
    return st.builds(Sample, st.integers(0, 99), gold, choices, docs, name, name)


def results() -> st.SearchStrategy[Result]:
    """Draw any of the four result records.

    >>> from hypothesis import given, settings
    >>> @settings(max_examples=20, deadline=None)
    ... @given(results())
    ... def check(result):
    ...     assert isinstance(result, LLResult | RollingResult | GenResult | MCResult)
    >>> check()
    """
    plain = st.builds(LLResult, values(), st.booleans(), st.integers(0, 9), texts())
    rolling = st.builds(RollingResult, values(), texts())
    generated = st.builds(GenResult, st.lists(texts(), max_size=3).map(tuple), st.lists(texts(), max_size=3).map(tuple))
    return plain | rolling | generated | st.integers(1, 5).flatmap(_draw_choices)


def _draw_choices(count: int) -> st.SearchStrategy[MCResult]:
    def each(part: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
        return st.lists(part, min_size=count, max_size=count).map(tuple)

    gold = st.lists(st.integers(0, count - 1), min_size=1, max_size=2, unique=True).map(tuple)
    return st.builds(MCResult, each(values()), each(st.booleans()), gold, each(texts()), each(st.integers(0, 9)))
