"""All that a page draws of one run besides its numbers, as plain data."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import to_builtins

from evalcore.core.records.array import Floats64
from evalcore.core.records.column import Column, scored_part
from evalcore.core.records.row import Floats
from evalcore.core.records.score import Scored
from evalcore.shell.output.report.page_chunk import PageChunk
from evalcore.shell.report.gathered_run import GatheredRun
from evalcore.shell.report.one_run.calibration_curve import draw_curve
from evalcore.shell.report.one_run.ratio_form import find_ratio
from evalcore.shell.report.one_run.repeat_stability import measure_stability
from evalcore.shell.report.one_run.reply_facts import ReplyFacts, gather_reply_facts
from evalcore.shell.report.one_run.reproduction import count_cut_off, describe_reproduction, describe_usage
from evalcore.shell.report.one_run.score_shape import shape_scores
from evalcore.shell.report.one_run.what_if import prepare_what_if
from evalcore.shell.report.shown_run import title_results

Plain = dict[str, object]


def draw_run(
    run: GatheredRun, shown: Collection[str], *, samples: bool, redact: bool
) -> tuple[Plain, tuple[PageChunk, ...]]:
    """What a page draws of a run, of the tasks that are shown, and the chunks that belong to it."""
    facts = gather_reply_facts(run) if run.sampled else {}
    what_if = prepare_what_if(run, samples=samples)
    drawn: Plain = {
        "model": "" if redact else title_results(run.results),
        "shapes": [one for one in _list_shapes(run) if one["task"] in shown],
        "stability": [one for one in _list_stability(facts) if one["task"] in shown],
        "calibration": [one for one in _list_curves(facts, run.confidence) if one["task"] in shown],
        "fell_back": {name: dict(one.fell_back) for name, one in facts.items() if one.fell_back},
        "endings": count_cut_off(run),
        "reproduce": describe_reproduction(run, redact=redact),
        "usage": describe_usage(run),
        "what_if": None if what_if is None else dict(what_if.head),
    }
    return drawn, () if what_if is None else what_if.chunks


def _list_shapes(run: GatheredRun) -> list[Plain]:
    """The distribution of every metric's scores, where a document has one number."""
    out: list[Plain] = []
    for scored in run.recorded.side.scored:
        for key, values in _list_scores(run, scored).items():
            shape = shape_scores(values)
            if shape is not None:
                out.append({"task": scored.task.name, "metric": key[0], "filter": key[1], **to_builtins(shape)})
    return out


def _list_scores(run: GatheredRun, scored: Scored) -> Mapping[tuple[str, str], Floats64]:
    out: dict[tuple[str, str], Floats64] = {}
    for asked in run.list_estimands(scored):
        ratio = find_ratio(asked)
        values = ratio.each if ratio is not None and not ratio.plain else _list_floats(asked.scored.column)
        if values is not None:
            out[asked.scored.key.metric, asked.scored.key.filter] = values
    return out


def _list_floats(column: Column) -> Floats64 | None:
    if column.times is not None or not isinstance(column.rows, Floats):
        return None
    rows = scored_part(column).rows
    return rows.values.floats if isinstance(rows, Floats) else None


def _list_stability(facts: Mapping[str, ReplyFacts]) -> list[Plain]:
    found = (
        (name, key, measure_stability(scores)) for name, one in facts.items() for key, scores in one.repeats.items()
    )
    return [
        {"task": name, "metric": key.metric, "filter": key.filter, **to_builtins(stable)}
        for name, key, stable in found
        if stable is not None
    ]


def _list_curves(facts: Mapping[str, ReplyFacts], confidence: float) -> list[Plain]:
    """The calibration of each task whose answers have likelihoods."""
    known = {name: one.chances for name, one in facts.items() if one.chances is not None and len(one.chances)}
    curves = ((name, draw_curve(one, confidence)) for name, one in known.items())
    return [{"task": name, **to_builtins(curve)} for name, curve in curves if curve is not None]
