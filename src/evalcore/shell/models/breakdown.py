"""What a library raises in the midst of a run, as a sentence: a model's code may raise anything, and memory may end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from evalcore.core.records.errors import EvalError
from evalcore.shell.models.model import Heard, Notice


def first_line(wrong: Exception) -> str:
    """The first line of what was raised, or its kind if it says nothing.

    >>> first_line(RuntimeError("out of memory\\nmore")), first_line(KeyError())
    ('out of memory', 'KeyError')
    """
    return (str(wrong).strip() or type(wrong).__name__).splitlines()[0]


def lacks_memory(wrong: Exception) -> bool:
    """Whether there was not enough memory.

    >>> lacks_memory(RuntimeError("CUDA out of memory. Tried ...")), lacks_memory(RuntimeError("no such token"))
    (True, False)
    """
    return isinstance(wrong, MemoryError) or "memory" in str(wrong)


def end_in_sentence(answers: Iterable[Heard | Notice], advise: Callable[[Exception], str]) -> Iterator[Heard | Notice]:
    """Yield answers; whatever is raised becomes a line, with advice."""
    try:
        yield from answers
    except EvalError:
        raise
    except Exception as wrong:
        raise EvalError(f"the model cannot go on: {first_line(wrong)}{advise(wrong)}") from wrong
