"""A whole evaluation harness on evalcore's public names: your questions, any callable model, filters, repeats, groups.

python examples/harness/harness.py [results.json]
"""

import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path

from evalcore import (
    GENERATE_UNTIL,
    Answer,
    Estimate,
    Failure,
    Generate,
    Instance,
    MetricSpec,
    Pipeline,
    Report,
    Sample,
    Step,
    Task,
    TaskReport,
    build_report,
    report_task,
    score_task,
)
from evalcore.groups import Group, GroupMetric, Leaf
from evalcore.lm_eval import lm_eval_results

Model = Callable[[str], str]
REPEATS = 3
LAST_NUMBER = Pipeline("number", (Step.of("regex", regex_pattern=r"(-?[0-9]+)", group_select=-1),))
METRICS = (MetricSpec("exact_match", reducers=("mean", "pass@2", "maj@3")),)


def ask(model: Model, prompt: str) -> str | Failure:
    try:
        return model(prompt)
    except Exception as wrong:  # a question that fails is counted and told; the others go on
        return Failure(f"{type(wrong).__name__}: {wrong}")


def evaluate_file(model: Model, path: Path) -> TaskReport:
    docs = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    task = Task(path.stem, GENERATE_UNTIL, METRICS, (LAST_NUMBER,), version=1)
    samples = [Sample(i, gold=doc["answer"], doc=doc) for i, doc in enumerate(docs)]
    answers = [
        Answer(
            Instance(task.name, i, 0, Generate(doc["question"]), REPEATS),
            tuple(ask(model, doc["question"]) for _ in range(REPEATS)),
        )
        for i, doc in enumerate(docs)
    ]
    return report_task(score_task(task, samples, answers))


def evaluate(model: Model, folder: Path) -> Report:
    tasks = [evaluate_file(model, path) for path in sorted(folder.glob("*.jsonl"))]
    names = dict.fromkeys(key.metric for task in tasks for key, _ in task.estimates)
    leaves = tuple(Leaf(task.name, None) for task in tasks)
    return build_report(tasks, [Group("arithmetic", leaves, tuple(map(GroupMetric, names)))])


def table(report: Report) -> str:
    found = [(one.name, key, estimate) for one in report.groups for key, estimate in one.estimates]
    found += [(one.name, key, estimate) for one in report.tasks for key, estimate in one.estimates]
    return "\n".join(f"{name:12}{key.metric:20}{estimate}  {interval(estimate)}" for name, key, estimate in found)


def interval(estimate: Estimate) -> str:
    return "no interval" if estimate.ci is None else f"{estimate.ci[0]:.3f} to {estimate.ci[1]:.3f}"


class Careless:
    """A stand-in for your model: it says its sums aloud, and gets one in four wrong."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def __call__(self, prompt: str) -> str:
        a, sign, b = re.findall(r"(\d+) ([+*]) (\d+)", prompt)[0]
        right = int(a) + int(b) if sign == "+" else int(a) * int(b)
        return f"{a} {sign} {b}, so that makes {right + (self.dice.random() < 0.25)}."


if __name__ == "__main__":
    done = evaluate(Careless(1), Path(__file__).parent)
    print(table(done))
    Path(sys.argv[1] if len(sys.argv) > 1 else "results.json").write_text(json.dumps(lm_eval_results(done), indent=2))
