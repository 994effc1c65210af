"""HTML of a few elements: panels, tables and lists, in which every text is escaped and nothing runs or is fetched.

Colours are those of the page around it, so that light and dark notebooks and printed pages are alike readable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NewType

from msgspec import Struct

from evalcore.core.plain_text import shorten, visible

Html = NewType("Html", str)
"""Markup that is made here: text becomes it by ``escape_text`` only."""

MOST_LINES = 60
"""Of a table; what is left out is counted."""
MOST_ITEMS = 12
"""Of a list."""
LONGEST = 400
"""Characters of a text in a table or a list."""

EDGE = "border-bottom:1px solid rgba(128,128,128,.35)"
SMALL = "font-size:.9em;opacity:.85"
STRONG = ' style="font-weight:bold"'
NOTHING = Html("")


def escape_text(text: object, most: int | None = LONGEST) -> Html:
    r"""Text that means itself: markup, control, bidirectional and invisible characters are shown, never obeyed.

    >>> escape_text("<b>\u202e & 'x'")
    '&lt;b&gt;\\u202e &amp; &#x27;x&#x27;'
    """
    given = str(text)
    return Html(escape(visible(given if most is None else shorten(given, most))))


class HtmlTable(Struct, frozen=True, kw_only=True):
    """Heads and lines of cells that are markup already. ``numbers`` are the columns set to the right; ``bold`` and
    ``depths`` are those of lines. ``what`` names the lines, for the count of those that are left out.
    """

    heads: tuple[str, ...]
    numbers: tuple[bool, ...]
    lines: tuple[tuple[Html, ...], ...]
    bold: tuple[bool, ...] = ()
    depths: tuple[int, ...] = ()
    what: str = "lines"


def write_table(table: HtmlTable) -> Html:
    """A table, cut after so many lines with a count of the rest.

    >>> write_table(HtmlTable(heads=("n",), numbers=(True,), lines=((Html("1"),),)))[:38]
    '<table style="border-collapse:collapse'
    """
    kept = table.lines[:MOST_LINES]
    bold, depths = table.bold or (False,) * len(kept), table.depths or (0,) * len(kept)
    heads = "".join(_write_cell("th", escape_text(head), at, 0, table) for at, head in enumerate(table.heads))
    rows = "".join(
        f"<tr{STRONG * strong}>"
        + "".join(_write_cell("td", cell, at, depth if at == 0 else 0, table) for at, cell in enumerate(line))
        + "</tr>"
        for line, strong, depth in zip(kept, bold, depths, strict=False)
    )
    left = write_left_out(len(table.lines) - len(kept), table.what)
    body = f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>"
    return Html(f'<table style="border-collapse:collapse;margin:.4em 0">{body}</table>{left}')


def _write_cell(tag: str, cell: Html, at: int, depth: int, table: HtmlTable) -> str:
    side = "right" if table.numbers[at] else "left"
    inset = f"{0.6 + 1.2 * min(depth, 12):.1f}em" if depth else ".6em"
    scope = ' scope="col"' if tag == "th" else ""
    style = f"text-align:{side};padding:.2em .6em .2em {inset};white-space:pre-wrap;{EDGE}"
    return f'<{tag}{scope} style="{style}">{cell}</{tag}>'


def write_left_out(count: int, what: str) -> Html:
    """How many were left out, if any.

    >>> write_left_out(0, "lines"), write_left_out(1200, "lines")[-37:]
    ('', 'and 1,200 more lines, not shown</div>')
    """
    return Html(f'<div style="{SMALL}">and {count:,} more {what}, not shown</div>') if count > 0 else NOTHING


def write_list(lines: Iterable[object], head: str = "", *, most: int = MOST_ITEMS) -> Html:
    """A headed list, cut after so many lines with a count of the rest; nothing if there are none.

    >>> write_list([])
    ''
    """
    given = list(lines)
    if not given:
        return NOTHING
    items = "".join(f"<li>{escape_text(line)}</li>" for line in given[:most])
    left = len(given) - most
    more = f"<li>and {left:,} more</li>" if left > 0 else ""
    title = f"<div>{escape_text(head)}</div>" if head else ""
    return Html(f'{title}<ul style="margin:.2em 0;padding-left:1.4em">{items}{more}</ul>')


def write_facts(facts: Sequence[tuple[str, object]]) -> Html:
    """Names and what they are, a line each; those without a value are left out.

    >>> write_facts([("n", 4), ("reason", None)]).count("<tr>")
    1
    """
    rows = "".join(
        f'<tr><th scope="row" style="text-align:left;padding:.1em .6em;opacity:.85">{escape_text(name)}</th>'
        f'<td style="text-align:left;padding:.1em .6em;white-space:pre-wrap">{escape_text(value, None)}</td></tr>'
        for name, value in facts
        if value not in (None, "", ())
    )
    return Html(f'<table style="border-collapse:collapse;margin:.4em 0"><tbody>{rows}</tbody></table>')


def write_line(text: object, *, small: bool = False) -> Html:
    """A line of text; nothing if it is empty."""
    style = f' style="{SMALL}"' if small else ""
    return Html(f"<div{style}>{escape_text(text)}</div>") if text else NOTHING


def write_fold(summary: str, inside: Html) -> Html:
    """What is seen after a click on its summary; nothing if there is nothing inside."""
    return (
        Html(f'<details style="{SMALL}"><summary>{escape_text(summary)}</summary>{inside}</details>')
        if inside
        else NOTHING
    )


def write_text(lines: Sequence[str]) -> Html:
    """Lines of a text from outside, as they are."""
    body = "\n".join(escape_text(line, None) for line in lines)
    style = f"white-space:pre-wrap;margin:.2em 0;padding:.4em .6em;border-left:3px solid;{EDGE}"
    return Html(f'<pre style="{style}">{body}</pre>') if lines else NOTHING


def write_panel(title: object, *parts: Html, lead: Iterable[object] = ()) -> Html:
    """The whole of what a cell shows: what must be known first, a title, and the parts under it.

    >>> write_panel("a & b", write_line("c"))
    '<div style="overflow-x:auto;line-height:1.35"><div><strong>a &amp; b</strong></div><div>c</div></div>'
    """
    inside = "".join(parts)
    warned = "".join(f'<div role="note"><strong>Warning:</strong> {escape_text(one)}</div>' for one in lead)
    head = f"<div><strong>{escape_text(title)}</strong></div>" if title else ""
    return Html(f'<div style="overflow-x:auto;line-height:1.35">{warned}{head}{inside}</div>')
