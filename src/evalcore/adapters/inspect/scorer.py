"""evalcore's metrics and filters as an Inspect scorer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING, Literal

from evalcore.adapters.inspect.metrics import evalcore_metrics
from evalcore.adapters.texts import FilterLike, MetricLike, list_answers, make_text_task
from evalcore.core.filters.chain import Trace, trace_filters
from evalcore.core.filters.reply import FELL_BACK
from evalcore.core.pipeline import score_doc
from evalcore.core.records.errors import EvalError, require
from evalcore.core.records.frozen_dict import thaw_value
from evalcore.core.records.outcome import Failed, Ok, Outcome, Unscorable
from evalcore.core.records.request import Failure, Sample
from evalcore.core.records.task import MetricKey, Task, config_of
from evalcore.core.tables import EVALCORE, pipelines_of

if TYPE_CHECKING:
    from inspect_ai.scorer import Score, Scorer, Target
    from inspect_ai.solver import TaskState


def evalcore_scorer(
    metrics: Iterable[MetricLike] = ("exact_match",),
    filters: Iterable[FilterLike] = (),
    *,
    answer: Literal["completion", "choice"] = "completion",
    cluster: str | None = None,
    group: str | None = None,
    confidence: float = 0.95,
    interval: str = "wilson",
    stderr: str = "cr2",
) -> Scorer:
    """Make an Inspect scorer of evalcore's metrics and filters, closed by ``evalcore_metrics``.

    ``answer="choice"`` scores the letters that Inspect's ``multiple_choice`` solver marked, not the text. One metric
    under one pipeline gives a number per sample, several give one for each by name.
    """
    require("inspect_ai", "inspect")
    from inspect_ai.scorer import Score, scorer

    task = make_text_task(metrics, filters, name="inspect")
    names = _name_numbers(task)
    closing = evalcore_metrics(cluster=cluster, group=group, confidence=confidence, interval=interval, stderr=stderr)

    @scorer(metrics={"*": closing} if len(names) > 1 else closing)
    def evalcore_scorer(metrics: list[object], filters: list[object], answer: str) -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            text, gold = _read_marks(state, target) if answer == "choice" else (state.output.completion, tuple(target))
            reply = Failure(state.output.error) if state.output.error else text
            choices = tuple(choice.value for choice in state.choices)
            return Score.model_validate(_judge_reply(task, names, reply, Sample(0, gold, choices)))

        return score

    # The log has them as plain data, from which the same scorer can be made.
    config = config_of(task)
    return evalcore_scorer(_list_entries(config["metric_list"]), _list_entries(config["filter_list"]), answer)


def _list_entries(entries: object) -> list[object]:
    return list(entry) if isinstance(entry := thaw_value(entries), list | tuple) else []


def _name_numbers(task: Task) -> dict[MetricKey, str]:
    """Name each number of a sample by its metric and, if there are several pipelines, by its filter."""
    pipelines = pipelines_of(task, EVALCORE)
    keys = [MetricKey(spec.name, one.name) for one in pipelines for spec in one.metrics or task.metrics]
    for spec in (spec for one in pipelines for spec in one.metrics or task.metrics):
        entry = EVALCORE.metrics[task.output_type].get(spec.name)
        if entry is not None and not EVALCORE.aggregations[entry.aggregation].even:
            raise EvalError(
                f"{spec.name} is a number of all texts together, and Inspect averages numbers of samples; "
                f"score the log: python -m evalcore score LOG --metric {spec.name}"
            )
        if spec.reducers:
            raise EvalError("expected no reducers in a scorer; give them to Epochs: Epochs(4, evalcore_reducers(...))")
    return {key: key.metric if len(pipelines) == 1 else str(key) for key in keys}


def _judge_reply(task: Task, names: Mapping[MetricKey, str], reply: str | Failure, sample: Sample) -> dict[str, object]:
    """Judge a reply: the fields of a score, with what each filter extracted and why."""
    outcomes = score_doc(task, sample, list_answers(task.name, [[reply]]))
    values = {name: _convert_outcome(outcomes[key]) for key, name in names.items()}
    if isinstance(reply, Failure):
        return {"value": nan if len(values) == 1 else values, "explanation": reply.reason, "reason": "no_response"}
    traces = {one.name: trace_filters(one, [reply], sample) for one in pipelines_of(task, EVALCORE)}
    ends = [trace[-1] for trace in traces.values()]
    fell = all(FELL_BACK in end.rules for end in ends)
    lost = [f"{names[key]}: {one.reason}" for key, one in outcomes.items() if isinstance(one, Unscorable | Failed)]
    return {
        "value": next(iter(values.values())) if len(values) == 1 else values,
        "answer": " | ".join(" ".join(map(str, end.replies)) for end in ends),
        "explanation": "\n".join([*(_describe_trace(name, trace) for name, trace in traces.items()), *lost]),
        "reason": "scoring_failed" if lost else "invalid_response_format" if fell else None,
        "metadata": {"fell_back": fell, "filters": {name: _list_steps(trace) for name, trace in traces.items()}},
    }


def _convert_outcome(outcome: Outcome) -> float:
    """Convert an outcome to a number as Inspect knows it; NaN stands for none."""
    return outcome.score if isinstance(outcome, Ok) and isinstance(outcome.score, float) else nan


def _describe_trace(name: str, traces: Sequence[Trace]) -> str:
    """Describe what each filter of a pipeline made of a reply, and by which of its rules.

    >>> _describe_trace("none", [Trace("", ("so 4",), (0,)), Trace("regex", ("4",), (0,)), Trace("map", ("?",), (-1,))])
    "none: regex gave '4' by rule 0, map fell back to '?'"
    """
    steps = [
        f"{one.filter} fell back to {value!r}" if rule == FELL_BACK else f"{one.filter} gave {value!r} by rule {rule}"
        for one in traces[1:]
        for value, rule in zip(one.replies, one.rules, strict=True)
    ]
    return f"{name}: {', '.join(steps)}" if steps else f"{name}: no filters"


def _list_steps(traces: Sequence[Trace]) -> list[dict[str, object]]:
    return [
        {"filter": one.filter, "replies": list(map(str, one.replies)), "rules": list(one.rules)} for one in traces[1:]
    ]


# --- multiple choice ---------------------------------------------------------------------------------------------


def _read_marks(state: TaskState, target: Target) -> tuple[str, tuple[str, ...]]:
    """Read the letters of the choices that the solver marked, and of the right ones, all of which must be marked."""
    letters = [_name_choice(i) for i in range(len(state.choices))]
    right = [letter for text in target for part in text.replace(",", " ").split() for letter in _split_word(part)]
    for letter in right:
        if letter.upper() not in letters:
            raise EvalError(
                f"expected the letter of one of {len(letters)} choices, got {letter!r} - at sample {state.sample_id}"
            )
    marked = sorted(one.original_position for one in state.choices if one.correct)
    wanted = sorted(letters.index(letter.upper()) for letter in right)
    return ", ".join(letters[i] for i in marked), (", ".join(letters[i] for i in wanted),)


def _split_word(word: str) -> Sequence[str]:
    return [word] if word.isnumeric() else list(word)


def _name_choice(position: int) -> str:
    """Name a choice as Inspect does: A to Z, then numbers from 1.

    >>> _name_choice(0), _name_choice(26)
    ('A', '1')
    """
    return chr(ord("A") + position) if position < 26 else str(position - 25)
