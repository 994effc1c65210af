"""A document's scores for people, and its part in the numbers of its task and of every group above."""

from __future__ import annotations

from collections.abc import Iterable

from evalcore.core.explain.contribution import Contribution
from evalcore.core.explain.trace import Judged
from evalcore.core.records.outcome import Failed, Ok, Outcome, Unscorable
from evalcore.core.records.task import MetricKey
from evalcore.core.repeats.reducers import find_reducer
from evalcore.shell.explain.agreement import Traced
from evalcore.shell.explain.explain import Explained
from evalcore.shell.output.explain.blocks import Block, show_cell
from evalcore.shell.output.terminal.grid import Grid, GridColumn, lay_grid
from evalcore.shell.output.terminal.number_table import NumberName, build_name_columns
from evalcore.shell.output.terminal.number_text import FILTER, METRIC, VALUE, N, show_difference, show_number


def build_scores(explained: Explained) -> Iterable[Block]:
    """Every score with how it came about; what each reply got only where there are several."""
    lines = tuple(line for key in explained.keys for line in _list_scores(explained, key))
    heads, numbers = (FILTER, METRIC, "reply", "score", "how"), (False, False, True, True, False)
    if lines:
        several = any(line[2] for line in lines)
        kept = [at for at in range(len(heads)) if several or at != 2]
        yield Block(
            "Scores",
            grid=Grid(
                heads=tuple(heads[at] for at in kept),
                numbers=tuple(numbers[at] for at in kept),
                lines=tuple(tuple(line[at] for at in kept) for line in lines),
            ),
        )


def _list_scores(explained: Explained, key: MetricKey) -> Iterable[tuple[str, ...]]:
    """A metric's score, and under the first of its reducers how each reply was scored."""
    traced = next((one for one in explained.traces if one.filter == key.filter), None)
    trace = traced.trace if traced is not None else None
    again = dict(trace.outcomes).get(key) if trace is not None else None
    logged = explained.logged.scores.get(str(key))
    score, why = tell_score(logged, again)
    recorded = "as it was recorded" if logged is not None and again is None else ""
    yield key.filter, key.metric, "", score, _join_reasons(tell_how(traced, key) or recorded, why)
    name, judged = key.metric.partition("@")[0], _list_judged(traced, key)
    first = next(one for one in explained.keys if one.filter == key.filter and one.metric.partition("@")[0] == name)
    if len(judged) > 1 and key == first:
        yield from (("", "", str(at), _show_outcome(one.outcome), one.how) for at, one in enumerate(judged, 1))


def tell_how(traced: Traced | None, key: MetricKey) -> str:
    """How a score came about: what was compared, or of several replies what the reducer made of which scores.

    >>> tell_how(Traced("none", None, ("4",)), MetricKey("acc"))
    ''
    """
    judged, reducer = _list_judged(traced, key), key.metric.partition("@")[2]
    if traced is None or len(judged) <= 1:
        return judged[0].how if judged else ""
    known = find_reducer(reducer)
    votes = known is not None and known.answers
    each = map(show_cell, traced.kept) if votes else (_show_outcome(one.outcome) for one in judged)
    return f"{reducer or 'reduced'} of {', '.join(each)}"


def _list_judged(traced: Traced | None, key: MetricKey) -> list[Judged]:
    """What each reply got under a metric."""
    replies = traced.trace.repeats if traced is not None and traced.trace is not None else ()
    return [one for some in replies for one in some if one.metric == key.metric.partition("@")[0]]


def _join_reasons(how: str, why: str) -> str:
    return why if why.startswith(how) else "; ".join(filter(None, (how, why)))


def _show_outcome(outcome: Outcome) -> str:
    return tell_score(None, outcome)[0]


def tell_score(logged: object, traced: Outcome | None) -> tuple[str, str]:
    """A score as logged, or else as traced; and why there is none, or that tracing gives another.

    >>> tell_score(1.0, Ok(1.0)), tell_score(None, Unscorable("no gold")), tell_score(1.0, Ok(0.0))
    (('1', ''), ('none', 'no gold'), ('1', 'traced again it is 0'))
    """
    if logged is None:
        if isinstance(traced, Ok):
            return _show_score(traced.score), ""
        return "none", traced.reason if isinstance(traced, Unscorable | Failed) else ""
    same = not isinstance(traced, Ok) or _show_score(traced.score) == _show_score(logged)
    return _show_score(logged), "" if same or not isinstance(
        traced, Ok
    ) else f"traced again it is {_show_score(traced.score)}"


def _show_score(score: object) -> str:
    if isinstance(score, list | tuple):
        return ", ".join(map(_show_score, score))
    return f"{float(score):.6g}" if isinstance(score, int | float) else show_cell(score)


# --- its part in every number --------------------------------------------------------------------------------------

PARTS: tuple[GridColumn[Contribution], ...] = (
    GridColumn(N, lambda part: f"{part.n:,}"),
    GridColumn(VALUE, lambda part: show_number(part.value)),
    GridColumn("without it", lambda part: show_number(part.without)),
    GridColumn(
        "moved by",
        lambda part: show_difference(part.moved, 6),
        "the value minus what it would be without this document",
    ),
    GridColumn(
        "pull",
        lambda part: show_difference(part.influence, 6),
        "how far the document pulls the value away from the rest of its task, the number of documents being given",
        spare=2,
    ),
    GridColumn(
        "weight",
        lambda part: "" if part.weight is None else f"{part.weight:.6f}",
        "its share in the value, where every document of a task counts alike",
        spare=1,
    ),
)


PART_SHAPES = ((0, False), (1, False), (2, False), (2, True))
"""How many columns are left out on a narrow screen, and whether all names of a number are in one."""


def build_contributions(explained: Explained) -> Iterable[Block]:
    """What the document does to every number it has a part in; nothing where scores by document are not known."""
    parts = explained.contributions
    if parts:
        reasons = dict.fromkeys(f"{part.name}, {part.key}: {part.reason}" for part in parts if part.reason)
        grid, *narrower = (_build_part_grid(explained, dropped, joined) for dropped, joined in PART_SHAPES)
        yield Block("Contribution", tuple(reasons), grid=grid, narrower=tuple(narrower))


def _build_part_grid(explained: Explained, dropped: int, joined: bool) -> Grid:
    parts, aliases = explained.contributions, explained.aliases
    names = build_name_columns(
        lambda part: NumberName(aliases.get(part.name, part.name), part.key), parts, joined=joined
    )
    kept = [column for column in PARTS if not column.spare or column.spare > dropped]
    return lay_grid([*names, *kept], parts, bold=lambda part: part.group, gap=1 if joined else 2, readable=20)
