"""Bounds on the size of a template's values, computed before they are made."""

from __future__ import annotations

import re
from collections.abc import Callable, ItemsView, Iterable, KeysView, Mapping, Sequence, ValuesView

from jinja2.utils import Namespace

from evalcore.core.records.errors import EvalError

LONGEST = 1_000_000
"""The most characters or items that a template may make from nothing: a repetition, a width, a count."""
LARGEST = 16_000_000
"""The most characters of a text made from a document's own."""

BITS = 100_000
SIZED = (str, bytes, list, tuple, dict)
GROWING = frozenset({"batch", "center", "indent", "round", "slice", "tojson", "truncate", "wordwrap"})
"""Filters whose numbers are widths and counts; numbers of other filters are values of any size."""
PERCENT = re.compile(r"%(?:\(([^)]*)\))?[#0 +-]*([0-9]{1,40}|\*)?(?:\.([0-9]{1,40}|\*))?")


# --- what a value would be as text ---------------------------------------------------------------------------


def weigh_value(value: object) -> int:
    """Estimate how many characters a value takes when written out.

    A list that contains another twice counts it twice but visits it once: a list that doubles itself is weighed as fast
    as it is made.

    >>> x = ["ab"]
    >>> weigh_value("ab"), weigh_value([x, x])
    (2, 18)
    """
    return len(value) if isinstance(value, str) else _weigh_part(value, {})


def _weigh_part(value: object, known: dict[int, int]) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    parts = _list_parts(value)
    if parts is None:
        return 1
    if id(value) not in known:
        total = 2
        for part in parts:
            total += 2 + _weigh_part(part, known)
        known[id(value)] = total
    return known[id(value)]


def _list_parts(value: object) -> Iterable[object] | None:
    """List what is written out within a value; only what the value itself holds, so that ids stay unique."""
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if isinstance(value, KeysView | ValuesView | ItemsView):
        value = getattr(value, "mapping", {})
    if isinstance(value, Namespace):
        value = getattr(value, "_Namespace__attrs", {})
    return [*value.keys(), *value.values()] if isinstance(value, Mapping) else None


def refuse_weight(value: object, doing: str = "a text") -> None:
    """Refuse a value that is too large to be written out.

    >>> refuse_weight(["a"] * 10)
    """
    weight = weigh_value(value)
    if weight > LARGEST:
        raise _refuse_amount(LARGEST, f"{doing} of {weight if weight < 10**12 else 'very many'}")


def refuse_size(size: int) -> None:
    """Refuse what has already grown too large.

    >>> refuse_size(10)
    """
    if size > LARGEST:
        raise _refuse_amount(LARGEST, str(size))


def join_bounded(parts: Iterable[str], doc: Mapping[str, object] | None = None) -> str:
    """Join parts, unless they are too many or a million characters longer than the document they are made from.

    >>> join_bounded(iter(["a", "b"]))
    'ab'
    """
    kept: list[str] = []
    size, most = 0, LONGEST
    for part in parts:
        size += len(part)
        if size > most and most == LONGEST:
            most += weigh_value(doc or {})
        if size > most or len(kept) >= LONGEST:
            raise EvalError(f"expected a text of at most {most} characters in {LONGEST} parts, got more")
        kept.append(part)
    return "".join(kept)


# --- what an operation would make ----------------------------------------------------------------------------


def refuse_growth(operator: str, left: object, right: object) -> None:
    """Refuse an operation whose result would be huge.

    >>> refuse_growth("*", "ab", 10)
    >>> refuse_growth("**", 9, 10**7)
    Traceback (most recent call last):
    evalcore.EvalError: expected at most 1000000 characters or items, got 9 ** 10000000
    """
    if type(left) is int and type(right) is int:
        power = operator == "**" and left.bit_length() * max(right, 0) > BITS
        big = power or (operator == "*" and left.bit_length() + right.bit_length() > BITS)
    elif operator == "*":
        sequence, times = (left, right) if isinstance(left, SIZED) else (right, left)
        big = isinstance(sequence, SIZED) and isinstance(times, int) and len(sequence) * times > LONGEST
    elif operator == "+":
        big = isinstance(left, SIZED) and isinstance(right, SIZED) and len(left) + len(right) > LARGEST
    else:
        big = operator == "%" and isinstance(left, str | bytes) and estimate_format(left, right) > LARGEST
    if big:
        raise _refuse_amount(LARGEST if operator in "+%" else LONGEST, f"{_shorten(left)} {operator} {_shorten(right)}")


def estimate_format(pattern: str | bytes, given: object) -> int:
    """Bound the characters of ``pattern % given``: its own, its widths, what it is given.

    >>> estimate_format("%09d", 1), estimate_format("%(a)s%(a)s", {"a": "x" * 10})
    (14, 30)
    """
    fields = PERCENT.findall(pattern if isinstance(pattern, str) else pattern.decode("latin-1"))
    wide = sum(int(size) for _, *sizes in fields for size in sizes if size.isdigit())
    if isinstance(given, Mapping):
        return len(pattern) + wide + sum(weigh_value(given.get(name, given)) for name, *_ in fields)
    values = given if isinstance(given, tuple) else (given,)
    starred = sum(abs(one) for one in values if isinstance(one, int)) if "*" in str(pattern) else 0
    return len(pattern) + wide + starred + weigh_value(given)


def refuse_counts(name: str, values: Sequence[object]) -> None:
    """Refuse a huge width or count as an argument of a function.

    >>> refuse_counts("ljust", [10**8])
    Traceback (most recent call last):
    evalcore.EvalError: expected at most 1000000 characters or items, got ljust(100000000)
    """
    if any(type(one) is int and abs(one) > LONGEST for one in values):
        raise _refuse_amount(LONGEST, f"{name}({', '.join(map(_shorten, values))})")


def refuse_call(name: str, subject: object, values: Sequence[object]) -> None:
    """Refuse a function or filter that would make something huge of a subject and these values.

    >>> refuse_call("expandtabs", "a\\tb", [8])
    """
    for one in (subject, *values):
        refuse_weight(one, name)
    reckon = PRODUCTS.get(name)
    if reckon is not None and isinstance(subject, SIZED) and reckon(subject, values) > LARGEST:
        raise _refuse_amount(LARGEST, f"{name} of {_shorten(subject)} with {', '.join(map(_shorten, values))}")


Sized = str | bytes | list[object] | tuple[object, ...] | dict[object, object]


def _bound_replace(subject: Sized, values: Sequence[object]) -> int:
    texts = [one for one in values if isinstance(one, str | bytes)]
    if not isinstance(subject, str | bytes) or len(texts) < 2 or type(texts[0]) is not type(subject):
        return 0
    times = subject.count(texts[0])  # type: ignore[arg-type]  # both are texts or both are bytes
    return len(subject) + times * len(texts[1])


def _bound_join(subject: Sized, values: Sequence[object]) -> int:
    """Bound the join of a separator and a list, in either order: ``", ".join(c)`` and ``c|join(", ")``."""
    both = [one for one in (subject, *values) if isinstance(one, SIZED)]
    lists = [one for one in both if not isinstance(one, str | bytes)] or both[:1]
    between = max((len(one) for one in both if isinstance(one, str | bytes)), default=0)
    return sum(weigh_value(one) + len(one) * between for one in lists[:1])


def _bound_lines(subject: Sized, values: Sequence[object]) -> int:
    return (len(str(subject).splitlines()) + 1) * _find_longest(values)


def _bound_tabs(subject: Sized, values: Sequence[object]) -> int:
    tab = subject.count("\t") if isinstance(subject, str) else len(subject)
    return tab * _find_longest(values)


def _bound_each(subject: Sized, values: Sequence[object]) -> int:
    """Bound a function that gives a value for every character or item."""
    return weigh_value(subject) * _find_longest(values)


def _bound_percent(subject: Sized, values: Sequence[object]) -> int:
    return estimate_format(subject, tuple(values)) if isinstance(subject, str | bytes) else 0


def _find_longest(values: Sequence[object]) -> int:
    sizes = [weigh_value(one) if isinstance(one, SIZED) else one for one in values if isinstance(one, (int, *SIZED))]
    return max((abs(one) for one in sizes), default=0)


def _bound_wrap(subject: Sized, values: Sequence[object]) -> int:
    return weigh_value(subject) * max((len(one) for one in values if isinstance(one, str)), default=0)


PRODUCTS: Mapping[str, Callable[[Sized, Sequence[object]], int]] = {
    "expandtabs": _bound_tabs,
    "format": _bound_percent,
    "indent": _bound_lines,
    "join": _bound_join,
    "replace": _bound_replace,
    "tojson": _bound_each,
    "translate": _bound_each,
    "urlize": _bound_wrap,
    "wordwrap": _bound_wrap,
}


def _refuse_amount(most: int, shown: str) -> EvalError:
    return EvalError(f"expected at most {most} characters or items, got {shown}")


def _shorten(value: object) -> str:
    """Show the beginning of a value, without writing all of it."""
    if isinstance(value, list | tuple | dict | set):
        return f"{type(value).__name__} of {len(value)}"
    text = repr(value[:40]) if isinstance(value, str | bytes) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
