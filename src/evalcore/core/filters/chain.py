"""Chains of filters, by name: from raw replies to answers."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature

from pyrsistent import PMap, pmap

from evalcore.core.filters.extract import multi_choice_regex, regex, regex_pos, strip_thinking
from evalcore.core.filters.letter import letter
from evalcore.core.filters.reasons import (
    each_reply,
    tell_change,
    tell_choice,
    tell_letter,
    tell_lookup,
    tell_match,
    tell_own_code,
    tell_places,
    tell_tags,
    tell_thinking,
    tell_votes,
)
from evalcore.core.filters.reply import Filter, FilterFn, Leaves, Replies, Scope, replies
from evalcore.core.filters.rewrite import (
    custom,
    format_span,
    lowercase,
    map_values,
    remove_whitespace,
    strip_punctuation,
    uppercase,
)
from evalcore.core.filters.select import majority_vote, take_first, take_first_k
from evalcore.core.filters.spans import locate_end, locate_letter, locate_match, locate_text
from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.frozen_dict import FrozenRecord
from evalcore.core.records.request import Sample
from evalcore.core.records.task import Pipeline, Step

FILTERS: PMap[str, Filter] = pmap(
    {
        "take_first": Filter(take_first, leaves="first", texts=False, explain=tell_places, locate=locate_text),
        "take_first_k": Filter(take_first_k, texts=False, explain=tell_places, locate=locate_text),
        "majority_vote": Filter(majority_vote, leaves="one", texts=False, explain=tell_votes, locate=locate_text),
        "regex": Filter(regex, explain=each_reply(tell_match), locate=locate_match),
        "multi_choice_regex": Filter(multi_choice_regex, explain=each_reply(tell_choice), locate=locate_match),
        "letter": Filter(letter, explain=each_reply(tell_letter), locate=locate_letter),
        "regex_pos": Filter(regex_pos, explain=each_reply(tell_tags)),
        "strip_thinking": Filter(strip_thinking, explain=each_reply(tell_thinking), locate=locate_end),
        "remove_whitespace": Filter(remove_whitespace, explain=each_reply(tell_change), locate=locate_text),
        "lowercase": Filter(lowercase, explain=each_reply(tell_change), locate=locate_text),
        "uppercase": Filter(uppercase, explain=each_reply(tell_change), locate=locate_text),
        "strip_punctuation": Filter(strip_punctuation, explain=each_reply(tell_change), locate=locate_text),
        "map": Filter(map_values, texts=False, explain=each_reply(tell_lookup)),
        "format_span": Filter(format_span, explain=each_reply(tell_change)),
        "custom": Filter(custom, scope="task", texts=False, explain=tell_own_code),
    }
)


def chain(pipeline: Pipeline, filters: PMap[str, Filter] = FILTERS) -> FilterFn:
    """Compose a chain into one function; the empty chain is the identity.

    >>> steps = (Step.of("lowercase"), Step.of("strip_punctuation"))
    >>> list(chain(Pipeline("clean", steps))(replies([["Hello, World!"], ["Hi there!"]]), ()).values)
    ['hello world', 'hi there']
    """
    steps = [make_filter(step, filters) for step in pipeline.steps]

    def apply(given: Replies, docs: Sequence[Sample]) -> Replies:
        for step in steps:
            given = step(given, docs)
        return given

    return apply


def make_filter(step: Step, filters: PMap[str, Filter] = FILTERS) -> FilterFn:
    """Make the filter that a step names, with its options."""
    entry = filters.get(step.name)
    if entry is None:
        raise unknown("filter", step.name, filters)
    known = signature(entry.make).parameters
    for name in step.options:
        if name not in known and not any(one.kind is one.VAR_KEYWORD for one in known.values()):
            raise unknown(f"option of filter {step.name!r}", name, known)
    try:
        return entry.make(**dict(step.options))
    except TypeError as wrong:
        raise EvalError(f"filter {step.name!r}: {wrong}; got options {sorted(step.options)}") from wrong


def scope_of(pipeline: Pipeline, filters: PMap[str, Filter] = FILTERS) -> Scope:
    """``task`` if any filter of the chain looks beyond its document.

    >>> scope_of(Pipeline("none", (Step.of("take_first"),)))
    'document'
    """
    wide = (str(step.options.get("scope", filters[step.name].scope)) for step in pipeline.steps if step.name in filters)
    return "task" if "task" in wide else "document"


def leaves_of(pipeline: Pipeline, filters: PMap[str, Filter] = FILTERS) -> tuple[Leaves, ...]:
    """List which replies each filter of the chain leaves.

    >>> leaves_of(Pipeline("none", (Step.of("regex"), Step.of("take_first"))))
    ('all', 'first')
    """
    return tuple(filters[step.name].leaves for step in pipeline.steps if step.name in filters)


class Trace(FrozenRecord, frozen=True):
    """What one filter of a chain did to one document's replies."""

    filter: str
    replies: tuple[object, ...]
    rules: tuple[int, ...]


def trace_filters(
    pipeline: Pipeline, texts: Sequence[object], doc: Sample, filters: PMap[str, Filter] = FILTERS
) -> tuple[Trace, ...]:
    """Run the pure chain again on one document and show every step.

    >>> steps = (Step.of("regex", regex_pattern="([0-9]+)"), Step.of("take_first"))
    >>> [t.replies for t in trace_filters(Pipeline("p", steps), ["a 4", "b 5"], Sample(0))]
    [('a 4', 'b 5'), ('4', '5'), ('4',)]
    """
    given = replies([texts])
    traces = [Trace("", tuple(given.values), tuple(given.rules.tolist()))]
    for step in pipeline.steps:
        given = make_filter(step, filters)(given, [doc])
        traces.append(Trace(step.name, tuple(given.values), tuple(given.rules.tolist())))
    return tuple(traces)
