"""BIG-Bench Hard answered by Codex: 54 published accuracies, families of tasks, and lm-eval's own pattern."""

from __future__ import annotations

import pytest
from recorded import STRIPPED, estimate, extract, report_texts

from evalcore import build_report
from evalcore.groups import Group, GroupMetric, Leaf

MODES = ("cot", "direct")

# Suzgun et al. 2022 (arXiv 2210.09261), table 2: the tasks without and with the mark of an algorithmic task.
NLP = (
    "causal_judgement",
    "date_understanding",
    "disambiguation_qa",
    "formal_fallacies",
    "hyperbaton",
    "movie_recommendation",
    "penguins_in_a_table",
    "reasoning_about_colored_objects",
    "ruin_names",
    "salient_translation_error_detection",
    "snarks",
    "sports_understanding",
)
ALGORITHMIC = (
    "boolean_expressions",
    "dyck_languages",
    "geometric_shapes",
    "logical_deduction",
    "multistep_arithmetic_two",
    "navigate",
    "object_counting",
    "temporal_sequences",
    "tracking_shuffled_objects",
    "web_of_lies",
    "word_sorting",
)
FAMILIES = {
    name: tuple(f"{name}_{count}_objects" for count in ("five", "seven", "three"))
    for name in ("logical_deduction", "tracking_shuffled_objects")
}
ANSWER = r"(?m)the answer is (.*?)\.?$"
LM_EVAL_ANSWER = r"(?<=the answer is )(.*)(?=.)"

EQUAL_CHILDREN = GroupMetric("exact_match", weight_by_size=False, average="children")
EQUAL_TASKS = GroupMetric("exact_match", weight_by_size=False)
BY_SIZE = GroupMetric("exact_match")


def node(name):
    if name in FAMILIES:
        return Group(name, tuple(Leaf(task, None) for task in FAMILIES[name]), (EQUAL_CHILDREN,))
    return Leaf(name, None)


def family(name, members):
    return Group(name, tuple(map(node, members)), (EQUAL_CHILDREN,))


TREES = (
    family("macro_23", NLP + ALGORITHMIC),
    Group("families", (family("nlp_12", NLP), family("algorithmic_11", ALGORITHMIC))),
    Group("macro_27", tuple(map(node, NLP + ALGORITHMIC)), (EQUAL_TASKS,)),
    Group("micro_6511", tuple(map(node, NLP + ALGORITHMIC)), (BY_SIZE,)),
)


@pytest.fixture(scope="module", params=MODES)
def run(request, recorded):
    """The report of one mode, and what is expected of it."""
    data, mode = recorded("bbh_codex"), request.param
    by_task: dict[str, list[dict]] = {}
    for row in data.rows:
        by_task.setdefault(row["task"], []).append(row)
    pipelines = {
        "cot": (extract("none", ANSWER), extract("get-answer", LM_EVAL_ANSWER)),
        "direct": (STRIPPED,),
    }[mode]
    tasks = [
        report_texts(name, rows, lambda row: row[f"prediction_{mode}"], lambda row: row["target"], pipelines)
        for name, rows in sorted(by_task.items())
    ]
    published = {
        name.partition("|")[2]: value
        for name, value in data.meta["published"]["accuracy"].items()
        if name.startswith(f"{mode}|")
    }
    return build_report(tasks, TREES), data.meta["expected"][mode], published, mode


def test_the_accuracy_of_every_task_is_the_published_one(run):
    report, expected, published, _ = run
    assert len(report.tasks) == len(published) == 27
    for task in report.tasks:
        found = estimate(task, "exact_match,none")
        assert found.value == expected["task_acc"][task.name], task.name
        assert 100 * found.value == pytest.approx(published[task.name], rel=1e-14), task.name
        assert (found.n, found.counts.scored) == (expected["task_n"][task.name],) * 2
        assert found.stderr == pytest.approx(expected["task_stderr"][task.name], rel=1e-13), task.name


def test_lm_evals_pattern_gives_its_own_accuracies(run):
    report, expected, _, mode = run
    # Direct answers have no "the answer is": there lm-eval's template takes the reply as it is.
    key = "exact_match,get-answer" if mode == "cot" else "exact_match,none"
    wanted = expected["task_acc_lmeval_get_answer_regex"]
    assert {task.name: estimate(task, key).value for task in report.tasks} == wanted


@pytest.mark.parametrize("name", ["macro_23", "macro_27", "micro_6511", "nlp_12", "algorithmic_11"])
def test_averages_over_families_tasks_and_documents(run, name):
    report, expected, _, _ = run
    found = estimate(report.group(name), "exact_match,none")
    assert found.value == pytest.approx(expected[name], rel=1e-14)
    assert found.stderr is not None
    assert not found.group.missing


def test_families_are_averaged_first(run):
    report, expected, _, _ = run
    assert len(expected["family_acc"]) == 23
    for name, value in expected["family_acc"].items():
        found = report.group(name) if name in FAMILIES else report.task(name)
        assert estimate(found, "exact_match,none").value == pytest.approx(value, rel=1e-14), name


def test_the_two_halves_make_the_whole(run):
    report, expected, _, _ = run
    halves = GroupMetric("exact_match", average="children", weights={"nlp_12": 12, "algorithmic_11": 11})
    tree = Group("bbh", (family("nlp_12", NLP), family("algorithmic_11", ALGORITHMIC)), (halves,))
    whole = estimate(build_report(report.tasks, [tree]).group("bbh"), "exact_match,none")
    direct = estimate(report.group("macro_23"), "exact_match,none")
    assert whole.value == pytest.approx(expected["macro_23"], rel=1e-14)
    assert whole.stderr == pytest.approx(direct.stderr, rel=1e-12)
