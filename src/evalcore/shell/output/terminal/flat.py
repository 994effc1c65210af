"""The table for programs: CSV, Markdown and JSON."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence

from evalcore.shell.output.terminal.number_rows import Row, once
from evalcore.shell.output.terminal.safe_text import visible

__all__ = [
    "ARROWS",
    "csv_cell",
    "escape_markdown",
    "pad_cell",
    "render_csv",
    "render_markdown",
    "shown_interval",
    "shown_number",
    "shown_percent",
]

ARROWS = {True: "↑", False: "↓", None: ""}

CSV: tuple[tuple[str, Callable[[Row], object]], ...] = (
    ("task", lambda row: row.name),
    ("alias", lambda row: row.alias),
    ("kind", lambda row: "group" if row.group else "task"),
    ("depth", lambda row: row.depth),
    ("version", lambda row: row.version),
    ("num_fewshot", lambda row: row.shots),
    ("filter", lambda row: row.filter),
    ("metric", lambda row: row.metric),
    ("higher_is_better", lambda row: {True: "true", False: "false", None: ""}[row.higher]),
    ("value", lambda row: row.value),
    ("stderr", lambda row: row.stderr),
    ("ci_low", lambda row: row.low),
    ("ci_high", lambda row: row.high),
    ("n", lambda row: row.n),
    ("n_failed", lambda row: row.failed if row.metric else None),
    ("n_unscorable", lambda row: row.unscorable if row.metric else None),
    ("reason", lambda row: row.reason),
)


def render_csv(rows: Iterable[Row]) -> str:
    """One line per number, each once. Numbers are whole; text that a spreadsheet would run begins with an apostrophe.

    >>> print(render_csv([Row(name="=1+1", alias="a", metric="acc", value=0.5)]).splitlines()[1])
    '=1+1,a,task,0,,,,acc,,0.5,,,,,0,0,
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([name for name, _ in CSV])
    writer.writerows([csv_cell(cell(row)) for _, cell in CSV] for row in once(rows))
    return out.getvalue()


DANGEROUS = re.compile(r"\s*[=+\-@\t\r＝＋－＠|%]")


def csv_cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    return "'" + visible(value) if DANGEROUS.match(value) and not _is_number(value) else visible(value)


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", text))


# --- Markdown -------------------------------------------------------------------------------------------------------


def render_markdown(rows: Sequence[Row], *, confidence: float = 0.95) -> str:
    """lm-eval's table with the interval and n beside it.

    >>> print(render_markdown([Row(name="t", alias="a|b", metric="acc", filter="none", value=0.5, n=4)]))
    |Tasks|Version|Filter|n-shot|Metric|   |Value |   |Stderr|95 % interval| n |
    |-----|-------|------|-----:|------|---|-----:|---|-----:|-------------|--:|
    |a\\|b |       |none  |      |acc   |   |0.5000|   |      |             |  4|
    """
    heads = ("Tasks", "Version", "Filter", "n-shot", "Metric", "", "Value", "", "Stderr", _interval(confidence), "n")
    lines = [heads, *_markdown_cells(rows)]
    widths = [max(3, *(len(line[at]) for line in lines)) for at in range(len(heads))]
    right = [head in ("n-shot", "Value", "Stderr", "n") for head in heads]
    rule = ["-" * (width - r) + ":" * r for width, r in zip(widths, right, strict=True)]
    padded = [[pad_cell(*cell) for cell in zip(line, widths, right, strict=True)] for line in lines[1:]]
    head = [
        f"{name:^{width}}" if name == "n" else f"{name:<{width}}" for name, width in zip(heads, widths, strict=True)
    ]
    return "\n".join(f"|{'|'.join(line)}|" for line in (head, rule, *padded)) + "\n"


def _interval(confidence: float) -> str:
    return f"{shown_percent(confidence)} interval"


def _markdown_cells(rows: Sequence[Row]) -> Iterable[tuple[str, ...]]:
    before: tuple[str, int] | None = None
    for row in rows:
        again, before = (row.name, row.depth) == before, (row.name, row.depth)
        error = "" if row.stderr is None else shown_number(row.stderr)
        yield (
            "" if again else " " * row.depth + "- " * bool(row.depth) + escape_markdown(row.alias),
            "" if again else escape_markdown(row.version),
            escape_markdown(row.filter),
            "" if row.shots is None else str(row.shots),
            escape_markdown(row.metric),
            ARROWS[row.higher],
            ("N/A" if row.metric else "") if row.value is None else shown_number(row.value),
            "±" if error else "",
            error,
            shown_interval(row),
            "" if row.n is None else str(row.n),
        )


MARKS = re.compile(r"[\\`*|\[\]~]|(?<!\w)_|_(?!\w)")
ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def escape_markdown(text: str) -> str:
    """Text that means itself in a cell."""
    return MARKS.sub(lambda mark: "\\" + mark[0], "".join(ENTITIES.get(char, char) for char in visible(text)))


def pad_cell(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)


# --- numbers for people -----------------------------------------------------------------------------------------------


def shown_number(value: float, decimals: int = 4) -> str:
    """Four decimals, as lm-eval shows them; very large and very small ones by their magnitude.

    With fewer decimals, so many digits after the first: of a large number's, some stand before the point.

    >>> shown_number(0.25), shown_number(123456.789), shown_number(1e-7), shown_number(0.0)
    ('0.2500', '1.235e+05', '1.000e-07', '0.0000')
    >>> shown_number(236.4486), shown_number(236.4486, 3), shown_number(0.7286, 3)
    ('236.4486', '236.4', '0.729')
    """
    plain = value == 0 or 0.5 * 10.0**-decimals <= abs(value) < 1e5
    before = len(str(int(abs(value)))) if plain and decimals < 4 else 1
    return f"{value:.{max(decimals + 1 - before, 0)}f}" if plain else f"{value:.3e}"


def shown_interval(row: Row, decimals: int = 4, between: str = " to ") -> str:
    """The interval of a row, if it has one; an end that is not known is infinite.

    >>> shown_interval(Row(name="t", alias="t", low=0.1, high=0.25))
    '0.1000 to 0.2500'
    """
    if row.low is None and row.high is None:
        return ""
    low = "-∞" if row.low is None else shown_number(row.low, decimals)
    return low + between + ("∞" if row.high is None else shown_number(row.high, decimals))


def shown_percent(share: float) -> str:
    """A share as people write it.

    >>> shown_percent(0.95), shown_percent(0.999)
    ('95 %', '99.9 %')
    """
    return f"{round(share * 100, 6):g} %"
