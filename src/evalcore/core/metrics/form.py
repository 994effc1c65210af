"""What a user's own function of one document takes, as its signature says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature, isasyncgenfunction, iscoroutinefunction, isgeneratorfunction, signature

from evalcore.core.answers.result import GenResult, LLResult, MCResult, Result, RollingResult
from evalcore.core.records.errors import EvalError

Call = Callable[..., object]
Form = Callable[[Call, Result, Mapping[str, object]], Iterator[object]]
"""How a function is called with a result and its options: what it returned, once or for each gold."""


def by_result(function: Call, result: Result, options: Mapping[str, object]) -> Iterator[object]:
    yield function(result, **options)


def by_pair(function: Call, result: Result, options: Mapping[str, object]) -> Iterator[object]:
    prediction, golds = list_texts(result)
    yield from (function(prediction, gold, **options) for gold in golds)


def by_keyword(function: Call, result: Result, options: Mapping[str, object]) -> Iterator[object]:
    prediction, golds = list_texts(result)
    yield from (function(prediction=prediction, gold=gold, **options) for gold in golds)


def by_name(function: Call, result: Result, options: Mapping[str, object]) -> Iterator[object]:
    prediction, golds = list_texts(result)
    yield from (function(references=[gold], predictions=[prediction], **options) for gold in golds)


def by_list(function: Call, result: Result, options: Mapping[str, object]) -> Iterator[object]:
    """lm-eval's call of last resort, which knows no options."""
    prediction, golds = list_texts(result)
    yield from (function([gold, prediction]) for gold in golds)


def list_texts(result: Result) -> tuple[object, tuple[object, ...]]:
    """The prediction and the golds of a result; of choices, the likeliest and those that are right.

    >>> list_texts(MCResult((-1.0, -2.0), (True, False), (1,), ("yes", "no")))
    ('yes', ('no',))
    """
    match result:
        case GenResult():
            first = result.generations[0]
            # all replies at once are a list to lm-eval's functions
            return list(first) if isinstance(first, tuple) else first, result.golds
        case MCResult():
            names: Sequence[object] = result.choices or range(len(result.lls))
            return names[result.best], tuple(names[at] for at in result.gold)
    raise EvalError("a log-likelihood has no prediction; write the function as f(result)")


Records = tuple[type[Result], ...]
"""The kinds of result that a scorer makes."""

EVERY: Records = (MCResult, GenResult, LLResult, RollingResult)
WITH_TEXTS = (GenResult, MCResult)


def choose_form(function: Call, records: Records, options: Mapping[str, object], *, listed: bool = False) -> Form:
    """Choose how a function is called, by its signature: as f(result), f(prediction, gold) or by lm-eval's names.

    ``listed``: a function of a text's score that takes one argument and does not say which takes lm-eval's pair.

    >>> choose_form(lambda said, wanted: 1.0, (GenResult,), {}) is by_pair
    True
    >>> choose_form(max, (MCResult,), {})
    Traceback (most recent call last):
    evalcore.EvalError: expected a metric of one of the forms f(result: MCResult), f(prediction, gold) or ...
    """
    try:
        known = signature(function)
    except (TypeError, ValueError):
        raise _refuse("a function without a signature", records) from None
    if iscoroutinefunction(function) or isasyncgenfunction(function) or isgeneratorfunction(function):
        raise _refuse("a function that returns no score but something to wait for or to go through", records)
    form, wanted = read_form(known, options), _annotated(known)
    if form is by_result and listed and wanted is None and GenResult in records:
        return by_list
    try:
        if form not in (by_name, by_keyword):
            known.bind(*range(1 if form is by_result else 2), **options)
    except TypeError as wrong:
        raise _refuse(f"f{known} ({wrong})", records) from None
    misfit = wanted is not None and wanted not in records
    if misfit or (form is not by_result and not set(records) & set(WITH_TEXTS)):
        raise _refuse(f"f{known}", records)
    return form


def read_form(known: Signature, options: Mapping[str, object]) -> Form:
    """Read from a signature how a function is called."""
    try:
        known.bind(references=[], predictions=[], **options)
        return by_name
    except TypeError:
        pass
    try:
        known.bind(prediction="", gold="", **options)
        return by_keyword
    except TypeError:
        required = [p for p in known.parameters.values() if p.kind in POSITIONAL and p.default is Parameter.empty]
        return by_result if len(required) == 1 else by_pair


POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def _annotated(known: Signature) -> type[Result] | None:
    """The kind of result that the first parameter asks for."""
    first = next(iter(known.parameters.values()), None)
    given = None if first is None else first.annotation
    name = given if isinstance(given, str) else getattr(given, "__name__", "")
    return next((one for one in EVERY if one.__name__ == name.rpartition(".")[2]), None)


def takes_result(function: object) -> bool:
    """Whether a function says by its annotation that it takes a result.

    >>> def margin(result: MCResult) -> float: ...
    >>> takes_result(margin), takes_result(lambda pair: 1.0), takes_result(max)
    (True, False, False)
    """
    try:
        return callable(function) and _annotated(signature(function)) is not None
    except (TypeError, ValueError):
        return False


def _refuse(got: str, records: Sequence[type[Result]]) -> EvalError:
    kinds = " | ".join(one.__name__ for one in records)
    texts = ", f(prediction, gold) or f(references=, predictions=)" if set(records) & set(WITH_TEXTS) else ""
    what = "one of the forms" if texts else "the form"
    return EvalError(f"expected a metric of {what} f(result: {kinds}){texts}, its options by name, got {got}")
