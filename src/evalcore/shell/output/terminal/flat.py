"""The table for programs and pages: CSV and Markdown."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from evalcore.shell.output.terminal.number_rows import NumberRow, drop_repeats
from evalcore.shell.output.terminal.number_text import (
    ARROWS,
    FILTER,
    METRIC,
    TASKS,
    VALUE,
    N,
    head_interval,
    indent_name,
    show_interval,
    show_number,
)
from evalcore.shell.safety.safe_text import visible

CSV: tuple[tuple[str, Callable[[NumberRow], object]], ...] = (
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


def render_csv(rows: Iterable[NumberRow]) -> str:
    """One line per number, each once. Numbers are whole.

    >>> print(render_csv([NumberRow(name="=1+1", alias="a", metric="acc", value=0.5)]).splitlines()[1])
    '=1+1,a,task,0,,,,acc,,0.5,,,,,0,0,
    """
    return write_csv_rows([name for name, _ in CSV], ([cell(row) for _, cell in CSV] for row in drop_repeats(rows)))


def render_runs_csv(runs: Mapping[str, Iterable[NumberRow]]) -> str:
    """The same of several runs, each line with its run."""
    lines = ([run, *(cell(row) for _, cell in CSV)] for run, rows in runs.items() for row in drop_repeats(rows))
    return write_csv_rows(["run", *(name for name, _ in CSV)], lines)


def write_csv_rows(heads: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """CSV; text that a spreadsheet would run begins with an apostrophe.

    >>> write_csv_rows(["a", "b"], [["@x", 0.5]])
    "a,b\\n'@x,0.5\\n"
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(map(_write_cell, row) for row in rows)
    return out.getvalue()


DANGEROUS = re.compile(r"\s*[=+\-@\t\r＝＋－＠|%]")
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")


def _write_cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    return "'" * bool(DANGEROUS.match(value) and not NUMBER.fullmatch(value)) + visible(value)


# --- Markdown -------------------------------------------------------------------------------------------------------


def render_markdown(rows: Sequence[NumberRow], *, confidence: float = 0.95) -> str:
    """lm-eval's table with the interval and n beside it.

    >>> print(render_markdown([NumberRow(name="t", alias="a|b", metric="acc", filter="none", value=0.5, n=4)]))
    |Tasks|Version|Filter|n-shot|Metric|   |Value |   |Stderr|95 % interval| n |
    |-----|-------|------|-----:|------|---|-----:|---|-----:|-------------|--:|
    |a\\|b |       |none  |      |acc   |   |0.5000|   |      |             |  4|
    """
    heads = (TASKS, "Version", FILTER, "n-shot", METRIC, "", VALUE, "", "Stderr", head_interval(confidence), N)
    right = [head in ("n-shot", VALUE, "Stderr", N) for head in heads]
    return write_markdown_table(heads, list(_list_cells(rows)), right, _pad_head) + "\n"


def _pad_head(head: str, width: int, right: bool) -> str:
    return f"{head:^{width}}" if head == N else f"{head:<{width}}"


def _list_cells(rows: Sequence[NumberRow]) -> Iterable[tuple[str, ...]]:
    before: tuple[str, int] | None = None
    for row in rows:
        again, before = (row.name, row.depth) == before, (row.name, row.depth)
        error = show_number(row.stderr)
        yield (
            "" if again else indent_name(row.depth, escape_markdown(row.alias)),
            "" if again else escape_markdown(row.version),
            escape_markdown(row.filter),
            "" if row.shots is None else str(row.shots),
            escape_markdown(row.metric),
            ARROWS[row.higher],
            show_number(row.value, none="N/A" if row.metric else ""),
            "±" if error else "",
            error,
            show_interval(row.low, row.high),
            "" if row.n is None else str(row.n),
        )


def _pad_cell(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)


def write_markdown_table(
    heads: Sequence[str],
    lines: Sequence[Sequence[str]],
    right: Sequence[bool],
    pad_head: Callable[[str, int, bool], str] = _pad_cell,
) -> str:
    """Cells that are escaped already, as a table in columns of equal width.

    >>> print(write_markdown_table(["task", "n"], [["a", "12"]], [False, True]))
    |task|  n|
    |----|--:|
    |a   | 12|
    """
    widths = [max(3, *(len(line[at]) for line in (heads, *lines))) for at in range(len(heads))]
    shape = list(zip(widths, right, strict=True))
    rule = ["-" * (width - to_right) + ":" * to_right for width, to_right in shape]
    head = [pad_head(cell, *place) for cell, place in zip(heads, shape, strict=True)]
    body = [[_pad_cell(cell, *place) for cell, place in zip(line, shape, strict=True)] for line in lines]
    return "\n".join(f"|{'|'.join(line)}|" for line in (head, rule, *body))


MARKS = re.compile(r"[\\`*|\[\]~]|(?<!\w)_|_(?!\w)")
ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def escape_markdown(text: str) -> str:
    """Text that means itself in a cell."""
    return MARKS.sub(lambda mark: "\\" + mark[0], "".join(ENTITIES.get(char, char) for char in visible(text)))
