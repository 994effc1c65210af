"""Opening recorded data sets, and putting their rows into evalcore's records."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from evalcore import (
    EVALCORE,
    GENERATE_UNTIL,
    Answer,
    Estimate,
    Generate,
    Instance,
    LogLikelihood,
    MetricKey,
    MetricSpec,
    Pipeline,
    Sample,
    Step,
    Tables,
    Task,
    TaskReport,
    report_task,
    score_task,
)
from evalcore.stats import Inference

Row = Mapping[str, object]


class DataSet(NamedTuple):
    folder: Path
    meta: dict
    rows: list[dict]


def open_data_set(folder: Path) -> DataSet:
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    for name, opener in (("data.jsonl.gz", gzip.open), ("data.jsonl", open)):
        if (folder / name).exists():
            with opener(folder / name, "rt", encoding="utf-8") as lines:
                return DataSet(folder, meta, [json.loads(line) for line in lines])
    return DataSet(folder, meta, [])


def read_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def generated(task: str, key: int, *replies: object) -> Answer:
    return Answer(Instance(task, key, 0, Generate(""), len(replies)), tuple(replies))


def likelihoods(task: str, key: int, pairs: Iterable[Sequence[object]]) -> list[Answer]:
    """One answer per choice, from (log-likelihood, is greedy) pairs."""
    return [
        Answer(Instance(task, key, idx, LogLikelihood("", "")), ((float(ll), greedy in (True, "True")),))
        for idx, (ll, greedy) in enumerate(pairs)
    ]


def extract(name: str, pattern: str, **options: object) -> Pipeline:
    return Pipeline(name, (Step.of("regex", regex_pattern=pattern, **options), Step.of("take_first")))


STRIPPED = Pipeline("none", (Step.of("remove_whitespace"), Step.of("take_first")))


def report_texts(
    name: str,
    rows: Sequence[Row],
    reply: Callable[[Row], object],
    gold: Callable[[Row], object],
    pipelines: Sequence[Pipeline],
    *,
    metrics: Sequence[MetricSpec] = (MetricSpec("exact_match"),),
    inference: Inference | None = None,
    tables: Tables = EVALCORE,
) -> TaskReport:
    """A generation task over rows, one reply each, keyed by position."""
    task = Task(name, GENERATE_UNTIL, tuple(metrics), tuple(pipelines))
    samples = [Sample(key, gold=gold(row)) for key, row in enumerate(rows)]
    answers = [generated(name, key, reply(row)) for key, row in enumerate(rows)]
    scored = score_task(task, samples, answers, tables=tables)
    return report_task(scored, inference=inference or Inference(), tables=tables)


def estimate(report, key: str) -> Estimate:
    found = report.get(MetricKey.parse(key))
    assert found is not None, f"no {key} in {report.name}"
    return found
