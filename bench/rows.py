"""What a bench yields: a figure of ours beside a peer's, a floor and a target; or a section of another page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct


class Row(Struct, frozen=True, kw_only=True):
    """A figure, smaller is better; ``peer`` and ``floor`` are in its unit, ``memory`` is the peak in MB.

    ``of`` names the peer; ``exponent`` is the power of the size with which the cost grows.
    """

    what: str
    ours: float
    unit: str
    peer: float | None = None
    of: str = "lm-eval"
    floor: float | None = None
    memory: float | None = None
    exponent: float | None = None
    targets: tuple[Target, ...] = ()
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.peer is None else self.peer / self.ours

    @property
    def floors(self) -> float | None:
        return None if self.floor is None else self.ours / self.floor


class Target(Struct, frozen=True):
    """A promise about a field of a row."""

    field: str
    limit: float
    least: bool = False

    def is_met(self, row: Row) -> bool:
        value = getattr(row, self.field)
        return value is not None and (value >= self.limit if self.least else value <= self.limit)


class Section(Struct, frozen=True):
    """A text for a file of docs/: between the markers of a name, or the whole file if there is no name.

    Without a file it belongs to the bench's own section.
    """

    page: str
    name: str
    text: str


def at_least(limit: float, field: str = "ratio") -> Target:
    return Target(field, limit, least=True)


def at_most(limit: float, field: str = "ours") -> Target:
    return Target(field, limit)


# --- as text ---

UNITS = {"ratio": "{}x", "floors": "{} floors", "memory": "{} MB", "exponent": "exponent {}"}
"""How a field of a target is written; others are written in the row's unit."""


def write_number(value: float) -> str:
    """Write a number with about three digits.

    >>> [write_number(one) for one in (14825.4, 17.83, 2.345, 0.01234)]
    ['14,825', '17.8', '2.35', '0.0123']
    """
    size = abs(value)
    return f"{value:.3g}" if size < 1 else f"{value:,.{2 if size < 10 else 1 if size < 100 else 0}f}"


def write_targets(row: Row) -> str:
    return ", ".join(_write_target(one, row) for one in row.targets)


def _write_target(target: Target, row: Row) -> str:
    limit = UNITS.get(target.field, f"{{}} {row.unit}").format(f"{target.limit:,g}")
    return f"{'≥' if target.least else '≤'} {limit}: {'met' if target.is_met(row) else 'MISSED'}"


def tell_row(row: Row) -> str:
    """A line for the terminal."""
    parts = [
        "" if row.peer is None else f"{row.of} {write_number(row.peer)}",
        f"evalcore {write_number(row.ours)} {row.unit}",
        "" if row.ratio is None else f"{write_number(row.ratio)}x",
        "" if row.floor is None else f"floor {write_number(row.floor)}, {write_number(row.floors or 0)} floors",
        "" if row.memory is None else f"{write_number(row.memory)} MB",
        "" if row.exponent is None else f"exponent {row.exponent:.2f}",
        write_targets(row),
        row.note,
    ]
    return f"  {row.what:46} " + " | ".join(filter(None, parts))


def tabulate_rows(rows: Sequence[Row]) -> str:
    """A Markdown table of the columns that any row fills."""
    one_unit, one_peer = {row.unit for row in rows}, {row.of for row in rows if row.peer is not None}
    unit, peer = (one_unit.pop() if len(one_unit) == 1 else ""), (one_peer.pop() if len(one_peer) == 1 else "")

    def figure(value: float | None, row: Row, name: str = "") -> str:
        said = "" if value is None else write_number(value) + ("" if unit else f" {row.unit}")
        return f"{name} {said}".strip() if said else ""

    columns: dict[str, Callable[[Row], str]] = {
        unit: lambda row: row.what,
        peer or "peer": lambda row: figure(row.peer, row, "" if peer else row.of),
        "evalcore": lambda row: figure(row.ours, row),
        "ratio": lambda row: "" if row.ratio is None else write_number(row.ratio),
        "floor": lambda row: figure(row.floor, row),
        "times the floor": lambda row: "" if row.floors is None else write_number(row.floors),
        "peak, MB": lambda row: "" if row.memory is None else write_number(row.memory),
        "cost exponent": lambda row: "" if row.exponent is None else f"{row.exponent:.2f}",
        "target": write_targets,
        "note": lambda row: row.note,
    }
    filled = {head: [write(row) for row in rows] for head, write in columns.items()}
    kept = {head: cells for head, cells in filled.items() if any(cells)}
    return write_table(list(kept), zip(*kept.values(), strict=True))


def write_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
