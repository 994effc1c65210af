"""The cells of a plain table, read as what their columns are declared to hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, isnan

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure, Gold, Likelihood, Reply
from evalcore.shell.data.wire import decode_line
from evalcore.shell.logs.inspect.samples import LETTERS

Row = Mapping[str, object]
TRUTHS = {"true": 1.0, "false": 0.0, "": None, "nan": None, "none": None, "null": None}


def read_answers(value: object) -> tuple[Reply, ...]:
    """Read the answers of a cell: a text or a list of texts; an empty cell is a failure.

    >>> read_answers("4"), read_answers(["4", "5"]), read_answers(4.0), read_answers(float("nan"))
    (('4',), ('4', '5'), ('4',), (Failure(reason='the table has no answer'),))
    """
    if isinstance(value, list | tuple):
        if not value:
            raise EvalError("expected at least one answer, got an empty list")
        return tuple(reply for one in value for reply in read_answers(one))
    found = _plain(value)
    return (Failure("the table has no answer"),) if found is None else (_text(found),)


def read_failure(value: object) -> Failure | None:
    """Read why there is no answer: a text; an empty cell says that there is one.

    >>> read_failure("out of memory"), read_failure(""), read_failure(None)
    (Failure(reason='out of memory'), None, None)
    """
    found = _plain(value)
    return None if found is None or found == "" else Failure(_text(found))


def read_gold(value: object) -> Gold:
    """Read a gold: a text, a number, or several; None if there is none.

    >>> read_gold("a"), read_gold(["a", "b"]), read_gold(2.0), read_gold(True), read_gold(float("nan"))
    ('a', ('a', 'b'), 2, 'True', None)
    """
    if isinstance(value, list | tuple):
        golds = [one for one in map(read_gold, value) if one is not None]
        whole = [one for one in golds if type(one) is int]
        return (tuple(whole) if len(whole) == len(golds) else tuple(map(str, golds))) if golds else None
    found = _plain(value)
    return found if found is None or type(found) is int else _text(found)


def read_choices(value: object) -> tuple[str, ...]:
    """Read the choices of a cell: a list of texts, in CSV as JSON, where 1.0 stays as written.

    >>> read_choices(["a", 1.0]), read_choices('["a", 1.0]')
    (('a', '1'), ('a', '1.0'))
    """
    return tuple(_text(one if isinstance(value, str) else _plain(one)) for one in _list(value, "choices"))


def read_numbers(value: object, *, alone: bool = False) -> tuple[Likelihood, ...]:
    """Read the log-likelihoods of a cell, one for each choice; one that may stand ``alone`` needs no list.

    >>> read_numbers([-1, "-2.5"])
    (Likelihood(value=-1.0, greedy=False, tokens=0), Likelihood(value=-2.5, greedy=False, tokens=0))
    >>> read_numbers("-1.5", alone=True)
    (Likelihood(value=-1.5, greedy=False, tokens=0),)
    """
    decoded = _decode(value, "log-likelihoods")
    single = alone and (isinstance(decoded, float) or type(decoded) is int)
    found = [decoded] if single else _list(decoded, "log-likelihoods")
    if not found:
        raise EvalError("expected log-likelihoods, got an empty list")
    try:
        return tuple(Likelihood(float(one)) for one in found)  # type: ignore[arg-type]  # if not, it shows
    except (TypeError, ValueError, OverflowError) as wrong:
        raise EvalError(f"expected log-likelihoods as numbers, got {str(value)[:60]!r}") from wrong


def read_score(value: object) -> float | list[float | None] | None:
    """Read a recorded score: a number, a boolean, a letter of Inspect, or a list; None if there is none.

    >>> read_score(0.5), read_score("false"), read_score([1, None]), read_score(float("inf")), read_score("C")
    (0.5, 0.0, [1.0, None], None, 1.0)
    """
    return [_score(one) for one in value] if isinstance(value, list | tuple) else _score(value)


def read_unit(value: object, what: str) -> int | str | None:
    """Read a cell that names something: an id, a cluster, a task.

    >>> read_unit(7, "id"), read_unit("a", "id"), read_unit(2.0, "id")
    (7, 'a', 2)
    """
    found = _plain(value)
    if found is None or (isinstance(found, int | str) and not isinstance(found, bool)):
        return found
    raise EvalError(f"expected a number or a text under {what}, got {str(value)[:60]!r}")


def _score(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, str) and value.strip().lower() in TRUTHS:
        return TRUTHS[value.strip().lower()]
    if isinstance(value, str) and value in LETTERS:
        return LETTERS[value]
    try:
        found = float(value) if isinstance(value, int | float | str) else None
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise EvalError(f"expected a score as a number, got {str(value)[:60]!r}")
    return found if isfinite(found) else None


def _list(value: object, what: str) -> Sequence[object]:
    found = _decode(value, what)
    if not isinstance(found, list | tuple):
        raise EvalError(f"expected a list of {what}, got {str(value)[:60]!r}")
    return found


def _decode(value: object, what: str) -> object:
    return decode_line(value.encode("utf-8", "surrogatepass"), what) if isinstance(value, str) else value


def _plain(value: object) -> object:
    """NaN as None, and 4.0 as the integer that it was before a column with gaps made it a float."""
    if not isinstance(value, float):
        return value
    return None if isnan(value) else int(value) if value.is_integer() else value


def _text(value: object) -> str:
    if isinstance(value, dict | list | tuple):
        raise EvalError(f"expected a text, got {str(value)[:60]!r}")
    return value if isinstance(value, str) else str(value)
