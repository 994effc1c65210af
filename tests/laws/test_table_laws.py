"""Nothing tests a name: an entry under another name behaves as the original, in every verb."""

from __future__ import annotations

from math import isnan

import pytest
from msgspec.structs import asdict, replace

from evalcore import (
    EVALCORE,
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    Answer,
    Estimate,
    Generate,
    Instance,
    LogLikelihood,
    MetricKey,
    MetricSpec,
    Pipeline,
    Rolling,
    Sample,
    Step,
    Tables,
    Task,
    build_report,
    report_task,
    score_task,
)
from evalcore.comparisons import Comparison, ComparisonLine, adjust_comparisons
from evalcore.core.compare.verdicts.regressions import find_regressions
from evalcore.extensions import CORRECTIONS
from evalcore.groups import Group, GroupMetric, Leaf
from evalcore.shell.output.compare.footnotes import tell_correction
from evalcore.stats import Inference
from evalcore.testing import fingerprint
from evalcore.traces import contributions, trace_document

COPY = "another_name"
WILSON = Inference()
TEXTS = [("It is 4", "4", "5"), ("9", "nine", "9"), ("seven", "7", "(B)"), ("The answer is 5.", "5", "5")]
GOLDS = ["4", "9", "7", "5"]


def ask_texts(name: str) -> tuple[list[Sample], list[Answer]]:
    samples = [Sample(i, gold=gold, choices=("4", "5"), doc={"question": i}) for i, gold in enumerate(GOLDS)]  # type: ignore[arg-type]
    return samples, [Answer(Instance(name, i, 0, Generate("?"), repeats=3), texts) for i, texts in enumerate(TEXTS)]


def ask_choices(name: str) -> tuple[list[Sample], list[Answer]]:
    doc = {"idx": {"question": 0, "paragraph": 0, "answer": 0}}
    samples = [Sample(i, gold=i % 2, choices=("no", "yes it is"), doc=doc) for i in range(4)]  # type: ignore[arg-type]
    pairs = [((-1.0, True, 2), (-2.0 - i, False, 3)) for i in range(4)]
    plain = [((-3.0, False, 2), (-2.5, False, 3)) for _ in range(4)]
    asked = [(i, j, reply) for i in range(4) for j, reply in enumerate((*pairs[i], *plain[i]))]
    return samples, [
        Answer(Instance(name, i, j, LogLikelihood("?" if j < 2 else "", "x")), (reply,)) for i, j, reply in asked
    ]


def ask_likelihoods(name: str) -> tuple[list[Sample], list[Answer]]:
    doc = {"idx": {"question": 0, "paragraph": 0, "answer": 0}}
    samples = [Sample(i, gold=" x", doc=doc) for i in range(4)]  # type: ignore[arg-type]
    return samples, [
        Answer(Instance(name, i, 0, LogLikelihood("?", " x")), ((-1.0 - i / 3, i != 2),)) for i in range(4)
    ]


def ask_rolling(name: str) -> tuple[list[Sample], list[Answer]]:
    samples = [Sample(i, gold="a text of " + "some " * (i + 1)) for i in range(4)]
    return samples, [Answer(Instance(name, i, 0, Rolling("?")), (-20.0 - 7 * i,)) for i in range(4)]


ASK = {
    MULTIPLE_CHOICE: ask_choices,
    GENERATE_UNTIL: ask_texts,
    LOGLIKELIHOOD: ask_likelihoods,
    LOGLIKELIHOOD_ROLLING: ask_rolling,
}


def behave(task: Task, tables: Tables) -> object:
    """Everything that the verbs say of a task's only metric, but for what its entries are called."""
    samples, answers = ASK[task.output_type](task.name)
    scored = score_task(task, samples, answers, tables=tables)
    report = report_task(scored, tables=tables)
    tree = Group("g", (Leaf(task.name, None),), (GroupMetric(task.metrics[0].name, aggregation="macro"),))
    whole = build_report([report], [tree], tables=tables)
    numbers = [anonymous(estimate) for part in (*whole.tasks, *whole.groups) for _, estimate in part.estimates]
    traces = [
        [judged.how for repeat in trace.repeats for judged in repeat]
        + [step.notes for unit in trace.steps for step in unit]
        for sample, answer in zip(samples[:1], answers[:1], strict=True)
        for trace in trace_document(task, sample, [a for a in answers if a.doc_id == answer.doc_id], tables=tables)
    ]
    moves = [
        tuple(value for name, value in asdict(part).items() if name not in ("key", "reason"))
        for part in contributions(whole, task.name, 1, tables=tables)
    ]
    columns = [one.column for one in scored.columns], [one.noise for one in scored.columns]
    return fingerprint((columns, numbers, traces, moves))


def anonymous(estimate: Estimate) -> object:
    """The estimate without names; which of lm-eval's errata apply is a matter of lm-eval's names."""
    recipe = [part for part in estimate.signature.split("|") if part.split(":")[0] in ("se", "ci", "n", "repeats")]
    scale = replace(estimate.scale, aggregation="")
    reason = (estimate.reason or "").replace(estimate.scale.aggregation, "*")
    return replace(estimate, signature="|".join(recipe), scale=scale, reason=reason, errata=())


METRIC_ENTRIES = [(kind, name) for kind in sorted(EVALCORE.metrics) for name in sorted(EVALCORE.metrics[kind])]


@pytest.mark.parametrize(("kind", "name"), METRIC_ENTRIES, ids=[f"{kind}-{name}" for kind, name in METRIC_ENTRIES])
def test_a_metric_under_another_name(kind: str, name: str) -> None:
    entries = EVALCORE.metrics[kind]  # type: ignore[index]
    tables = replace(EVALCORE, metrics=EVALCORE.metrics.set(kind, entries.set(COPY, entries[name])))  # type: ignore[arg-type]
    first = Pipeline("none", (Step.of("take_first"),))
    ours, other = (Task("t", kind, (MetricSpec(metric),), (first,)) for metric in (name, COPY))  # type: ignore[arg-type]
    assert behave(ours, tables) == behave(other, tables)


OPTIONS = {
    "take_first_k": {"k": 2},
    "map": {"mapping_dict": {"4": "four"}},
    "regex": {"regex_pattern": "([0-9]+)"},
    "custom": {"filter_fn": lambda resps, docs: [[text.upper() for text in unit] for unit in resps]},
}


@pytest.mark.parametrize("name", sorted(EVALCORE.filters))
def test_a_filter_under_another_name(name: str) -> None:
    tables = replace(EVALCORE, filters=EVALCORE.filters.set(COPY, EVALCORE.filters[name]))
    spec = MetricSpec("exact_match", reducers=("mean",))
    ours, other = (
        Task("t", GENERATE_UNTIL, (spec,), (Pipeline("none", (Step.of(step, **OPTIONS.get(name, {})),)),))
        for step in (name, COPY)
    )
    assert behave(ours, tables) == behave(other, tables)


@pytest.mark.parametrize("name", sorted(EVALCORE.reducers))
def test_a_reducer_under_another_name(name: str) -> None:
    tables = replace(EVALCORE, reducers=EVALCORE.reducers.set(COPY, EVALCORE.reducers[name]))
    k = "2" if name in ("pass@", "pass^", "maj@") else "(2)" if name == "at_least" else ""
    ours, other = (
        Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", reducers=(stem + k,), aggregation=aggregation),))
        for aggregation in (len if name == "collect" else None,)
        for stem in (name, COPY)
    )
    assert behave(ours, tables) == behave(other, tables)


def test_a_reducer_of_a_host_gets_answers_whatever_it_is_called() -> None:
    seen = []

    def remember(repeats: object) -> object:
        seen.append(repeats.answers)  # type: ignore[attr-defined]
        return repeats.scores[:, 0]  # type: ignore[attr-defined]

    for name in ("mode", "at_least_half"):
        tables = replace(EVALCORE, reducers=EVALCORE.reducers.set(name, remember))  # type: ignore[arg-type]
        samples, answers = ask_texts("t")
        score_task(
            Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", reducers=(name,)),)), samples, answers, tables=tables
        )
        assert [list(texts) for texts in seen.pop()] == [list(texts) for texts in TEXTS]


SOURCES = {
    "f1": (MULTIPLE_CHOICE, "f1"),
    "matthews_corrcoef": (MULTIPLE_CHOICE, "mcc"),
    "brier_score": (MULTIPLE_CHOICE, "brier_score"),
    "ece": (MULTIPLE_CHOICE, "ece"),
    "acc_all": (MULTIPLE_CHOICE, "acc_all"),
    "weighted_perplexity": (LOGLIKELIHOOD_ROLLING, "word_perplexity"),
    "bits_per_byte": (LOGLIKELIHOOD_ROLLING, "bits_per_byte"),
    "perplexity": (LOGLIKELIHOOD, "perplexity"),
    **{name: (GENERATE_UNTIL, name) for name in ("bleu", "chrf", "chrf++", "ter", "bypass")},
}


@pytest.mark.parametrize("name", sorted(EVALCORE.aggregations))
def test_an_aggregation_under_another_name(name: str) -> None:
    tables = replace(EVALCORE, aggregations=EVALCORE.aggregations.set(COPY, EVALCORE.aggregations[name]))
    kind, metric = SOURCES.get(name, (GENERATE_UNTIL, "exact_match"))
    first = Pipeline("none", (Step.of("take_first"),))
    ours, other = (Task("t", kind, (MetricSpec(metric, aggregation=closing),), (first,)) for closing in (name, COPY))
    assert behave(ours, tables) == behave(other, tables)


def close_group(spec: GroupMetric, tables: Tables, inference: Inference = WILSON) -> object:
    """What three tasks, one of them in a subgroup with another, come to as a group; without the names of rules."""
    reports = []
    for name, shift in (("a", 0), ("b", 1), ("c", 2)):
        samples, answers = ask_texts(name)
        some = samples[: 4 - shift]
        task = Task(name, GENERATE_UNTIL, (MetricSpec("exact_match", reducers=("mean",)),))
        scored = score_task(task, some, answers[: len(some)], tables=tables)
        reports.append(report_task(scored, inference=inference, tables=tables))
    below = Group("below", (Leaf("b", None), Leaf("c", None)))
    tree = Group("g", (Leaf("a", None), below, Leaf("b", None)), (spec,))
    made = build_report(reports, [tree], inference=inference, tables=tables)
    parts = contributions(made, "a", 1, inference=inference, tables=tables)
    moves = [(part.value, part.without, part.influence) for part in parts]
    return fingerprint(([anonymous(one) for group in made.groups for _, one in group.estimates], moves))


@pytest.mark.parametrize("name", sorted(EVALCORE.group_rules))
def test_a_group_rule_under_another_name(name: str) -> None:
    tables = replace(EVALCORE, group_rules=EVALCORE.group_rules.set(COPY, EVALCORE.group_rules[name]))
    ours, other = (close_group(GroupMetric("exact_match", aggregation=rule), tables) for rule in (name, COPY))
    assert ours == other


@pytest.mark.parametrize("name", sorted(EVALCORE.averages))
@pytest.mark.parametrize("rule", sorted(EVALCORE.group_rules))
def test_an_average_under_another_name(rule: str, name: str) -> None:
    tables = replace(EVALCORE, averages=EVALCORE.averages.set(COPY, EVALCORE.averages[name]))
    ours, other = (
        close_group(GroupMetric("exact_match", aggregation=rule, average=one), tables) for one in (name, COPY)
    )
    assert ours == other


@pytest.mark.parametrize("name", sorted(EVALCORE.intervals))
def test_an_interval_under_another_name(name: str) -> None:
    table = EVALCORE.intervals.set(COPY, EVALCORE.intervals[name])
    ours, other = (
        close_group(GroupMetric("exact_match"), EVALCORE, Inference(interval=one, intervals=table))
        for one in (name, COPY)
    )
    assert ours == other


@pytest.mark.parametrize("name", sorted(CORRECTIONS))
def test_a_correction_under_another_name(name: str) -> None:
    values = [("t", 0.01), ("u", 0.04), ("v", None), ("w", 0.03)]
    lines = tuple(ComparisonLine(name=task, key=MetricKey("acc"), p_value=p) for task, p in values)
    ours, other = (
        adjust_comparisons([Comparison(names=("a", "b"), lines=lines)], correction)[0]
        for correction in (name, replace(CORRECTIONS[name], name=COPY))
    )
    assert (ours.lines, ours.family) == (other.lines, other.family)
    assert find_regressions(ours, correction=ours.correction) == find_regressions(other, correction=other.correction)
    told = [tell_correction(one.correction, one.family, 0.05) for one in (ours, other)]
    assert told[0] == told[1].replace(COPY, name)


def test_a_metric_of_a_host_is_known_to_the_pipe() -> None:
    texts = EVALCORE.metrics[GENERATE_UNTIL]
    tables = replace(EVALCORE, metrics=EVALCORE.metrics.set(GENERATE_UNTIL, texts.set("mine", texts["includes"])))
    samples, answers = ask_texts("t")
    scored = score_task(Task("t", GENERATE_UNTIL, (MetricSpec("mine"),)), samples, answers, tables=tables)
    value = report_task(scored, tables=tables)["mine,none"].value
    assert value is not None
    assert not isnan(value)
