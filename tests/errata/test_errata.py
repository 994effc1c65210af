"""Every row of the errata: lm-eval's number live, the same under its policy, and the right one by default.

Peers that are not installed are quoted from the row; of them only our number is checked.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from math import isclose, log, nan, sqrt
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lm_eval")
sys.path.append(str(Path(__file__).parents[1] / "agreement"))

from both_sides import Case, lm_group, our_group, our_report, quiet, run_evalcore, run_lm_eval
from lm_eval.api import metrics as lm
from lm_eval.api.group import AggMetricConfig
from lm_eval.api.group import Group as LmGroup
from lm_eval.api.registry import get_filter

from evalcore import (
    AGGREGATIONS,
    EVALCORE,
    GENERATE_UNTIL,
    MULTIPLE_CHOICE,
    REDUCERS,
    Answer,
    Estimate,
    EvalError,
    Generate,
    GroupReport,
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
    Unscorable,
    aggregate_metric,
    build_report,
    freeze_options,
    reduce_repeats,
    report_task,
    score_task,
)
from evalcore.core.compare.estimates import match_keys
from evalcore.core.groups.build import build_trees, plan_trees
from evalcore.core.records.estimate import Scale
from evalcore.core.stats.pair_tests import paired_binary
from evalcore.extensions import Metric, Repeats, from_callable
from evalcore.groups import Group, GroupMetric, Leaf, Tree, leaf_from_flat, map_leaves, report_groups
from evalcore.lm_eval import ERRATA, LM_EVAL_0_4_13, lm_eval_results
from evalcore.logs import request_key, select_docs
from evalcore.stats import (
    Array,
    Floats,
    Inference,
    Labels,
    Objects,
    Resampling,
    build_column,
    cluster_codes,
    clusters_of,
    list_outcomes,
)
from evalcore.traces import trace_filters

ACC = MetricKey("acc")
POLICIES = (LM_EVAL_0_4_13, EVALCORE)


# --- small worlds -------------------------------------------------------------------------------------------


def close(
    name: str, items: Sequence[object], tables: Tables = EVALCORE, draws: int | None = 1000, **chosen: object
) -> Estimate:
    plain = all(isinstance(item, float | int) for item in items)
    rows = Floats(Array(np.array(items, np.float64))) if plain else Objects(tuple(items))
    inference = Inference(resampling=Resampling(draws))
    made = tables.aggregations[name]
    return aggregate_metric(
        made, build_column(range(len(items)), rows), options=freeze_options(chosen), inference=inference
    )


def flat(value: float, n: int = 10, stderr: float | str = 0.1, key: MetricKey = ACC) -> dict[str, object]:
    return {str(key): value, key.stderr: stderr, "sample_len": n}


def place(tree: Group[None], rows: Mapping[str, Mapping[str, object]]) -> Tree[TaskReport]:
    def known(leaf: Leaf[None]) -> TaskReport:
        return leaf_from_flat(leaf.name, rows[leaf.name]).value if leaf.name in rows else TaskReport(name=leaf.name)

    return map_leaves(known, tree)


def group_report(tree: Group[None], rows: Mapping[str, Mapping[str, object]], tables: Tables = EVALCORE) -> GroupReport:
    return next(one for one in report_groups(place(tree, rows), tables=tables) if one.name == tree.name)


def group_value(
    tree: Group[None], rows: Mapping[str, Mapping[str, object]], tables: Tables = EVALCORE, key: MetricKey = ACC
) -> Estimate:
    found = group_report(tree, rows, tables).get(key)
    assert found is not None
    return found


def tree(*children: str | Group[None], **spec: object) -> Group[None]:
    nodes = tuple(Leaf(child, None) if isinstance(child, str) else child for child in children)
    return Group("g", nodes, (GroupMetric("acc", **spec),))


def lm_aggregate(leaves: Sequence[str], rows: Mapping[str, Mapping[str, object]], **spec: object) -> dict[str, object]:
    """lm-eval's own aggregation, told which leaves it finds (in its own order, doubles included)."""

    class Known(LmGroup):
        def get_all_tasks(self, recursive: bool = True) -> list[object]:
            return [type("Task", (), {"task_name": name}) for name in leaves]

    group = Known("g", aggregate_metric_list=[AggMetricConfig(**{"metric": "acc", **spec})])
    return dict(group.aggregate({name: dict(row) for name, row in rows.items()}))


def generation(
    pairs: Sequence[tuple[object, object]], metrics: Sequence[dict[str, object]], *, repeats: int = 1, **more: object
) -> Case:
    """(target, reply or replies) of each document."""
    rows = [{"question": "q", "target": target} for target, _ in pairs]
    replies = {(i, 0): said if isinstance(said, list) else [said] for i, (_, said) in enumerate(pairs)}
    return Case("gen", "generate_until", rows, replies, metrics, repeats=repeats, **more)


def choice(rows: Sequence[tuple[object, Sequence[float]]], metrics: Sequence[str]) -> Case:
    """(gold, log-likelihoods) of each document."""
    docs = [{"question": "q", "choices": [f"c{k}" for k in range(4)][:4], "target": gold} for gold, _ in rows]
    replies = {(i, k): [(ll, False)] for i, (_, lls) in enumerate(rows) for k, ll in enumerate(lls)}
    return Case("mc", "multiple_choice", docs, replies, [{"metric": name} for name in metrics])


def values(case: Case, key: str) -> tuple[object, object, object]:
    """lm-eval's number, ours under its policy, ours."""
    theirs = run_lm_eval(case)["results"][case.name][key]
    policy, right = (run_evalcore(case, tables=tables)["results"][case.name][key] for tables in POLICIES)
    return theirs, policy, right


def errata_of(case: Case, key: MetricKey) -> tuple[str, ...]:
    found = our_report(case, EVALCORE).get(key)
    assert found is not None
    return found.errata


def scored(
    repeats: Sequence[Sequence[str]],
    golds: Sequence[str],
    reducers: tuple[str, ...],
    *,
    ragged: bool = False,
    **more: object,
) -> TaskReport:
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", reducers=reducers),), ragged=ragged, **more)
    answers = [Answer(Instance("t", i, 0, Generate("?"), len(one)), tuple(one)) for i, one in enumerate(repeats)]
    samples = [Sample(i, gold=gold) for i, gold in enumerate(golds)]
    return report_task(score_task(task, samples, answers))


# --- E01-E26: lm-eval ---------------------------------------------------------------------------------------


def test_E01_median_of_an_even_number() -> None:
    items = [1.0, 2.0, 3.0, 4.0]
    assert lm.median(items) == close("median", items, LM_EVAL_0_4_13).value == 3
    assert close("median", items).value == 2.5
    assert close("median", [9.0, 1.0, 2.0]).value == 2  # lmms does not sort: 1
    case = generation(
        [("a", "aa"), ("b", "b")],
        [{"metric": "m", "aggregation": "median", "higher_is_better": True}],
        process_results=lambda doc, results: {"m": len(results[0])},
    )
    assert values(case, "m,none") == (2, 2, 1.5)
    assert "E01" in errata_of(case, MetricKey("m"))


def test_E02_bypass_is_no_score() -> None:
    case = generation([("a", "a"), ("b", "x")], [{"metric": "bypass"}])
    assert values(case, "bypass,none") == (999, 999, "N/A")
    assert our_report(case, EVALCORE).get(MetricKey("bypass")).value is None
    assert "E02" in errata_of(case, MetricKey("bypass"))


def questions() -> list[tuple[bool, dict[str, object]]]:
    """200 questions, 170 answered right; numbers 0-4 in 40 paragraphs, so every number has a wrong one."""
    wrong = {(p, q) for p in range(6) for q in range(5)}
    return [
        ((p, q) not in wrong, {"idx": {"paragraph": p, "question": q}, "label": 1}) for p in range(40) for q in range(5)
    ]


def test_E03_acc_all_and_its_error_group_alike() -> None:
    items = questions()
    policy, right = (close("acc_all", items, tables) for tables in POLICIES)
    assert (lm.acc_all(items), lm.acc_all_stderr(items)) == (policy.value, policy.stderr) == (0.85, 0.0)
    assert right.value == 0.85
    assert right.stderr == pytest.approx(0.0253, abs=5e-5)
    assert right.n == 200


def test_E04_a_callable_group_aggregation_is_called() -> None:
    rows = {"a": flat(1.0), "b": flat(0.0)}

    def answer(values: Sequence[float], sizes: Sequence[float]) -> float:
        return 42.0

    assert lm_aggregate("ab", rows, aggregation=answer)["acc,none"] == 0.5
    assert group_value(tree("a", "b", aggregation=answer), rows, LM_EVAL_0_4_13).value == 0.5
    right = group_value(tree("a", "b", aggregation=answer), rows)
    assert right.value == 42.0
    assert "E04" in right.errata
    sizes = group_value(tree("a", "b", aggregation=lambda values, sizes: sum(sizes)), rows)
    assert sizes.value == 20.0


def test_E05_a_leaf_reached_twice_counts_once() -> None:
    rows = {"a": flat(1.0), "b": flat(0.0)}
    given = tree("a", Group("h", (Leaf("a", None), Leaf("b", None))))
    theirs = lm_aggregate("aab", rows)
    policy, right = (group_value(given, rows, tables) for tables in POLICIES)
    assert theirs["acc,none"] == policy.value == pytest.approx(2 / 3)
    assert theirs["sample_count"] == {"acc,none": 30}
    assert policy.n == 30
    assert (right.value, right.n) == (0.5, 20)
    assert "E05" in right.errata


def test_E06_average_over_leaves_or_over_children() -> None:
    rows = {"a": flat(1.0), "b": flat(0.5), "c": flat(0.0)}
    inner = Group("h", (Leaf("a", None), Leaf("b", None))), Group("i", (Leaf("c", None),))
    assert lm_aggregate("abc", rows)["acc,none"] == group_value(tree(*inner), rows).value == 0.5
    assert group_value(tree(*inner, average="children", weight_by_size=False), rows).value == 0.375


def test_E07_a_missing_task_is_told() -> None:
    rows = {"a": flat(1.0)}
    assert lm_aggregate("ab", rows)["acc,none"] == group_value(tree("a", "b"), rows, LM_EVAL_0_4_13).value == 1.0
    right = group_value(tree("a", "b"), rows)
    assert right.group.missing == ("b",)
    assert "E07" in right.errata
    with pytest.raises(EvalError, match="acc,none is missing in 1/2 tasks: b"):
        group_report(tree("a", "b", missing="fail"), rows)


def perplexing(name: str, value: float) -> Case:
    rows = [{"question": "q", "target": "t"}] * 5
    return Case(
        name, "loglikelihood", rows, {(i, 0): [(-log(value), True)] for i in range(5)}, [{"metric": "perplexity"}]
    )


def test_E08_perplexities_average_on_the_log_scale() -> None:
    cases, metrics = [perplexing("a", 10.0), perplexing("b", 1000.0)], [{"metric": "perplexity"}]
    theirs = run_lm_eval(*cases, groups={"g": lm_group("g", ["a", "b"], metrics)}, draws=10)
    given = our_group("g", ["a", "b"], metrics)
    policy, right = (run_evalcore(*cases, trees=[given], tables=t, draws=10)["groups"]["g"] for t in POLICIES)
    assert theirs["groups"]["g"]["perplexity,none"] == pytest.approx(505)
    assert policy["perplexity,none"] == pytest.approx(505)
    assert right["perplexity,none"] == pytest.approx(100)
    report = build_report([our_report(case, EVALCORE) for case in cases], [given])
    assert "E08" in report.group("g").get(MetricKey("perplexity")).errata


def test_E08_other_statistics_are_refused_unless_a_rule_is_declared() -> None:
    cases = [
        Case(
            **{
                **choice(
                    [(g, [-float(k != s) for k in range(4)]) for g, s in [(0, 0), (1, 0), (1, 1)]], ["mcc"]
                ).__dict__,
                "name": name,
            }
        )
        for name in "ab"
    ]
    reports = [our_report(case, EVALCORE) for case in cases]
    refused = build_report(reports, [our_group("g", ["a", "b"], [{"metric": "mcc"}])]).group("g").get(MetricKey("mcc"))
    assert refused.value is None
    assert "declare aggregation: macro" in refused.reason
    for rule in ("macro", "pool"):
        made = build_report(reports, [our_group("g", ["a", "b"], [{"metric": "mcc", "aggregation": rule}])])
        assert made.group("g").get(MetricKey("mcc")).value == pytest.approx(0.5)


def test_E09_every_metric_weighs_by_its_own_count() -> None:
    def emits(often: int, score: float):  # type: ignore[no-untyped-def]
        return lambda doc, results: {"all": 1.0, **({"m": score} if int(doc["target"]) < often else {})}

    metrics = [{"metric": name, "aggregation": "mean", "higher_is_better": True} for name in ("all", "m")]
    cases = [
        Case(
            **{
                **generation([(str(i), "x") for i in range(10)], metrics, process_results=emits(often, score)).__dict__,
                "name": name,
            }
        )
        for name, often, score in [("a", 2, 1.0), ("b", 10, 0.0)]
    ]
    theirs = run_lm_eval(*cases, groups={"g": lm_group("g", ["a", "b"], [{"metric": "m"}])})["groups"]["g"]
    given = our_group("g", ["a", "b"], [{"metric": "m"}])
    policy, right = (run_evalcore(*cases, trees=[given], tables=tables)["groups"]["g"] for tables in POLICIES)
    assert theirs["m,none"] == policy["m,none"] == 0.5
    assert right["m,none"] == pytest.approx(2 / 12)
    report = build_report([our_report(case, EVALCORE) for case in cases], [given])
    assert "E09" in report.group("g").get(MetricKey("m")).errata


def f1(references: list[str], predictions: list[str]) -> float:
    """A callable metric for lm-eval: F1 of words."""
    gold, said = set(references[0].split()), set(predictions[0].split())
    return 2 * len(gold & said) / (len(gold) + len(said))


GOLDS = (["one", "nine"], "one two three four five")


def test_E10_the_best_of_several_golds() -> None:
    theirs = run_lm_eval(generation([GOLDS], [{"metric": f1, "aggregation": "mean", "higher_is_better": True}]))
    ours = generation([GOLDS], [{"metric": "f1", "higher_is_better": True}])
    policy, right = (run_evalcore(ours, tables=tables)["results"]["gen"]["f1,none"] for tables in POLICIES)
    assert theirs["results"]["gen"]["f1,none"] == policy == 1.0
    assert right == pytest.approx(1 / 3)


def test_E11_metrics_do_not_change_the_prediction() -> None:
    seen: list[object] = []

    def look(references: list[str], predictions: list[object]) -> float:
        seen.append(predictions[0])
        return 1.0

    run_lm_eval(
        generation(
            [GOLDS], [{"metric": "exact_match"}, {"metric": look, "aggregation": "mean", "higher_is_better": True}]
        )
    )
    assert seen[0] == [GOLDS[1], GOLDS[1]]

    def spy(batch: object, given: object) -> Floats:
        seen.append(batch.predictions[0])  # type: ignore[attr-defined]
        return Floats(Array([1.0]))

    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match"), MetricSpec("look", function=Metric(spy))))
    answer = Answer(Instance("t", 0, 0, Generate("?")), (GOLDS[1],))
    for tables, expected in zip(POLICIES, ([GOLDS[1], GOLDS[1]], GOLDS[1]), strict=True):
        seen.clear()
        score_task(task, [Sample(0, gold=tuple(GOLDS[0]))], [answer], tables=tables)
        assert seen == [expected]


def test_E12_unreduced_repeats_need_a_reducer() -> None:
    chain = [{"name": "all", "filter": [{"function": "lowercase"}]}]
    case = generation([("a", ["a", "b"]), ("c", ["c", "c"])], [{"metric": "exact_match"}], repeats=2, filters=chain)
    theirs = run_lm_eval(case)["results"]["gen"]["exact_match,all"]
    assert theirs == run_evalcore(case)["results"]["gen"]["exact_match,all"] == 0.75
    with pytest.raises(EvalError, match="expected one reply per document or a reducer, got 2"):
        run_evalcore(case, tables=EVALCORE)
    assert (
        scored([["a", "b"], ["c", "c"]], ["a", "c"], ("mean",), filters=(Pipeline("all"),))
        .get(MetricKey("exact_match", "all"))
        .value
        == 0.75
    )


def test_E13_numpy_strings() -> None:
    nul = generation([("abc", "abc\0")], [{"metric": "exact_match"}])
    assert values(nul, "exact_match,none") == (1, 1, 0)
    dots = generation([("...", "!!!")], [{"metric": "exact_match", "ignore_punctuation": True}])
    assert values(dots, "exact_match,none") == (1, 1, 0)


def test_E14_mutual_information_with_several_golds() -> None:
    case = choice([([0, 1], [-1.0, -2.0, -3.0, -4.0, -9.0, -9.0, -9.0, -9.0])], ["acc_mutual_info"])
    with pytest.raises(ValueError, match="truth value"):
        run_lm_eval(case)
    for tables in POLICIES:  # a crash is not reproduced
        assert run_evalcore(case, tables=tables)["results"]["mc"]["acc_mutual_info,none"] == 1.0


def test_E15_likelihood() -> None:
    case = choice([(0, [-1.0, -2.0, -3.0, -4.0]), (1, [-1.0, -2.0, -3.0, -4.0])], ["likelihood"])
    with pytest.raises(TypeError):
        run_lm_eval(case)
    assert run_evalcore(case, tables=EVALCORE)["results"]["mc"]["likelihood,none"] == -1.5


def test_E16_f1_of_three_classes() -> None:
    golds, said = [0, 1, 2, 2], [0, 2, 2, 1]
    case = choice([(g, [float(k == s) for k in range(4)]) for g, s in zip(golds, said, strict=True)], ["f1"])
    with pytest.raises(ValueError, match="average"):
        run_lm_eval(case)
    with pytest.raises(EvalError, match="average: macro, micro or weighted"):
        our_report(case, EVALCORE)
    for average in ("macro", "micro", "weighted"):
        sklearn = pytest.importorskip("sklearn.metrics")
        pairs = list(zip(golds, said, strict=True))
        expected = sklearn.f1_score(golds, said, average=average)
        assert close("f1", pairs, average=average).value == pytest.approx(expected)


def test_E17_as_many_draws_as_asked() -> None:
    items = np.random.default_rng(0).normal(size=31).tolist()
    theirs = [quiet(lm.bootstrap_stderr, lm.median, items, draws) for draws in (1000, 1999)]
    assert theirs[0] == theirs[1]
    policy = [close("median", items, LM_EVAL_0_4_13, draws).stderr for draws in (1000, 1999)]
    assert policy[0] == policy[1]
    rows = build_column(range(31), Floats(Array(np.array(items))))
    ours = aggregate_metric(from_callable(max), rows, inference=Inference(resampling=Resampling(1999)))
    assert "draws=1999" in ours.signature


def test_E18_bootstrap_is_corrected() -> None:
    items = [-1.0, -2.0, -4.0, -5.0]
    right = close("nanmean", items)
    policy = close("nanmean", items, LM_EVAL_0_4_13, draws=40_000)
    assert right.stderr == pytest.approx(np.std(items, ddof=1) / 2, rel=1e-12)
    assert policy.stderr == pytest.approx(right.stderr * sqrt(3 / 4), rel=0.02)
    rows = build_column(range(4), Floats(Array(np.array(items))))
    ours = aggregate_metric(from_callable(statistics.fmean), rows, inference=Inference(resampling=Resampling(40_000)))
    assert ours.stderr == pytest.approx(right.stderr, rel=0.02)
    assert "E18" in errata_of(perplexing("a", 10.0), MetricKey("perplexity"))


def test_E18_replayed_exactly() -> None:
    items = [-1.0, -2.0, -4.0, -5.0]
    theirs = quiet(lm.bootstrap_stderr, lm.nanmean, items, 2000)
    assert close("nanmean", items, LM_EVAL_0_4_13, draws=2000).stderr == pytest.approx(theirs, rel=1e-12)


VOTES = ["x", "so 4", "y", "z", "it is 4"]
VOTE = Pipeline("maj", (Step.of("regex", regex_pattern="([0-9]+)"), Step.of("majority_vote")))


def test_E19_a_fallback_cannot_win_the_vote() -> None:
    picked = list(get_filter("regex")(regex_pattern="([0-9]+)").apply([VOTES], [{}]))
    assert list(get_filter("majority_vote")().apply(picked, [{}])) == [["[invalid]"]]
    assert trace_filters(VOTE, VOTES, Sample(0), LM_EVAL_0_4_13.filters)[-1].replies == ("[invalid]",)
    assert trace_filters(VOTE, VOTES, Sample(0))[-1].replies == ("4",)
    for order in (["b", "a"], ["a", "b"]):  # a tie by a declared rule
        tie = Pipeline("tie", (Step.of("majority_vote", ties="smallest"),))
        assert trace_filters(tie, order, Sample(0))[-1].replies == ("a",)
    filters = [{"name": "maj", "filter": [{"function": "majority_vote"}, {"function": "take_first"}]}]
    case = generation([("4", ["4", "4", "5"])], [{"metric": "exact_match"}], repeats=3, filters=filters)
    assert "E19" in errata_of(case, MetricKey("exact_match", "maj"))


def test_E20_group_select_beyond_the_matches() -> None:
    with pytest.raises(IndexError):
        list(get_filter("regex")(regex_pattern="([0-9]+)", group_select=3).apply([["4 5"]], [{}]))
    select = Pipeline("p", (Step.of("regex", regex_pattern="([0-9]+)", group_select=3),))
    for tables in POLICIES:
        assert trace_filters(select, ["4 5"], Sample(0), tables.filters)[-1].replies == ("[invalid]",)


def test_E21_words() -> None:
    case = Case(
        "wiki",
        "loglikelihood_rolling",
        [{"question": "", "target": " a b "}],
        {(0, 0): [-8.0]},
        [{"metric": "word_perplexity"}],
    )
    theirs, policy, right = values(case, "word_perplexity,none")
    assert theirs == policy == pytest.approx(math.exp(8 / 4))
    assert right == pytest.approx(math.exp(8 / 2))
    assert "E21" in errata_of(case, MetricKey("word_perplexity"))


def test_E22_all_right_is_not_certain() -> None:
    case = generation([("a", "a")] * 20, [{"metric": "exact_match"}])
    assert values(case, "exact_match_stderr,none") == (0.0, 0.0, 0.0)
    right = our_report(case, EVALCORE).get(MetricKey("exact_match"))
    low, high = right.ci
    assert 0.8 < low < 0.9
    assert high == 1.0
    assert "E22" in right.errata


def test_E23_stratified_group_error() -> None:
    rows = {"a": flat(0.5, 2, 0.5), "b": flat(0.9, 50, 0.04)}
    theirs = lm_aggregate("ab", rows)["acc_stderr,none"]
    policy, right = (group_value(tree("a", "b"), rows, tables) for tables in POLICIES)
    assert policy.stderr == pytest.approx(theirs, rel=1e-12)
    assert right.stderr == pytest.approx(math.hypot(2 * 0.5, 50 * 0.04) / 52, rel=1e-12)
    assert not isclose(right.stderr, theirs, rel_tol=0.02)
    assert "E23" in right.errata


def test_E24_no_error_is_null_with_a_reason() -> None:
    case = Case(
        "wiki",
        "loglikelihood_rolling",
        [{"question": "", "target": t} for t in ("a b", "c")],
        {(0, 0): [-8.0], (1, 0): [-2.0]},
        [{"metric": "byte_perplexity"}],
    )
    theirs, policy, right = values(case, "byte_perplexity_stderr,none")
    assert theirs == policy == "N/A"
    assert isinstance(right, float)
    assert "E24" in errata_of(case, MetricKey("byte_perplexity"))
    alone = our_report(generation([("a", "a")], [{"metric": "exact_match"}]), EVALCORE).get(MetricKey("exact_match"))
    assert alone.stderr is None
    assert alone.reason == "needs two documents, got 1"


def test_E25_runs_on_the_same_documents_are_paired() -> None:
    rng = np.random.default_rng(1)
    hard = rng.random(400)
    a, b = (hard < 0.70).astype(float), (hard < 0.66).astype(float)
    exact = paired_binary(a, b)
    unpaired = math.hypot(a.std(ddof=1), b.std(ddof=1)) / 20
    assert abs(a.mean() - b.mean()) / unpaired < 1.96  # lm-eval's script sees nothing
    assert exact.p_value < 0.001
    assert exact.difference == pytest.approx(a.mean() - b.mean())
    with pytest.raises(EvalError, match="same documents"):
        match_keys([0, 1, 2], [0, 1, 3])


def test_E26_a_limit_is_resolved_per_task() -> None:
    from lm_eval.evaluator_utils import get_sample_size

    class Docs:
        def __init__(self, n: int) -> None:
            self.eval_docs = range(n)

    assert [get_sample_size(Docs(n), 0.5) for n in (10, 101)] == [5, 51]
    select = select_docs
    assert list(select(10, 3)) == [0, 1, 2]
    assert [len(list(select(n, 0.5))) for n in (10, 101)] == [5, 51]
    drawn = list(select(100, 10, seed=7))
    assert drawn == list(select(100, 10, seed=7)) == sorted(set(drawn))
    assert drawn != list(range(10))


# --- E27-E29: lm-eval's unreleased scorers ------------------------------------------------------------------


def test_E27_ragged_repeats_have_one_set_of_keys() -> None:
    report = scored(
        [["a", "a", "x"], ["b"], ["c", "x", "x", "x"]],
        ["a", "b", "c"],
        ("mean", "pass@1"),
        ragged=True,
        filters=(Pipeline("none"),),
    )
    assert [str(key) for key, _ in report.estimates] == ["exact_match@mean,none", "exact_match@pass@1,none"]
    for _, estimate in report.estimates:
        assert estimate.n == 3
        assert estimate.value == pytest.approx((2 / 3 + 1 + 1 / 4) / 3)
        assert "repeats:1-4" in estimate.signature
    assert report.sample_len == 3


def test_E28_pass_at_5_of_one_reply_is_undefined() -> None:
    report = scored([["x"], ["a"] * 5], ["a", "a"], ("pass@5",), ragged=True, filters=(Pipeline("none"),))
    found = report.get(MetricKey("exact_match"))
    assert (found.value, found.n, found.counts.unscorable) == (1.0, 1, 1)


def test_E29_a_pass_is_1_unless_a_threshold_says_otherwise() -> None:
    low = [build_column([0], Floats(Array([0.01])))]
    assert list_outcomes(reduce_repeats("pass@1", low))[0][1].score == 0.0
    assert list_outcomes(reduce_repeats("pass@1,0.01", low))[0][1].score == 1.0


# --- E30-E34: lmms-eval -------------------------------------------------------------------------------------


def test_E30_groups_match_metric_and_filter_exactly() -> None:
    rows = {"a": {"acc,strict": 0.5, "acc,loose": 1.0, "acc_norm,strict": 0.9, "sample_len": 4}}
    report = group_report(tree("a", filters=("strict",)), rows)
    assert [(str(key), estimate.value) for key, estimate in report.estimates] == [("acc,strict", 0.5)]


def test_E31_documents_without_a_cluster() -> None:
    values = np.random.default_rng(3).integers(0, 2, 20).astype(float)
    samples = [Sample(i, gold="1", cluster="p" if i < 4 else None) for i in range(20)]
    with pytest.raises(EvalError, match="expected a cluster id for every document, 16 have none"):
        clusters_of("t", samples)
    codes = cluster_codes([one.cluster for one in samples], singletons=True, task="t")
    assert len(set(codes.tolist())) == 17
    rows = build_column(range(20), Floats(Array(values)))
    found = aggregate_metric(AGGREGATIONS["mean"], rows, clusters=codes).stderr
    giant = aggregate_metric(AGGREGATIONS["mean"], rows, clusters=np.array([0] * 4 + [1] * 16)).stderr
    residual = values - values.mean()
    sums = np.array([residual[:4].sum(), *residual[4:]])
    shares = np.array([4, *[1] * 16]) / 20
    assert found == pytest.approx(sqrt(np.sum(sums**2 / (1 - shares))) / 20, rel=1e-12)
    assert not isclose(found, giant, rel_tol=0.05)


def test_E32_votes_are_on_answers() -> None:
    report = scored([["4", "4", "5", "6"], ["7", "8", "9", "9"]], ["4", "7"], ("maj@4",), filters=(Pipeline("none"),))
    found = report.get(MetricKey("exact_match"))
    assert found.value == 0.5  # on scores, 2 : 2 is a tie and wrong
    assert found.n == 2
    short = scored([["4"] * 4, ["7"]], ["4", "7"], ("maj@4",), ragged=True, filters=(Pipeline("none"),)).get(
        MetricKey("exact_match")
    )
    assert (short.value, short.n, short.counts.unscorable) == (1.0, 1, 1)


def test_E33_directions_stay_in_their_group() -> None:
    def task(name: str, higher: bool) -> TaskReport:
        return TaskReport(
            name=name, estimates=((MetricKey("m"), Estimate(value=0.5, n=1, scale=Scale(higher_is_better=higher))),)
        )

    groups = [Group("mixed", (Leaf("up", None), Leaf("down", None))), Group("clear", (Leaf("down", None),))]
    report = build_report([task("up", True), task("down", False)], groups)
    found = lm_eval_results(report)["higher_is_better"]
    assert found["mixed"] == {"m": None}
    assert found["clear"] == {"m": False}


def test_E34_numpy_scores_count() -> None:
    metrics = [{"metric": "m", "aggregation": "mean", "higher_is_better": True}]
    scores = [np.float32(0.5), np.float64(1.0), 1, True, np.int64(0), np.bool_(True)]
    case = generation(
        [(str(i), "x") for i in range(6)],
        metrics,
        process_results=lambda doc, results: {"m": scores[int(doc["target"])]},
    )
    found = our_report(case, EVALCORE).get(MetricKey("m"))
    assert found.n == 6
    assert found.stderr == pytest.approx(np.std([0.5, 1, 1, 1, 0, 1], ddof=1) / sqrt(6), rel=1e-12)


# --- E35-E45: other peers -----------------------------------------------------------------------------------


def test_E35_bootstrap_is_a_standard_deviation() -> None:
    bits = Floats(Array(np.array([0.0, 1.0] * 50)))
    inference = Inference(resampling=Resampling(1000))
    drawn = aggregate_metric(from_callable(statistics.fmean), build_column(range(100), bits), inference=inference)
    assert drawn.stderr == pytest.approx(0.0503, rel=0.08)
    assert aggregate_metric(AGGREGATIONS["mean"], build_column(range(100), bits)).stderr == pytest.approx(
        0.0503, abs=5e-5
    )


def test_E36_references_are_turned_the_right_way() -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    said = ["the cat sat on a mat", "a dog ran"]
    golds = [["x y z", "the cat sat on the mat"], ["the dog ran away", "w"]]
    streams = list(zip(*golds, strict=True))
    items = list(zip(golds, said, strict=True))
    assert close("chrf", items).value == pytest.approx(sacrebleu.corpus_chrf(said, streams).score, rel=1e-12)
    assert close("ter", items).value == pytest.approx(sacrebleu.corpus_ter(said, streams).score, rel=1e-12)
    assert close("chrf", items).value != pytest.approx(sacrebleu.corpus_chrf(said, golds).score, rel=1e-3)


def test_E37_group_error_is_no_mean_of_errors() -> None:
    names = [f"t{i}" for i in range(57)]
    rows = {name: flat(0.5, 100, 0.02) for name in names}
    for spec in ({}, {"weight_by_size": False}):
        assert group_value(tree(*names, **spec), rows).stderr == pytest.approx(0.00265, abs=5e-6)


def test_E38_too_few_documents_have_no_error() -> None:
    scorer = pytest.importorskip("inspect_ai.scorer")
    one = [scorer.SampleScore(score=scorer.Score(value=1.0))]
    assert scorer.stderr()(one) == 0
    found = close("mean", [1.0])
    assert (found.value, found.stderr) == (1.0, None)
    empty = close("mean", [])
    assert (empty.value, empty.stderr) == (None, None)
    assert "cannot score empty instances" in empty.reason


def test_E39_the_seed_is_an_argument() -> None:
    rows = build_column(range(50), Floats(Array(np.random.default_rng(5).random(50))))

    def drawn(seed: int) -> float | None:
        return aggregate_metric(
            from_callable(statistics.fmean), rows, inference=Inference(resampling=Resampling(200, seed))
        ).stderr

    before = np.random.get_state()[1].tolist()
    assert drawn(1) == drawn(1) != drawn(2)
    assert np.random.get_state()[1].tolist() == before


def test_E40_variances_do_not_cancel() -> None:
    far = [1e9, 1e9 + 1, 1e9 + 2]
    repeats = [build_column([0], Floats(Array([x]))) for x in far]
    assert sqrt(list_outcomes(reduce_repeats("variance", repeats))[0][1].score) == pytest.approx(0.816496580927726)
    assert close("mean", far).stderr == pytest.approx(1 / sqrt(3))


def test_E41_inputs_never_change() -> None:
    pairs = np.array([[1, 1], [1, 0], [0, 0], [1, 1], [0, 1]])
    rows = build_column(range(5), Labels(Array(pairs)))
    before = pairs.copy()
    f1s = [aggregate_metric(AGGREGATIONS["f1"], rows).value]
    aggregate_metric(AGGREGATIONS["matthews_corrcoef"], rows)
    f1s.append(aggregate_metric(AGGREGATIONS["f1"], rows).value)
    assert f1s[0] == f1s[1]
    assert (pairs == before).all()
    with pytest.raises(ValueError, match="read-only"):
        rows.rows.values.data[0] = 9


def harmonic(values: Sequence[float], sizes: Sequence[float]) -> float:
    return statistics.harmonic_mean(values)


def test_E42_the_harmonic_mean_of_a_zero_is_zero() -> None:
    rows = {"a": flat(0.0), "b": flat(0.8), "c": flat(0.9)}
    assert group_value(tree("a", "b", "c", aggregation=harmonic), rows).value == 0.0


def test_E43_nothing_to_check_is_no_score() -> None:
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match"),))
    answer = Answer(Instance("t", 0, 0, Generate("?")), ("4",))
    found = list_outcomes(score_task(task, [Sample(0)], [answer]).column("exact_match,none"))[0][1]
    assert isinstance(found, Unscorable)
    nine = [build_column([0], Floats(Array([float(i < 9)]))) for i in range(10)]
    assert list_outcomes(reduce_repeats("pass^3", nine))[0][1].score == pytest.approx(0.7)
    assert REDUCERS["first"](Repeats(np.array([[nan, 1.0]]))).tolist() == [1.0]


def test_E44_duplicate_names_are_located() -> None:
    import yaml

    assert yaml.safe_load("task: a\ntask: b") == {"task": "b"}  # what lm-eval builds upon
    twice = [{"task": "a", "path": "one.yaml"}, {"task": "a", "path": "two.yaml"}]
    with pytest.raises(EvalError, match=r"task 'a' is already defined in one\.yaml - at two\.yaml"):
        build_trees(twice)
    (problem,) = plan_trees(twice).problems
    assert (problem.kind, problem.where) == ("duplicate_name", "two.yaml")


def test_E44_duplicate_keys_are_located() -> None:
    from evalcore.shell.config.yaml_file import read_yaml

    with pytest.raises(EvalError, match=r"one\.yaml:2: the key 'task' is given twice, first on line 1"):
        read_yaml("task: a\ntask: b", "one.yaml")
    shipped = read_yaml("task: a\ntask: b", "one.yaml", duplicates="warn")
    assert (shipped.value, len(shipped.warnings)) == ({"task": "b"}, 1)


def test_E45_answers_are_kept_by_model_request_options_and_repeat() -> None:
    key = request_key
    ask = Generate("2+2=")
    base = key("m1", ask, freeze_options(temperature=1.0), 0)
    assert base == key("m1", Generate("2+2="), freeze_options(temperature=1.0), 0)
    others = [
        key("m2", ask, freeze_options(temperature=1.0), 0),
        key("m1", Generate("2+3="), freeze_options(temperature=1.0), 0),
        key("m1", LogLikelihood("2+2=", ""), freeze_options(temperature=1.0), 0),
        key("m1", ask, freeze_options(temperature=0.0), 0),
        key("m1", ask, freeze_options(temperature=1.0), 1),
    ]
    assert len({base, *others}) == 6


# --- what a run says of itself ------------------------------------------------------------------------------


def test_a_plain_number_names_no_erratum() -> None:
    case = generation([("a", "a"), ("b", "x")], [{"metric": "exact_match"}])
    assert errata_of(case, MetricKey("exact_match")) == ()
    rows = {"a": flat(1.0), "b": flat(0.0)}
    assert group_value(tree("a", "b"), rows).errata == ()


def test_a_run_explains_the_errata_it_names() -> None:
    ours = run_evalcore(generation([("a", "a")] * 2, [{"metric": "exact_match"}]), tables=EVALCORE)
    assert ours["evalcore"]["errata"] == {"E22": ERRATA["E22"]}


def test_several_golds_name_their_erratum() -> None:
    case = generation([GOLDS, GOLDS], [{"metric": "f1", "higher_is_better": True}])
    assert "E10" in errata_of(case, MetricKey("f1"))


def test_acc_all_names_its_erratum() -> None:
    task = Task("t", MULTIPLE_CHOICE, (MetricSpec("acc_all"),))
    samples = [
        Sample(i, gold=0, choices=("a", "b"), doc=b'{"idx": {"paragraph": %d, "question": 0}}' % i) for i in range(4)
    ]
    answers = [
        Answer(Instance("t", i, k, LogLikelihood("q", "c")), ((-1.0 - k, False),)) for i in range(4) for k in range(2)
    ]
    found = report_task(score_task(task, samples, answers)).get(MetricKey("acc_all"))
    assert (found.value, found.n) == (1.0, 4)
    assert "E03" in found.errata
