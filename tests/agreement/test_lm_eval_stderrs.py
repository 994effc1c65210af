"""Every stderr that lm-eval 0.4.13 gives a number for, task by task through its own evaluator: to 1e-12 or 1e-15."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("lm_eval")

from both_sides import (
    EVALCORE,
    LM_EVAL_0_4_13,
    Case,
    lm_group,
    our_group,
    our_report,
    run_evalcore,
    run_lm_eval,
    same_number,
)
from lm_eval.api import metrics as lm

pytestmark = pytest.mark.filterwarnings("ignore:A single label", "ignore:.*ill-defined", "ignore:Mean of empty slice")

RNG = np.random.default_rng
NAN = float("nan")
Items = Sequence[object]


class Column(NamedTuple):
    """What ``process_results`` emits for each document under a name, and how that is aggregated."""

    aggregation: str | Callable[..., object]
    items: Items


def task(columns: Mapping[str, Column], name: str = "t") -> Case:
    """A task with all of these metrics."""
    n = len(next(iter(columns.values())).items)

    def process_results(doc: Mapping[str, int], results: object) -> dict[str, object]:
        return {name: column.items[doc["i"]] for name, column in columns.items()}

    return Case(
        name,
        "generate_until",
        [{"question": "q", "target": "a", "i": i} for i in range(n)],
        {(i, 0): ("a",) for i in range(n)},
        [{"metric": name, "aggregation": one.aggregation, "higher_is_better": True} for name, one in columns.items()],
        process_results=process_results,
    )


def both(columns: Mapping[str, Column], draws: int) -> tuple[dict[str, object], dict[str, object]]:
    """The row of one task from lm-eval's evaluator, and from evalcore under its policy."""
    case = task(columns)
    theirs = run_lm_eval(case, draws=draws)["results"]["t"]
    return theirs, run_evalcore(case, draws=draws)["results"]["t"]


def agree(columns: Mapping[str, Column], draws: int) -> dict[str, object]:
    """Every value and every error; where lm-eval says N/A or NaN, ours says that there is none. lm-eval's errors."""
    theirs, ours = both(columns, draws)
    for name in columns:
        for key in (f"{name},none", f"{name}_stderr,none"):
            nothing = theirs[key] == "N/A" or not math.isfinite(theirs[key])
            same = ours[key] == "N/A" if nothing else same_number(theirs[key], ours[key], stderr="_stderr" in key)
            assert same, (key, theirs[key], ours[key])
    return {name: theirs[f"{name}_stderr,none"] for name in columns}


# --- data ---------------------------------------------------------------------------------------------------


def scores(n: int) -> Items:
    return RNG(n).normal(0.3, 2, n).tolist()


def likelihoods(n: int) -> Items:
    return (-np.abs(RNG(n).normal(2, 1, n))).tolist()


def gaps(n: int) -> Items:
    return [NAN if i % 3 == 1 else x for i, x in enumerate(scores(n))]


def classes(n: int, k: int = 2) -> Items:
    gold = RNG(n).integers(0, k, n)
    said = np.where(RNG(n + 1).random(n) < 0.6, gold, RNG(n + 2).integers(0, k, n))
    return list(zip(gold.tolist(), said.tolist(), strict=True))


WORDS = ("the", "a", "cat", "dog", "sat", "ran", "on", "mat", "quickly", "über", "東京", "house", ",", ".")


def sentences(n: int) -> Items:
    """(reference, prediction) pairs that share some of their words."""
    rng = RNG(n)
    golds = [rng.choice(WORDS, size=rng.integers(2, 7)).tolist() for _ in range(n)]
    said = [[word if rng.random() < 0.7 else str(rng.choice(WORDS)) for word in gold] for gold in golds]
    return [(" ".join(a), " ".join(b)) for a, b in zip(golds, said, strict=True)]


def lengths(n: int) -> Items:
    return [(-float(x), int(k)) for x, k in zip(RNG(n).gamma(5, 20, n), RNG(n).integers(1, 90, n), strict=True)]


def answers(n: int) -> Items:
    """(prediction, document) as MultiRC has them: three answers to a question, five questions to a paragraph."""
    right = RNG(n).random(n) < 0.95
    return [
        (True, {"idx": {"paragraph": i // 15, "question": i // 3 % 5}, "label": int(hit)})
        for i, hit in enumerate(right.tolist())
    ]


def constant(item: object) -> Callable[[int], Items]:
    return lambda n: [item] * n


# --- the table ----------------------------------------------------------------------------------------------

QUICK: dict[str, tuple[str | Callable[..., object], Callable[[int], Items]]] = {
    "of_scores": ("mean", scores),
    "of_ones": ("mean", constant(1.0)),
    "of_equal": ("mean", constant(0.3)),
    "of_gaps": ("mean", gaps),
    "middle": ("median", scores),
    "middle_of_equal": ("median", constant(0.1)),
    "middle_of_gaps": ("median", gaps),
    "numbers": ("nanmean", scores),
    "numbers_of_equal": ("nanmean", constant(0.7)),
    "numbers_of_gaps": ("nanmean", gaps),
    "numbers_of_none": ("nanmean", constant(NAN)),
    "perplexity": ("perplexity", likelihoods),
    "perplexity_of_equal": ("perplexity", constant(-2.3)),
    "perplexity_of_gaps": ("perplexity", gaps),
    "words": ("weighted_perplexity", lengths),
    "bits": ("bits_per_byte", lengths),
    "brier": ("brier_score", lambda n: [(0, [0.6, 0.4])] * n),
    "nothing": ("bypass", scores),
    "own": (lambda items: max(items), scores),
    "own_mean": (lm.mean, scores),
    "own_median": (lm.median, scores),
    "bleu": ("median", scores),  # 100 draws for its name
    "ter": ("mean", scores),
    "chrf": ("weighted_perplexity", lengths),
}
NO_NUMBER = {"of_gaps", "numbers_of_none", "perplexity_of_gaps", "words", "bits", "brier", "nothing", "own", "chrf"}


@pytest.mark.parametrize(("n", "draws"), [(2, 1000), (3, 100), (30, 2500), (200, 1000), (1001, 100)])
def test_aggregations_of_numbers(n: int, draws: int) -> None:
    found = agree({name: Column(how, make(n)) for name, (how, make) in QUICK.items()}, draws)
    without = {name for name, error in found.items() if error == "N/A" or math.isnan(error)}
    # Of two or three documents with a gap, some resamples hold nothing but gaps.
    assert without - {"numbers_of_gaps", "middle_of_gaps"} == NO_NUMBER


@pytest.mark.parametrize("n", [2, 3])
def test_all_draws(n: int) -> None:
    """As many as lm-eval draws by default: of equal numbers the error is what adding them up 100,000 times leaves."""
    names = ("middle", "middle_of_equal", "perplexity", "perplexity_of_equal")
    found = agree({name: Column(QUICK[name][0], QUICK[name][1](n)) for name in names}, 100_000)
    assert found["perplexity_of_equal"] > 1e-15


@pytest.mark.parametrize(
    ("n", "draws"),
    [
        (2, 100),
        (3, 60),
        (30, 60),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((30, 250), (200, 60), (1001, 60))),
    ],
)
def test_tables_of_classes(n: int, draws: int) -> None:
    columns = {
        "f1": Column("f1", classes(n)),
        "mcc": Column("matthews_corrcoef", classes(n)),
        "mcc_of_four": Column(lm.matthews_corrcoef, classes(n, 4)),
    }
    assert all(isinstance(error, float) for error in agree(columns, draws).values())


@pytest.mark.parametrize("pair", [(0, 0), (1, 1), (1, 0), (0, 1)])
def test_one_class_only(pair: tuple[int, int]) -> None:
    columns = {"f1": Column("f1", [pair] * 5), "mcc": Column("matthews_corrcoef", [pair] * 5)}
    assert set(agree(columns, 50).values()) == {0.0}


@pytest.mark.parametrize(("n", "draws"), [(2, 100), (3, 1000), (30, 100_000), (200, 60)])
def test_corpora(n: int, draws: int) -> None:
    kinds = ("bleu", "chrf", "chrf++", "ter") if n < 200 else ("bleu", "chrf")
    found = agree({kind: Column(kind, sentences(n)) for kind in kinds}, draws)
    assert all(error > 0 for error in found.values())


@pytest.mark.parametrize(
    "pair", [("the cat sat on the mat", "the cat sat on a mat"), ("a b c d", "a b c d"), ("a", "b")]
)
def test_equal_sentences(pair: tuple[str, str]) -> None:
    """What rounding leaves of equal replicates, which for BLEU hangs on who computes exp and log."""
    columns = {kind: Column(kind, [pair] * 9) for kind in ("chrf", "chrf++", "ter")}
    assert all(error < 1e-12 for error in agree(columns, 100).values())
    theirs, ours = both({"bleu": Column("bleu", [pair] * 9)}, 100)
    assert theirs["bleu_stderr,none"] < 1e-12
    assert ours["bleu_stderr,none"] < 1e-12


@pytest.mark.parametrize("draws", [150, 1000])
def test_draws_go_by_the_metrics_name(draws: int) -> None:
    """100 draws for metrics that lm-eval knows as corpus metrics, all of them under any other name."""
    items = sentences(12)
    found = agree({"bleu": Column("bleu", items), "my_bleu": Column("bleu", items)}, draws)
    assert found["bleu"] != found["my_bleu"]


@pytest.mark.parametrize("n", [45, 90])
def test_questions_of_several_answers(n: int) -> None:
    assert agree({"acc": Column(lm.acc_all, answers(n))}, 1000)["acc"] > 0


def test_one_document_and_no_draws_have_no_error() -> None:
    columns = {name: Column(how, make(1)) for name, (how, make) in QUICK.items()}
    assert {str(error) for error in agree(columns, 100).values()} == {"N/A"}
    columns = {name: Column(how, make(4)) for name, (how, make) in QUICK.items()}
    assert {str(error) for error in agree(columns, 0).values()} == {"N/A"}


@pytest.mark.parametrize("by_size", [True, False])
def test_groups_of_resampled_errors(by_size: bool) -> None:
    cases = [task({"m": Column("median", scores(n)), "ter": Column("ter", sentences(n))}, f"t{n}") for n in (5, 23)]
    metrics = [{"metric": name, "weight_by_size": by_size} for name in ("m", "ter")]
    names = [case.name for case in cases]
    theirs = run_lm_eval(*cases, groups={"g": lm_group("g", names, metrics)}, draws=1000)["results"]["g"]
    ours = run_evalcore(*cases, trees=[our_group("g", names, metrics)], draws=1000)["results"]["g"]
    for name in ("m", "ter"):
        for key in (f"{name},none", f"{name}_stderr,none"):
            assert same_number(theirs[key], ours[key], stderr="_stderr" in key), key


def test_many_processes_draw_what_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISABLE_MULTIPROC")
    agree({"middle": Column("median", scores(20)), "perplexity": Column("perplexity", likelihoods(20))}, 3000)


def test_nan_is_a_score_under_the_policy_only() -> None:
    case = task({"m": Column("nanmean", [1.0, NAN, 1.0])})
    for tables, lost in ((LM_EVAL_0_4_13, 0), (EVALCORE, 1)):
        found = our_report(case, tables, draws=100).estimates[0][1]
        assert (found.value, found.counts.unscorable) == (1.0, lost)
