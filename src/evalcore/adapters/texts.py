"""What the adapters for texts share: a task from short descriptions, completions and golds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan

import numpy as np
from msgspec.structs import replace

from evalcore.core.lm_eval.task_config import metric_from_config, pipeline_from_config
from evalcore.core.pipeline import score_task
from evalcore.core.records.errors import EvalError
from evalcore.core.records.outcome import Failed
from evalcore.core.records.request import GENERATE_UNTIL, Answer, Generate, Instance, Reply, freeze_options
from evalcore.core.records.task import MetricSpec, Pipeline, Step, Task
from evalcore.core.tables import EVALCORE, Tables

NOTHING: Mapping[str, object] = freeze_options()
LARGEST = 2**53
"""From here on, not every integer has a float of its own."""

MetricLike = str | Mapping[str, object] | MetricSpec
"""A metric by name, as an entry of a task file's ``metric_list``, or as a record."""

FilterLike = str | Mapping[str, object] | Step | Pipeline
"""A filter by name, as an entry of a task file's ``filter``, or as a record; or a whole pipeline."""


def make_text_task(
    metrics: Iterable[MetricLike], filters: Iterable[FilterLike] = (), *, name: str = "texts", tables: Tables = EVALCORE
) -> Task:
    """Make a task over texts; an unknown name or option is an error here, not at the first document.

    >>> task = make_text_task(["exact_match"], ["lowercase", {"function": "regex", "regex_pattern": "([0-9]+)"}])
    >>> [step.name for step in task.filters[0].steps]
    ['lowercase', 'regex']
    >>> make_text_task(["exact_macth"])
    Traceback (most recent call last):
    evalcore.EvalError: unknown metric 'exact_macth'; did you mean 'exact_match'? ...
    """
    task = Task(name, GENERATE_UNTIL, tuple(map(read_metric, metrics)), _read_pipelines(list(filters)))
    if not task.metrics and not any(one.metrics for one in task.filters):
        raise EvalError("expected at least one metric, got none")
    score_task(task, (), (), tables=tables)
    return task


def read_metric(given: MetricLike, more: Mapping[str, object] = NOTHING) -> MetricSpec:
    """Read a metric from its short description, with more options.

    >>> read_metric("exact_match", {"ignore_case": True}).options
    pmap({'ignore_case': True})
    """
    spec = (
        given
        if isinstance(given, MetricSpec)
        else metric_from_config({"metric": given} if isinstance(given, str) else given)
    )
    return replace(spec, options=freeze_options({**spec.options, **more}))


def list_answers(task: str, replies: Iterable[Sequence[Reply]]) -> list[Answer]:
    """List the replies to documents 0, 1, ... as answers of a task.

    >>> list_answers("t", [["4"]])[0].replies
    ('4',)
    """
    return [
        Answer(Instance(task, i, 0, Generate(""), repeats=len(given)), tuple(given)) for i, given in enumerate(replies)
    ]


def read_completion(completion: object) -> str | Failed:
    """Read the text of a completion: itself, or what an assistant says last in a list of messages.

    >>> read_completion([{"role": "assistant", "content": "4"}])
    '4'
    >>> read_completion(None)
    Failed(reason='no answer')
    """
    if isinstance(completion, np.generic):
        completion = completion.item()
    if isinstance(completion, str):
        return completion
    if completion is None or (isinstance(completion, float) and isnan(completion)):
        return Failed("no answer")
    if isinstance(completion, int | float):
        return str(_convert_whole(completion))
    if not isinstance(completion, list | tuple):
        return Failed(f"expected a text or a list of messages, got {type(completion).__name__}")
    strange = next((one for one in completion if not isinstance(one, Mapping)), None)
    if strange is not None:
        raise EvalError(f"expected one text or a list of messages, got a list with {type(strange).__name__} in it")
    said = [one.get("content") for one in completion if one.get("role", "assistant") == "assistant"]
    return _read_content(said[-1]) if said else Failed("no answer: no message of an assistant")


def _read_content(content: object) -> str | Failed:
    """Read what a message says; of several parts, those that are text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    texts = [str(one["text"]) for one in parts if isinstance(one, Mapping) and "text" in one]
    return "".join(texts) if texts else Failed("no answer: a message without text")


def read_gold(gold: object) -> object:
    """Read a gold: an array is a list of golds, and NaN, which stands for nothing in tables, is none.

    Columns with gaps have 4.0 for the integer 4.

    >>> read_gold(np.array(["4", "four"])), read_gold(float("nan")), read_gold(np.int64(4)), read_gold(4.0)
    (['4', 'four'], None, 4, 4)
    """
    if isinstance(gold, np.ndarray | np.generic):
        gold = gold.tolist()
    if isinstance(gold, str):
        return gold
    if isinstance(gold, list | tuple):
        plain = [_convert_whole(one.item() if isinstance(one, np.generic) else one) for one in gold]
        return plain if isinstance(gold, list) else tuple(plain)
    return None if isinstance(gold, float) and isnan(gold) else _convert_whole(gold)


def list_items(given: Iterable[object], what: str) -> list[object]:
    """List the items of a sequence; a text, whose items are letters, belongs into a list.

    >>> list_items("44", "predictions")
    Traceback (most recent call last):
    evalcore.EvalError: expected a list of predictions, got one text: '44'
    """
    if isinstance(given, str | bytes):
        raise EvalError(f"expected a list of {what}, got one text: {str(given)[:60]!r}")
    return list(given)


def _convert_whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST else value


def _read_pipelines(given: Sequence[FilterLike]) -> tuple[Pipeline, ...]:
    """Read pipelines; filters that stand alone are the steps of one pipeline."""
    whole = [pipeline for pipeline in map(_read_pipeline, given) if pipeline is not None]
    steps = [step for step in map(_read_step, given) if step is not None]
    if whole and steps:
        raise EvalError(f"expected either filters or whole pipelines, got both: {list(given)!r}")
    return (Pipeline("none", tuple(steps)),) if steps else tuple(whole)


def _read_pipeline(given: FilterLike) -> Pipeline | None:
    if isinstance(given, Mapping):
        return pipeline_from_config(given) if "filter" in given else None
    return given if isinstance(given, Pipeline) else None


def _read_step(given: FilterLike) -> Step | None:
    if isinstance(given, Mapping):
        return None if "filter" in given else pipeline_from_config({"filter": [given]}).steps[0]
    return Step(given) if isinstance(given, str) else given if isinstance(given, Step) else None
