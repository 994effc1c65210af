"""What another harness writes against evalcore; mypy checks it strictly (see test_typing.py)."""

from collections.abc import Iterator, Mapping, Sequence

from evalcore import (
    EVALCORE,
    GENERATE_UNTIL,
    REDUCERS,
    SCORERS,
    Answer,
    Estimate,
    Generate,
    Instance,
    MetricKey,
    MetricSpec,
    OutputType,
    Pipeline,
    Sample,
    Step,
    Tables,
    Task,
    aggregate_metric,
    build_report,
    compare,
    fold_group,
    freeze_options,
    report_task,
    run,
    score,
    score_task,
)
from evalcore.comparisons import Compared
from evalcore.extensions import (
    GROUP_RULES,
    INTERVALS,
    MODELS,
    Backend,
    Correction,
    GroupRule,
    Heard,
    Interval,
    MCResult,
    Model,
    Question,
    Reducer,
    ReducerAt,
    Term,
    per_document,
    scorer_of,
)
from evalcore.groups import Group, GroupMetric, Leaf
from evalcore.lm_eval import lm_eval_results
from evalcore.logs import RunResult
from evalcore.stats import Array, Floats, build_column

RANKING = OutputType("ranking")


def margin(result: MCResult) -> Mapping[str, object]:
    return {"margin": max(result.lls) - min(result.lls)}


def closeness(prediction: str, gold: str) -> float:
    return 1 / (1 + abs(float(prediction) - float(gold)))


def spread(scores: Sequence[float]) -> float:
    return max(scores) - min(scores)


def tables() -> Tables:
    return Tables(scorers=SCORERS.set(RANKING, scorer_of(MCResult, margin)))


def task() -> Task:
    return Task(
        "near",
        GENERATE_UNTIL,
        metrics=(MetricSpec("close", function=per_document(closeness), aggregation=spread),),
        filters=(Pipeline("number", (Step.of("regex", regex_pattern="([0-9]+)"),)),),
        config=freeze_options(source="mine"),
    )


def evaluate(texts: Sequence[str], golds: Sequence[str]) -> float | None:
    samples = [Sample(i, gold=gold) for i, gold in enumerate(golds)]
    answers = [Answer(Instance("near", i, 0, Generate("?")), (text,)) for i, text in enumerate(texts)]
    report = build_report(
        [report_task(score_task(task(), samples, answers, tables=tables()))],
        [Group("all", (Leaf("near", None),), (GroupMetric("close", aggregation="macro"),))],
    )
    results: dict[str, object] = lm_eval_results(report)
    assert "results" in results
    estimate: Estimate | None = report.task("near").get(MetricKey("close", "number"))
    return None if estimate is None else estimate.value


def depth(tree: Group[int] | Leaf[int]) -> int:
    return fold_group(tree, lambda leaf: 1, lambda group, below: 1 + max(below, default=0))


def mean(values: Sequence[float]) -> float | None:
    return aggregate_metric(
        EVALCORE.aggregations["mean"], build_column(range(len(values)), Floats(Array(values)))
    ).value


def worst_of(k: int) -> Reducer:
    return Reducer(lambda repeats: repeats.scores[:, :k].min(axis=1), answers=False, least=k)


def recite(questions: Sequence[Question]) -> Iterator[Heard]:
    return (Heard(at, "Paris") for at, _ in enumerate(questions))


def weakest(spec: GroupMetric, terms: Sequence[Term]) -> Estimate:
    return min((term.estimate for term in terms), key=lambda one: one.value or 0.0)


ours = Tables(
    name="ours",
    reducers=REDUCERS.set("worst@", ReducerAt(worst_of)),
    intervals=INTERVALS.set("all", Interval("all", lambda mean, count, df, confidence, documents: (0.0, 1.0))),
    group_rules=GROUP_RULES.set("weakest", GroupRule(weakest, alike=True)),
)
reciter = Backend(lambda arguments: Model("reciter", "reciter:1", recite), "says what it was told")
strict = Correction("bonferroni", lambda values: tuple(p and min(1.0, p * len(values)) for p in values), "{share}")


def measure(folder: str) -> tuple[RunResult, Compared]:
    done = run(model="reciter", tasks=["t"], models=MODELS.set("reciter", reciter), tables=ours, output_path=folder)
    again = score(folder, reducer="worst@2", ci="all", tables=ours)
    return again, compare(str(done.folder), folder, tables=ours, correction=strict)
