"""Where output goes, and how a record is printed there: forms are entries of a table."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from shlex import join
from typing import ClassVar, Generic, TextIO, TypeVar

from msgspec import Struct

from evalcore.core.records.errors import require_known
from evalcore.shell.safety.credentials import hide_credentials
from evalcore.shell.safety.safe_text import shorten, visible

T = TypeVar("T")


class Screen(Struct, frozen=True):
    """How wide lines may be (None: a file or a pipe), and whether they may have colours."""

    width: int | None = None
    colour: bool = False


PIPE = Screen()


class Renderer(Struct, Generic[T], frozen=True):
    """A form of output: the text of a record, and what the form has no place for, which goes to stderr.

    ``quiet`` is the form that is printed instead where little is to be said. ``read``: people read it, who may want to
    know what to do next.
    """

    text: Callable[[T, Screen], str]
    aside: Callable[[T], Iterable[str]] | None = None
    quiet: str | None = None
    read: bool = False


def plain_form(write: Callable[[T], str], aside: Callable[[T], Iterable[str]] | None = None) -> Renderer[T]:
    """A form that is the same on every screen."""
    return Renderer(lambda record, screen: write(record), aside)


def render_form(renderers: Mapping[str, Renderer[T]], form: str, record: T, screen: Screen = PIPE) -> str:
    """The text of a record in a form.

    >>> render_form({"plain": plain_form(str)}, "plain", "abc")
    'abc'
    """
    require_known("form of output", [form], renderers)
    return renderers[form].text(record, screen)


def print_form(
    renderers: Mapping[str, Renderer[T]],
    form: str,
    record: T,
    *,
    to: TextIO | None = None,
    aside: TextIO | None = None,
) -> None:
    """Print a record in a form, and beside it what the form has no place for."""
    stream = to or sys.stdout
    write_text(stream, render_form(renderers, form, record, _screen_of(stream)))
    tell = renderers[form].aside
    lines = () if tell is None else tell(record)
    write_text(aside or sys.stderr, "".join(f"{shorten(visible(line))}\n" for line in lines))


def _screen_of(stream: TextIO) -> Screen:
    """Colours are left out as no-color.org asks."""
    if not stream.isatty():
        return PIPE
    from shutil import get_terminal_size

    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return Screen(max(get_terminal_size().columns, 40), not plain)


def write_text(stream: TextIO, text: str) -> None:
    """Write what the stream's encoding can hold, the rest as escapes, and no credential in use."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(hide_credentials(text).encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def suggest_command(what: str, *words: str) -> None:
    """Say on stderr which command comes next; a shell takes it as it is."""
    write_text(sys.stderr, f"\n{what}: {visible(join(words))}\n")


class DisplayedResult:
    """What a command found: HTML in a notebook, and how many it holds of what where only a line is asked for.

    >>> class Found(DisplayedResult, Struct, frozen=True):
    ...     lines: tuple[str, ...] = ("a", "b")
    ...     warnings: tuple[str, ...] = ()
    >>> Found()
    Found(2 lines)
    """

    __slots__ = ()
    __struct_fields__: ClassVar[tuple[str, ...]]

    def __repr__(self) -> str:
        held = {name: getattr(self, name) for name in self.__struct_fields__}
        counts = (f"{len(value)} {name}" for name, value in held.items() if value and isinstance(value, tuple))
        return f"{type(self).__name__}({', '.join(counts)})"

    def _repr_html_(self) -> str:
        from evalcore.shell.output.notebook.result_forms import write_html  # made of what all commands found

        return write_html(self)
