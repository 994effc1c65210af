"""Sample logs of four generations of lm-eval, scored again from the replies they logged."""

from __future__ import annotations

import ast
import json
import math
import re

import pytest
from recorded import STRIPPED, estimate, generated, likelihoods, read_lines, report_texts

from evalcore import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    MULTIPLE_CHOICE,
    MetricSpec,
    Pipeline,
    Sample,
    Task,
    build_report,
    report_task,
    score_task,
)
from evalcore.groups import Group, GroupMetric, Leaf
from evalcore.lm_eval import LM_EVAL_0_4_13, lm_eval_results

FIRST = Pipeline("none")


@pytest.fixture(scope="module")
def logs(recorded):
    data = recorded("lmeval_raw_logs")

    def lines(folder, part):
        (path,) = (data.folder / folder).glob(f"*{part}*.jsonl")
        return read_lines(path)

    return lines


@pytest.fixture(scope="module")
def expected(recorded):
    return recorded("lmeval_raw_logs").meta["expected"]


def choices(name, rows, gold, texts=lambda row: (), metrics=("acc",), output_type=MULTIPLE_CHOICE):
    """A report of logged likelihoods under lm-eval's tables."""
    task = Task(name, output_type, tuple(map(MetricSpec, metrics)))
    samples = [Sample(row["doc_id"], gold=gold(row), choices=tuple(texts(row))) for row in rows]
    answers = [one for row in rows for one in likelihoods(name, row["doc_id"], row["filtered_resps"])]
    return report_task(score_task(task, samples, answers, tables=LM_EVAL_0_4_13), tables=LM_EVAL_0_4_13)


def check(report, wanted):
    found = estimate(report, "acc,none")
    assert (found.value, found.n) == (wanted["acc"], wanted["n"])
    assert found.stderr == pytest.approx(wanted["acc_stderr"], rel=1e-15)


# --- 2023: no results file, bare likelihoods ------------------------------------------------------------------


def mathqa_choices(row):
    # lm-eval's tasks/mathqa/utils.py
    return [found[4:].rstrip(" ,") for found in re.findall(r"[abcd] \) .*?, |e \) .*?$", row["doc"]["options"])]


def test_2023_mathqa(logs, expected):
    rows, wanted = logs("bigrefactor_2023", "mathqa"), expected["2023_mathqa"]
    report = choices(
        "mathqa", rows, lambda row: "abcde".index(row["doc"]["correct"]), mathqa_choices, ("acc", "acc_norm")
    )
    check(report, wanted)
    assert estimate(report, "acc_norm,none").value == wanted["acc_norm"]


@pytest.mark.parametrize(
    ("name", "gold"),
    [
        ("pubmed_qa", lambda row: ("yes", "no", "maybe").index(row["target"])),
        ("qnli", lambda row: row["doc"]["label"]),
        ("winogrande", lambda row: int(row["doc"]["answer"]) - 1),
    ],
)
def test_2023_choices(logs, expected, name, gold):
    check(choices(name, logs("bigrefactor_2023", name), gold), expected[f"2023_{name}"])


def test_2023_boolq_as_logged_and_stripped(logs, expected):
    rows, wanted = logs("bigrefactor_2023", "boolq"), expected["2023_boolq-seq2seq"]
    for pipeline, value in (
        (FIRST, wanted["exact_match_logged"]),
        (STRIPPED, wanted["exact_match_after_strip"]),
    ):
        report = report_texts(
            "boolq", rows, lambda row: row["filtered_resps"][0], lambda row: row["target"], [pipeline]
        )
        found = estimate(report, "exact_match,none")
        assert (found.value, found.n) == (value, wanted["n"])


# --- 2024 and 2025 ---------------------------------------------------------------------------------------------


def test_2024_asdiv(logs, expected):
    rows = logs("asdiv_2024", "asdiv")
    check(choices("asdiv", rows, lambda row: row["target"], output_type=LOGLIKELIHOOD), expected["asdiv"])


def fullscale(doc, results):
    """calculate_score_fullscale of the log's own config, reading the reference as a literal."""
    reference = ast.literal_eval(doc["reference_answer_fullscale"])
    said = dict(re.findall(r"(\w+):\s+(\d+)", results[0]))
    wanted = {reference[f"emotion{i}"]: float(reference[f"emotion{i}_score"]) for i in range(1, 5)}
    if len(said) != 4 or len(set(said) & set(wanted)) != 4:
        return {"eqbench": 0, "percent_parseable": 0}
    gaps = [abs(float(said[emotion]) - score) for emotion, score in wanted.items()]
    scaled = [0 if gap == 0 else 6.5 / (1 + math.e ** (-1.2 * (gap - 4))) if gap <= 5 else gap for gap in gaps]
    return {"eqbench": 10 * (10 - sum(scaled) * 0.7477), "percent_parseable": 100}


@pytest.mark.parametrize("language", ["ca", "es"])
def test_2025_eqbench(logs, expected, language):
    name = f"eqbench_{language}"
    rows, wanted = logs("eqbench_2025", f"samples_{name}"), expected[name]
    metrics = (MetricSpec("eqbench"), MetricSpec("percent_parseable"))
    task = Task(name, GENERATE_UNTIL, metrics, process_results=fullscale)
    samples = [Sample(row["doc_id"], doc=json.dumps(row["doc"]).encode()) for row in rows]
    answers = [generated(name, row["doc_id"], row["filtered_resps"][0]) for row in rows]
    report = report_task(score_task(task, samples, answers, tables=LM_EVAL_0_4_13), tables=LM_EVAL_0_4_13)
    for metric in ("eqbench", "percent_parseable"):
        found = estimate(report, f"{metric},none")
        assert (found.value, found.n) == (wanted[metric], wanted["n"])
        assert found.stderr == wanted["published"][f"{metric}_stderr,none"]
        assert "E22" in found.errata


# --- 2026 ------------------------------------------------------------------------------------------------------


def test_2026_math_perturbed(logs, expected):
    rows, wanted = logs("math_perturbed_2026", "samples"), expected["math_perturbed"]
    report = report_texts("math", rows, lambda row: row["filtered_resps"][0], lambda row: row["target"], [FIRST])
    found = estimate(report, "exact_match,none")
    assert (found.value, found.n) == (wanted["logged"]["exact_match"], wanted["n"])


def test_2026_math_rephrased_from_its_counts(recorded, expected):
    data = recorded("lmeval_raw_logs")
    (path,) = (data.folder / "math_perturbed_2026").glob("results*.json")
    n = json.loads(path.read_text(encoding="utf-8"))["n-samples"]["math_rephrased_full"]["effective"]
    wanted = expected["math_perturbed"]["published"]["math_rephrased_full"]
    rows = [{"said": "1" if key < 2 else "0"} for key in range(n)]
    report = report_texts("math", rows, lambda row: row["said"], lambda row: "1", [FIRST], tables=LM_EVAL_0_4_13)
    found = estimate(report, "exact_match,none")
    assert found.value == wanted["exact_match,none"]
    assert found.stderr == pytest.approx(wanted["exact_match_stderr,none"], rel=1e-14)


def f1_of(pairs):
    hits, extra, lost = (sum(counts) for counts in zip(*pairs, strict=True))
    precision = hits / (hits + extra) if hits + extra else 0.0
    recall = hits / (hits + lost) if hits + lost else 0.0
    return 2.0 * precision * recall / (precision + recall) if precision + recall else 0.0


def micro_f1(items):
    return f1_of([(len(gold & said), len(said - gold), len(gold - said)) for gold, said in items])


def macro_f1(items):
    labels = sorted({label for gold, said in items for label in gold | said})
    each = [micro_f1([(gold & {label}, said & {label}) for gold, said in items]) for label in labels]
    return sum(each) / len(each) if each else 0.0


def logged_labels(doc, results):
    """The label sets that the task's own parser logged."""
    gold, said = (set(labels) for labels in doc["micro_f1"])
    return {"micro_f1": (gold, said), "macro_f1": (gold, said), "exact_match": float(gold == said)}


@pytest.fixture(scope="module")
def negotiation(logs):
    """The three tasks of the group, scored again under lm-eval's tables."""
    tasks = [
        choices(f"negotiationtom_{part}", logs("negotiationtom_2026", part), lambda row: int(row["target"]))
        for part in ("belief", "desire")
    ]
    rows, name = logs("negotiationtom_2026", "intention"), "negotiationtom_intention"
    metrics = (
        MetricSpec("micro_f1", aggregation=micro_f1),
        MetricSpec("macro_f1", aggregation=macro_f1),
        MetricSpec("exact_match", aggregation="mean"),
    )
    task = Task(name, GENERATE_UNTIL, metrics, process_results=logged_labels)
    samples = [Sample(row["doc_id"], doc=json.dumps(row).encode()) for row in rows]
    answers = [generated(name, row["doc_id"], row["filtered_resps"][0]) for row in rows]
    tasks.append(report_task(score_task(task, samples, answers, tables=LM_EVAL_0_4_13), tables=LM_EVAL_0_4_13))
    wanted = ("acc", "micro_f1", "macro_f1", "exact_match")
    tree = Group("negotiationtom", tuple(Leaf(task.name, None) for task in tasks), tuple(map(GroupMetric, wanted)))
    return build_report(tasks, [tree], tables=LM_EVAL_0_4_13)


@pytest.mark.parametrize("part", ["belief", "desire"])
def test_2026_negotiation_choices(negotiation, expected, part):
    check(negotiation.task(f"negotiationtom_{part}"), expected[f"negotiationtom_{part}"])


def test_2026_negotiation_labels(negotiation, expected):
    report, wanted = negotiation.task("negotiationtom_intention"), expected["negotiationtom_intention"]
    for metric in ("micro_f1", "macro_f1", "exact_match"):
        assert estimate(report, f"{metric},none").value == pytest.approx(
            wanted["published"][f"{metric},none"], rel=1e-15
        )
    exact = estimate(report, "exact_match,none")
    assert exact.stderr == pytest.approx(wanted["published"]["exact_match_stderr,none"], rel=1e-15)


def test_2026_negotiation_group(negotiation, expected):
    found, wanted = (
        estimate(negotiation.group("negotiationtom"), "acc,none"),
        expected["negotiationtom(group) acc"],
    )
    assert found.value == wanted["published"] == wanted["weighted_mean"]
    assert found.stderr == pytest.approx(wanted["published_stderr"], rel=1e-15)


def test_2026_negotiation_rows_are_lm_evals_own(negotiation, recorded):
    data = recorded("lmeval_raw_logs")
    (path,) = (data.folder / "negotiationtom_2026").glob("results*.json")
    logged = json.loads(path.read_text(encoding="utf-8"))
    made = lm_eval_results(negotiation)
    for name, row in logged["results"].items():
        assert set(made["results"][name]) == set(row), name
        for key, value in row.items():
            same = pytest.approx(value, rel=1e-14) if isinstance(value, float) else value
            assert made["results"][name][key] == same, (name, key)
    assert made["groups"].keys() == logged["groups"].keys()
    assert made["group_subtasks"] == logged["group_subtasks"]
