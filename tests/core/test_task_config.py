"""A task's config as plain data, in lm-eval's words, becomes the task that lm-eval would score."""

import pytest

from evalcore import (
    GENERATE_UNTIL,
    Answer,
    EvalError,
    Generate,
    Instance,
    MetricKey,
    MetricSpec,
    Ok,
    Pipeline,
    Sample,
    Step,
    Task,
    report_task,
    score_doc,
    score_task,
)
from evalcore.core.lm_eval.task_config import repeats_of, task_from_config
from evalcore.core.records.task import config_of

CONFIG = {
    "task": "sums",
    "task_alias": "Sums",
    "output_type": "generate_until",
    "num_fewshot": 5,
    "metadata": {"version": 3.0},
    "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True, "ignore_case": True}],
    "filter_list": [
        {
            "name": "strict",
            "filter": [{"function": "regex", "regex_pattern": "#### ([0-9]+)"}, {"function": "take_first"}],
        },
        {"name": "rate", "filter": [{"function": "take_first"}], "metric_list": [{"metric": "extraction_rate"}]},
    ],
    "doc_to_text": "{{question}}",
}


def reply(text, repeats=1):
    return [Answer(Instance("sums", 0, 0, Generate("?"), repeats), (text,) * repeats)]


def test_a_config_becomes_a_task():
    task = task_from_config(CONFIG)
    assert (task.name, task.alias, task.output_type, task.num_fewshot, task.version) == (
        "sums",
        "Sums",
        GENERATE_UNTIL,
        5,
        3.0,
    )
    assert task.config["doc_to_text"] == "{{question}}"
    assert score_doc(task, Sample(0, gold="4"), reply("so #### 4")) == {
        MetricKey("exact_match", "strict"): Ok(1.0),
        MetricKey("extraction_rate", "rate"): Ok(1.0),
    }


def test_repeat_cfg_gives_every_metric_its_reducers():
    config = {
        "task": "sums",
        "metric_list": [{"metric": "exact_match"}],
        "repeat_cfg": {"reducer": "mean", "repeats": 2},
    }
    assert repeats_of(config) == 2
    assert score_doc(task_from_config(config), Sample(0, gold="4"), reply("4", 2)) == {
        MetricKey("exact_match"): Ok(1.0)
    }


def test_a_metric_may_be_a_function_in_either_convention():
    def named(references, predictions):
        return float(references == predictions)

    def paired(items):
        return float(items[0] == items[1])

    task = task_from_config({"task": "sums", "metric_list": [{"metric": named}, {"metric": paired}]})
    scores = score_doc(task, Sample(0, gold=("4", "5")), reply("5"))
    assert scores == {MetricKey("named"): Ok(1.0), MetricKey("paired"): Ok(1.0)}


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"task": "t", "metric_list": ["acc"]},
        {"task": "t", "metric_list": [{"aggregation": "mean"}]},
        {"task": "t", "filter_list": [{"name": "a", "filters": []}]},
    ],
)
def test_what_is_wrong_is_said(config):
    with pytest.raises(EvalError, match=r"expected|unknown key"):
        task_from_config(config)


@pytest.mark.parametrize("repeats", [0, -1, 2.5, "3", True])
def test_repeats_are_whole_numbers(repeats):
    if repeats is True:
        assert repeats_of({"repeats": repeats}) == 1
        return
    with pytest.raises(EvalError, match="integer"):
        repeats_of({"repeats": repeats})


def test_metrics_that_lm_eval_only_passes_on_reach_the_aggregation_as_pairs() -> None:
    seen: list[object] = []

    def share(items: list[tuple[str, str]]) -> float:
        seen.extend(items)
        return sum(gold == said for gold, said in items) / len(items)

    metric = {"metric": "f1", "aggregation": share, "ignore_case": True}
    task = task_from_config({"task": "t", "output_type": "generate_until", "metric_list": [metric]})
    said = [Answer(Instance("t", i, 0, Generate("?")), (text,)) for i, text in enumerate(["a", "x"])]
    report = report_task(score_task(task, [Sample(0, gold="a"), Sample(1, gold="b")], said))
    assert report["f1,none"].value == 0.5
    assert ("a", "a") in seen


def test_options_are_written_in_the_order_of_their_names() -> None:
    """Written as a ``PMap`` gives them, they are another text in every process."""
    names = [chr(at) for at in range(ord("a"), ord("z") + 1)]
    options = dict.fromkeys(reversed(names), 1)
    chain = (Pipeline("none", (Step("regex", options),)),)
    config = config_of(Task("t", GENERATE_UNTIL, (MetricSpec("f1", options=options),), chain))
    assert list(config["metric_list"][0]) == ["metric", *names]
    assert list(config["filter_list"][0]["filter"][0]) == ["function", *names]
