"""Whole tasks through lm_eval.evaluator.evaluate and through evalcore, `results` key by key."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("lm_eval")

from both_sides import (
    EVALCORE,
    LM_EVAL_0_4_13,
    Case,
    assert_same_results,
    assert_same_row,
    lm_group,
    our_group,
    run_evalcore,
    run_lm_eval,
    same_number,
)

from evalcore import Tables

RNG = np.random.default_rng
BOTH = pytest.mark.parametrize("tables", [LM_EVAL_0_4_13, EVALCORE], ids=lambda tables: tables.name)
pytestmark = pytest.mark.filterwarnings("ignore:A single label was found")
BITS = ("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match")
WORDS = [
    "4",
    "42",
    "Paris",
    "paris",
    "PARIS.",
    "the cat",
    "The Cat!",
    "1,000",
    "$5",
    "é",
    "ß",
    "İ",
    "",
    " ",
    "...",
    "no 7",
]


def metric(name: str, **options: object) -> dict[str, object]:
    return {"metric": name, **options}


def steps(name: str, *functions: str | dict[str, object]) -> dict[str, object]:
    return {"name": name, "filter": [{"function": f} if isinstance(f, str) else f for f in functions]}


# --- generation ---------------------------------------------------------------------------------------------


def generation(seed: int, n: int = 40, *, golds: int = 1, repeats: int = 1, **more: object) -> Case:
    rng = RNG(seed)
    target = [[str(w) for w in rng.choice(WORDS, golds)] if golds > 1 else str(rng.choice(WORDS)) for _ in range(n)]
    said = {(i, 0): [_said(rng, target[i]) for _ in range(repeats)] for i in range(n)}
    rows = [{"question": f"q{i}", "target": target[i]} for i in range(n)]
    more.setdefault("metrics", [metric("exact_match")])
    return Case("gen", "generate_until", rows, said, repeats=repeats, **more)


def _said(rng: np.random.Generator, target: object) -> str:
    golds = target if isinstance(target, list) else [target]
    text = str(rng.choice(golds)) if rng.random() < 0.6 else str(rng.choice(WORDS))
    return str(rng.choice(["", " ", "The answer is "])) + text if rng.random() < 0.3 else text


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_exact_match(tables: Tables, seed: int) -> None:
    case = generation(seed, n=[2, 40, 77][seed], config={"task_alias": "Gen", "num_fewshot": 0})
    assert_same_results(run_lm_eval(case), run_evalcore(case, tables=tables), exact=BITS)


@pytest.mark.parametrize("golds", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_exact_match_with_options(seed: int, golds: int) -> None:
    rng = RNG(seed)
    chosen = {
        "ignore_case": bool(rng.integers(2)),
        "ignore_punctuation": bool(rng.integers(2)),
        "ignore_numbers": bool(rng.integers(2)),
        **({"regexes_to_ignore": [",", r"\$", "(?s).*is "]} if seed % 2 else {}),
    }
    case = generation(
        seed, 120, golds=golds, metrics=[metric("exact_match", aggregation="mean", higher_is_better=True, **chosen)]
    )
    assert_same_results(run_lm_eval(case), run_evalcore(case), exact=BITS)


@pytest.mark.parametrize("golds", [1, 2])
def test_two_filters(golds: int) -> None:
    filters = [
        steps("strict", {"function": "regex", "regex_pattern": r"The answer is (.*)"}, "take_first"),
        steps("loose", "lowercase", "remove_whitespace", "take_first"),
    ]
    case = generation(11, 60, golds=golds, filters=filters)
    assert_same_results(run_lm_eval(case), run_evalcore(case), exact=BITS)
    assert_same_results(run_lm_eval(case), run_evalcore(case, tables=EVALCORE), exact=BITS)


def test_repeats_and_majority_vote() -> None:
    filters = [
        steps("first", "take_first"),
        steps("maj", "remove_whitespace", "majority_vote", "take_first"),
        steps("maj@3", {"function": "take_first_k", "k": 3}, "majority_vote", "take_first"),
        steps("picked", {"function": "regex", "regex_pattern": "([0-9]+)"}, "majority_vote", "take_first"),
    ]
    case = generation(12, 50, repeats=5, filters=filters)
    assert_same_results(run_lm_eval(case), run_evalcore(case), exact=BITS)


def test_repeats_without_a_filter_take_the_first() -> None:
    case = generation(13, 30, repeats=4)
    assert_same_results(run_lm_eval(case), run_evalcore(case), exact=BITS)


def test_unreduced_repeats_are_averaged() -> None:
    """E12: lm-eval compares the list element by element."""
    case = generation(14, 30, repeats=4, filters=[steps("all", "lowercase")])
    assert_same_results(run_lm_eval(case), run_evalcore(case))


def test_translation() -> None:
    rng = RNG(15)
    words = ["the", "a", "cat", "dog", "sat", "ran", "on", "mat", "quickly", "house"]
    target = [" ".join(rng.choice(words, rng.integers(4, 9))) for _ in range(30)]
    said = {(i, 0): [" ".join(w if rng.random() < 0.8 else "x" for w in t.split())] for i, t in enumerate(target)}
    rows = [{"question": "q", "target": t} for t in target]
    names = ("bleu", "chrf", "chrf++", "ter")
    case = Case("mt", "generate_until", rows, said, [metric(name) for name in names])
    theirs = run_lm_eval(case)
    assert_same_results(theirs, run_evalcore(case))
    ours = run_evalcore(case, tables=EVALCORE)["results"]["mt"]
    for name in names:
        assert same_number(theirs["results"]["mt"][f"{name},none"], ours[f"{name},none"])


# --- choices ------------------------------------------------------------------------------------------------

CHOICE_METRICS = [metric(name) for name in ("acc", "acc_norm", "acc_bytes", "exact_match", "mcc")]


def choices(
    seed: int,
    n: int = 60,
    *,
    options: int = 4,
    golds: int = 1,
    metrics: list[dict[str, object]] | None = None,
    by_text: bool = False,
    name: str = "mc",
    **more: object,
) -> Case:
    rng = RNG(seed)
    metrics = CHOICE_METRICS if metrics is None else metrics
    asked = 2 if any(one["metric"] == "acc_mutual_info" for one in metrics) else 1
    rows, replies = [], {}
    for i in range(n):
        texts = [f"{k}{'aéß日'[k % 4] * int(rng.integers(0, 9))}" for k in range(options)]
        gold = int(rng.integers(options))
        picked = sorted({gold, int(rng.integers(options))}) if golds > 1 else gold
        rows.append({"question": f"q{i}", "choices": texts, "target": texts[gold] if by_text else picked})
        lls = np.round(-rng.gamma(3, 2, options * asked), 1)  # rounded, so that there are ties
        lls[gold] += 3 * (rng.random() < 0.5)
        replies |= {(i, k): [(float(ll), bool(rng.random() < 0.4))] for k, ll in enumerate(lls)}
    return Case(name, "multiple_choice", rows, replies, metrics, **more)


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_multiple_choice(tables: Tables, seed: int) -> None:
    case = choices(seed, n=[2, 60, 133][seed], options=2 + seed)
    theirs, ours = run_lm_eval(case, draws=200), run_evalcore(case, tables=tables, draws=200)
    if tables is EVALCORE:  # E18: this error is better by default
        for row in (theirs["results"]["mc"], ours["results"]["mc"]):
            del row["mcc_stderr,none"]
    assert_same_results(theirs, ours, exact=BITS)


@pytest.mark.parametrize("options", [2, 4])
def test_brier_score(options: int) -> None:
    case = choices(3, 80, options=options, metrics=[metric("brier_score")])
    theirs = run_lm_eval(case)["results"]["mc"]
    for tables in (LM_EVAL_0_4_13, EVALCORE):
        assert same_number(
            theirs["brier_score,none"], run_evalcore(case, tables=tables)["results"]["mc"]["brier_score,none"]
        )


def test_brier_score_row() -> None:
    case = choices(3, 80, metrics=[metric("brier_score")])
    assert_same_results(run_lm_eval(case), run_evalcore(case))


@BOTH
def test_the_usual_metrics(tables: Tables) -> None:
    case = Case(**{**choices(4).__dict__, "metrics": None})
    assert_same_results(run_lm_eval(case), run_evalcore(case, tables=tables), exact=BITS)


@BOTH
def test_gold_by_its_text(tables: Tables) -> None:
    case = choices(5, by_text=True, metrics=CHOICE_METRICS[:4])
    assert_same_results(run_lm_eval(case), run_evalcore(case, tables=tables), exact=BITS)


@BOTH
def test_mutual_information(tables: Tables) -> None:
    case = choices(6, metrics=[metric("acc"), metric("acc_mutual_info"), metric("acc_norm"), metric("exact_match")])
    assert_same_results(run_lm_eval(case), run_evalcore(case, tables=tables), exact=BITS)


@BOTH
def test_several_gold_choices(tables: Tables) -> None:
    case = choices(7, golds=2, metrics=[metric(name) for name in ("acc", "acc_norm", "acc_bytes", "exact_match")])
    assert_same_results(run_lm_eval(case), run_evalcore(case, tables=tables), exact=BITS)


def test_binary_f1() -> None:
    case = choices(8, options=2, metrics=[metric("f1"), metric("acc"), metric("mcc")])
    theirs = run_lm_eval(case, draws=100)
    assert_same_results(theirs, run_evalcore(case, draws=100), exact=BITS)
    ours = run_evalcore(case, tables=EVALCORE)["results"]["mc"]
    assert same_number(theirs["results"]["mc"]["f1,none"], ours["f1,none"])
    assert same_number(theirs["results"]["mc"]["mcc,none"], ours["mcc,none"])


def test_choices_with_different_numbers_of_options() -> None:
    small, large = (
        choices(9, 20, options=2, metrics=CHOICE_METRICS[:4]),
        choices(10, 20, options=5, metrics=CHOICE_METRICS[:4]),
    )
    rows = [*small.rows, *large.rows]
    replies = {**small.replies, **{(i + 20, k): given for (i, k), given in large.replies.items()}}
    case = Case("mixed", "multiple_choice", rows, replies, CHOICE_METRICS[:4])
    assert_same_results(run_lm_eval(case), run_evalcore(case), exact=BITS)
    assert_same_results(run_lm_eval(case), run_evalcore(case, tables=EVALCORE), exact=BITS)


def test_minus_infinity_is_legal() -> None:
    case = choices(21, 30, metrics=CHOICE_METRICS[:4])
    replies = {place: [(-np.inf, False)] if place[1] == 1 else given for place, given in case.replies.items()}
    case = Case(**{**case.__dict__, "replies": replies})
    assert_same_results(run_lm_eval(case), run_evalcore(case), exact=BITS)


def test_one_document() -> None:
    case = choices(22, 1, metrics=CHOICE_METRICS[:4])
    assert_same_results(run_lm_eval(case), run_evalcore(case), exact=BITS)


def test_no_bootstrap() -> None:
    case = choices(23, 10)
    assert_same_results(run_lm_eval(case, draws=0), run_evalcore(case, draws=0), exact=BITS)


# --- likelihoods --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_loglikelihood(seed: int) -> None:
    rng = RNG(seed)
    n = [2, 50, 99][seed]
    rows = [{"question": f"q{i}", "target": f"t{i}"} for i in range(n)]
    replies = {(i, 0): [(-float(rng.gamma(2, 3)), bool(rng.random() < 0.5))] for i in range(n)}
    case = Case("lambada", "loglikelihood", rows, replies, [metric("perplexity"), metric("acc")])
    theirs = run_lm_eval(case)
    assert_same_results(theirs, run_evalcore(case), exact=BITS)
    ours = run_evalcore(case, tables=EVALCORE)["results"]["lambada"]
    for key in ("perplexity,none", "acc,none", "acc_stderr,none"):
        assert same_number(theirs["results"]["lambada"][key], ours[key], stderr="stderr" in key)


@pytest.mark.parametrize("seed", range(3))
def test_rolling(seed: int) -> None:
    rng = RNG(seed)
    texts = ["".join(rng.choice(list("ab é日\n\t "), rng.integers(1, 80))) for _ in range(40)]
    rows = [{"question": "", "target": text} for text in texts]
    replies = {(i, 0): [-float(rng.gamma(9, 9))] for i in range(len(texts))}
    names = ("word_perplexity", "byte_perplexity", "bits_per_byte")
    case = Case("wiki", "loglikelihood_rolling", rows, replies, [metric(name) for name in names])
    theirs = run_lm_eval(case)
    assert_same_results(theirs, run_evalcore(case))
    ours = run_evalcore(case, tables=EVALCORE)["results"]["wiki"]
    for name in names[1:]:
        assert same_number(theirs["results"]["wiki"][f"{name},none"], ours[f"{name},none"])


# --- process_results ----------------------------------------------------------------------------------------


def graded(doc: dict[str, object], results: list[str]) -> dict[str, object]:
    """Numbers, pairs for corpora, and a metric that only some documents have."""
    said, gold = results[0], str(doc["target"])
    out: dict[str, object] = {
        "length": abs(len(said) - len(gold)) / 3,
        "right": int(said.strip() == gold),
        "bleu": (gold, said),
        "label": (int(gold.isdigit()), int(said.strip().isdigit())),
    }
    return {**out, "short": len(said) / 7} if len(gold) < 5 else out


GRADED = [
    metric("length", aggregation="median", higher_is_better=False),
    metric("right", aggregation="mean", higher_is_better=True),
    metric("bleu", aggregation="bleu", higher_is_better=True),
    metric("label", aggregation="matthews_corrcoef", higher_is_better=True),
    metric("short", aggregation="mean", higher_is_better=True),
]


def test_process_results() -> None:
    case = generation(31, 41, metrics=GRADED, process_results=graded)
    theirs, ours = run_lm_eval(case, draws=200), run_evalcore(case, draws=200)
    assert theirs["results"]["gen"]["sample_len"] == 41
    assert_same_results(theirs, ours, exact=("right",))


def test_process_results_of_choices() -> None:
    def margin(doc: dict[str, object], results: list[tuple[float, bool]]) -> dict[str, object]:
        lls = [ll for ll, _ in results]
        return {"acc": float(int(np.argmax(lls)) == doc["target"]), "margin": sorted(lls)[-1] - sorted(lls)[-2]}

    metrics = [metric(name, aggregation="mean", higher_is_better=True) for name in ("acc", "margin")]
    case = choices(32, metrics=metrics, process_results=margin)
    assert_same_results(run_lm_eval(case), run_evalcore(case), exact=BITS)
    assert_same_results(run_lm_eval(case), run_evalcore(case, tables=EVALCORE), exact=BITS)


def test_an_undeclared_metric_is_averaged() -> None:
    case = generation(
        33, 20, metrics=[GRADED[1]], process_results=lambda doc, results: {"right": 1, "extra": len(results[0])}
    )
    theirs, ours = run_lm_eval(case), run_evalcore(case)
    assert_same_row(theirs["results"]["gen"], ours["results"]["gen"])
    assert "extra" not in theirs["higher_is_better"]["gen"]


@BOTH
def test_a_direction_that_nobody_declared_is_unknown_in_lm_eval_too(tables: Tables) -> None:
    metrics = [metric("length", aggregation="mean"), metric("exact_match", aggregation="mean")]
    given = {"length": 3.5, "exact_match": 1.0}
    case = generation(35, 20, metrics=metrics, process_results=lambda doc, results: given)
    theirs, ours = run_lm_eval(case), run_evalcore(case, tables=tables)
    assert theirs["higher_is_better"]["gen"] == {"length": None, "exact_match": True}
    assert ours["higher_is_better"] == theirs["higher_is_better"]


def longest() -> Case:
    metrics = [metric("length", aggregation=max, higher_is_better=False)]
    return generation(34, 20, metrics=metrics, process_results=lambda doc, results: {"length": len(results[0])})


def test_a_callable_aggregation() -> None:
    theirs, ours = run_lm_eval(longest()), run_evalcore(longest())
    assert ours["results"]["gen"]["length,none"] == theirs["results"]["gen"]["length,none"]


def test_a_callable_aggregation_has_no_stderr_in_lm_eval() -> None:
    theirs, ours = run_lm_eval(longest()), run_evalcore(longest())
    assert ours["results"]["gen"]["length_stderr,none"] == theirs["results"]["gen"]["length_stderr,none"] == "N/A"


# --- groups -------------------------------------------------------------------------------------------------


def test_groups_end_to_end() -> None:
    cases = [choices(40 + i, n, name=f"t{i}", metrics=CHOICE_METRICS[:2]) for i, n in enumerate([20, 35, 50, 11])]
    inner_metrics = [{"metric": "acc", "filter_list": "none", "weight_by_size": False}]
    outer_metrics = [{"metric": "acc", "weight_by_size": True}, {"metric": "acc_norm", "filter_list": ["none"]}]
    inner = lm_group("inner", ["t1", "t2"], inner_metrics, alias="Inner", metadata={"version": 2})
    bare = lm_group("bare", ["t3"])
    outer = lm_group("outer", ["t0", inner, bare], outer_metrics)
    theirs = run_lm_eval(*cases, groups={"outer": outer, "inner": inner, "bare": bare})
    ours_inner = our_group("inner", ["t1", "t2"], inner_metrics, alias="Inner", metadata=_version(2))
    tree = our_group("outer", ["t0", ours_inner, our_group("bare", ["t3"])], outer_metrics)
    ours = run_evalcore(*cases, trees=[tree])
    # lm-eval passes num_fewshot and higher_is_better up in the order its loader met the groups: compare those apart.
    for key in ("n-shot", "higher_is_better"):
        groups = {"outer", "inner", "bare"}
        assert {k: v for k, v in ours[key].items() if k not in groups} == {
            k: v for k, v in theirs[key].items() if k not in groups
        }
        theirs[key] = ours[key] = {}
    assert_same_results(theirs, ours)


def test_groups_given_children_first_also_agree_on_what_is_passed_up() -> None:
    cases = [choices(40 + i, 12, name=f"t{i}", metrics=CHOICE_METRICS[:2], config={"num_fewshot": 0}) for i in range(3)]
    metrics = [{"metric": "acc"}]
    inner, outer = lm_group("inner", ["t1", "t2"], metrics), None
    outer = lm_group("outer", ["t0", inner], metrics)
    theirs = run_lm_eval(*cases, groups={"inner": inner, "outer": outer})
    tree = our_group("outer", ["t0", our_group("inner", ["t1", "t2"], metrics)], metrics)
    assert_same_results(theirs, run_evalcore(*cases, trees=[tree]))


def _version(number: object) -> object:
    from evalcore import freeze_options

    return freeze_options(version=number)


def test_our_default_unweighted_group_is_lm_evals() -> None:
    cases = [choices(50 + i, n, name=f"t{i}", metrics=CHOICE_METRICS[:1]) for i, n in enumerate([20, 35, 50])]
    metrics = [{"metric": "acc", "weight_by_size": False}]
    theirs = run_lm_eval(*cases, groups={"g": lm_group("g", ["t0", "t1", "t2"], metrics)})["groups"]["g"]
    tree = our_group("g", ["t0", "t1", "t2"], metrics)
    ours = run_evalcore(*cases, trees=[tree], tables=EVALCORE)["groups"]["g"]
    assert same_number(theirs["acc,none"], ours["acc,none"])
    assert same_number(theirs["acc_stderr,none"], ours["acc_stderr,none"], stderr=True)


def test_limits() -> None:
    """lm-eval's --limit takes the first documents: scoring those gives the same row."""
    case = choices(60, 40, metrics=CHOICE_METRICS[:4])
    theirs = run_lm_eval(case, limit=15)["results"]["mc"]
    cut = Case(
        **{**case.__dict__, "rows": case.rows[:15], "replies": {p: g for p, g in case.replies.items() if p[0] < 15}}
    )
    ours = run_evalcore(cut)["results"]["mc"]
    assert_same_row(theirs, ours, exact=BITS)


def test_its_own_instances_are_grouped_as_they_are() -> None:
    """As its ``sort_instances`` would: by document, then by idx."""
    from lm_eval.api.instance import Instance as Theirs

    from evalcore import group_by_doc

    made = [
        Theirs("loglikelihood", doc={"q": doc}, arguments=("Q", f" {idx}"), idx=idx, metadata=("theirs", doc, 1))
        for doc, idx in [(2, 1), (0, 0), (2, 0), (0, 1)]
    ]
    grouped = group_by_doc(made)  # type: ignore[type-var]  # they say task_name
    assert grouped.task == "theirs"
    assert {doc: [one.idx for one in found] for doc, found in grouped.items()} == {0: [0, 1], 2: [0, 1]}
    assert grouped[2][0] is made[2]
