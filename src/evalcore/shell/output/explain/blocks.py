"""A page of headed blocks: texts from outside, made safe line by line, and grids."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.records.request import Failure, Reply
from evalcore.shell.output.terminal.flat import escape_markdown
from evalcore.shell.output.terminal.grid import Grid, Page, draw_page, write_markdown
from evalcore.shell.output.terminal.screen import PIPE, Screen
from evalcore.shell.safety.safe_text import visible

LONGEST = 1200
CELL = 160


class Block(Struct, frozen=True):
    """A head; under it sentences, lines of a text that is shown as it is, a grid, what its columns mean.

    The grid may have ``narrower`` forms, the narrowest last.
    """

    head: str
    notes: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    grid: Grid | None = None
    narrower: tuple[Grid, ...] = ()
    legend: tuple[str, ...] = ()


def draw_blocks(blocks: Iterable[Block], screen: Screen = PIPE) -> str:
    r"""The blocks as text; whatever a terminal would obey stands there as an escape.

    >>> print(draw_blocks([Block("Answer", text=("\x1b[31mred", "two"))]))
    Answer
      \x1b[31mred
      two
    <BLANKLINE>
    """
    bold, plain = ("\x1b[1m", "\x1b[0m") if screen.colour else ("", "")
    inner = replace(screen, width=None if screen.width is None else max(screen.width - 2, 40))
    out: list[str] = []
    for block in blocks:
        parts = [f"{bold}{visible(block.head)}{plain}", *(f"  {visible(note)}" for note in block.notes)]
        parts += [f"  {visible(line)}" for line in block.text]
        if block.grid is not None:
            page = Page(grids=(block.grid, *block.narrower), legend=block.legend)
            drawn = draw_page(page, inner)
            parts += ["  " + line if line else "" for line in drawn.rstrip("\n").split("\n")]
        out.append("\n".join(part.rstrip() for part in parts) + "\n")
    return "\n".join(out)


def write_blocks(blocks: Iterable[Block]) -> str:
    r"""The blocks as Markdown; texts from outside are indented, where nothing of them is markup.

    >>> print(write_blocks([Block("Answer", text=("# not a head",))]))
    ### Answer
    <BLANKLINE>
        # not a head
    <BLANKLINE>
    """
    out: list[str] = []
    for block in blocks:
        parts = [f"### {escape_markdown(visible(block.head))}", *(escape_markdown(visible(one)) for one in block.notes)]
        if block.text:
            parts.append("\n".join(f"    {visible(line)}" for line in block.text))
        if block.grid is not None:
            parts.append(write_markdown(Page(grids=(block.grid,), legend=block.legend)).rstrip("\n"))
        out.append("\n\n".join(parts) + "\n")
    return "\n".join(out)


def show_reply(reply: Reply | None) -> str:
    """A reply as text; one that never came, and why."""
    if isinstance(reply, Failure):
        return f"(no answer: {reply.reason})"
    return "(no answer)" if reply is None else str(reply)


def split_lines(text: str, *, full: bool = False) -> tuple[str, ...]:
    r"""A text in its lines, shortened in its middle unless all of it is asked for.

    >>> split_lines("a\nb")
    ('a', 'b')
    """
    return tuple((text if full else shorten_middle(text)).split("\n"))


def shorten_middle(text: str, most: int = LONGEST) -> str:
    """The beginning and the end of a text that is too long to read, and how much is left out.

    >>> shorten_middle("abcdefghij", 4), shorten_middle("abcd", 4)
    ('ab … 6 characters … ij', 'abcd')
    """
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} … {len(text) - 2 * half:,} characters … {text[-half:]}"


def show_cell(value: object, *, full: bool = False) -> str:
    """A value for a cell: a text in quotes, so that white space is seen, and short.

    >>> show_cell(" 4"), show_cell(0.5)
    ("' 4'", '0.5')
    """
    text = value if isinstance(value, str) else str(value)
    short = text if full else shorten_middle(text, CELL)
    return f"'{short}'" if isinstance(value, str) else short
