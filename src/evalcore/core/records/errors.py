"""Errors that say what was expected, what was found, where, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from types import ModuleType


class EvalError(ValueError):
    """Input that cannot be scored. The message says what is wrong, where, and what to do."""

    __module__ = "evalcore"  # tracebacks show the name that users import


class CannotWrite(EvalError):
    """What was computed cannot be put on the disk."""


class ServerGone(EvalError):
    """Nobody answers any more. What was answered is kept, and the same command goes on from there."""


class InternalError(EvalError):
    """evalcore contradicts itself: a mistake of its own, not of what it was given."""


class EntryError(EvalError):
    """An entry of the tables failed on some documents: it raised, or returned what it must not.

    ``told`` is the message without its place.
    """

    def __init__(self, told: str, where: str = "") -> None:
        super().__init__(told if " - at " in told else told + where)
        self.told = told.partition(" - at ")[0]


class MissingExtra(EvalError, ImportError):
    """An optional package is not installed."""


def place(task: str, doc_id: object = None, key: object = None) -> str:
    """Format the place at the end of a message.

    >>> place("arc_easy", 12)
    ' - at arc_easy doc 12'
    """
    return f" - at {task}" + (f" doc {doc_id}" if doc_id is not None else "") + (f" {key}" if key else "")


def locate(wrong: Exception, where: str) -> EvalError:
    """Add its place to an error that does not name one yet.

    >>> print(locate(EvalError("bad"), place("t")), "|", locate(EvalError("bad - at u"), place("t")))
    bad - at t | bad - at u
    """
    text = str(wrong) if isinstance(wrong, EvalError) else f"{type(wrong).__name__}: {wrong}"
    return EvalError(text if " - at " in text else text + where)


RAISED = (Exception, SystemExit)
"""What an entry may raise; Ctrl-C is the user's."""


def blame_entry(raised: BaseException, what: str, where: str, *, always: bool = False) -> BaseException:
    """Make an ``EntryError`` of what an entry raised; a package that is missing is no fault of it.

    An ``EvalError`` keeps its words; ``always``: it says of what entry it is, unless it has a place.

    >>> str(blame_entry(KeyError("a"), "metric 'm'", place("t")))
    "KeyError: 'a' (metric 'm') - at t"
    """
    if isinstance(raised, EntryError | MissingExtra):
        return raised
    told = describe(raised)
    plain = isinstance(raised, EvalError) and (not always or " - at " in told)
    return EntryError(told if plain else f"{told} ({what})", where)


def fails_alike(wrong: EntryError, try_nothing: Callable[[], object]) -> bool:
    """Whether an entry fails in the same way on no document at all: then it is wrong itself, as an option may be."""
    try:
        try_nothing()
    except EntryError as again:
        return again.told == wrong.told
    return False


def describe(raised: BaseException) -> str:
    """Describe what was raised, even if it cannot be shown; an ``EvalError`` speaks for itself.

    >>> describe(KeyError("a")), describe(SystemExit(2)), describe(EvalError("expected a text"))
    ("KeyError: 'a'", 'SystemExit: 2', 'expected a text')
    """
    try:
        text = str(raised)
    except Exception:
        return type(raised).__name__
    return text if isinstance(raised, EvalError) else f"{type(raised).__name__}: {text}"


@contextmanager
def located(where: str) -> Iterator[None]:
    """Add a place to every ``EvalError`` raised inside.

    >>> with located(place("t")):
    ...     raise EvalError("bad")
    Traceback (most recent call last):
    evalcore.EvalError: bad - at t
    """
    try:
        yield
    except EvalError as wrong:
        raise locate(wrong, where) from wrong


def unknown(kind: str, name: str, known: Iterable[str], where: str = "") -> EvalError:
    """Build an error that suggests the nearest known name.

    >>> print(unknown("filter", "regx", ["regex", "map"]))
    unknown filter 'regx'; did you mean 'regex'? Known: map, regex
    >>> print(unknown("metric", "f1_score", ["acc", "f1"]))
    unknown metric 'f1_score'; did you mean 'f1'? Known: acc, f1
    >>> print(unknown("task", "nature", ["my_quick_nature", "other"]))
    unknown task 'nature'; did you mean 'my_quick_nature'? Known: my_quick_nature, other
    """
    names = sorted(map(str, known))
    text = str(name)
    begun = sorted((one for one in names if one and text.startswith(f"{one}_")), key=len)[-1:]
    within = sorted((one for one in names if len(text) > 2 and text in one), key=len)[:1]
    near = get_close_matches(text, names, 1, 0.8) or begun or within or get_close_matches(text, names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return EvalError(f"unknown {kind} {name!r}{hint} Known: {', '.join(names)}{where}")


def require_known(kind: str, names: Iterable[str], known: Collection[str], where: str = "") -> None:
    """Refuse the first name that is not known.

    >>> require_known("filter", ["map", "regx"], ["regex", "map"])
    Traceback (most recent call last):
    evalcore.EvalError: unknown filter 'regx'; did you mean 'regex'? Known: map, regex
    """
    for name in names:
        if name not in known:
            raise unknown(kind, str(name), known, where)


def require(module: str, extra: str) -> ModuleType:
    """Import an optional package, or say how to install it.

    >>> require("no_such_module", "text")
    Traceback (most recent call last):
    evalcore.core.records.errors.MissingExtra: this needs 'no_such_module': pip install "evalcore[text]"
    """
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as missing:
        raise MissingExtra(f'this needs {module.split(".")[0]!r}: pip install "evalcore[{extra}]"') from missing
