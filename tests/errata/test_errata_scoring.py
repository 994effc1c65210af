"""E10 and E46 to E48: lm-eval's number live, the same under its policy, and the right one by default."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from math import nan
from pathlib import Path

import numpy as np
import pytest
import sacrebleu

pytest.importorskip("lm_eval")
sys.path.append(str(Path(__file__).parents[1] / "agreement"))

from both_sides import EVALCORE, LM_EVAL_0_4_13, Case, assert_same_row, run_evalcore, run_lm_eval
from sklearn.metrics import f1_score
from whole_cases import run_ours, run_theirs

from evalcore import EvalError
from evalcore.lm_eval import ERRATA

pytestmark = pytest.mark.filterwarnings("ignore")
Row = dict[str, object]
TEXTS = {"generation_kwargs": {"until": ["\n"]}}
DRAWS = 300


def both_sides(case: Case) -> tuple[Row, Row, Row]:
    """The row of lm-eval; evalcore's under its policy, which is the same; evalcore's own."""
    theirs = run_lm_eval(case, draws=DRAWS)["results"]["t"]
    ours, right = (run_evalcore(case, tables=tables, draws=DRAWS) for tables in (LM_EVAL_0_4_13, EVALCORE))
    assert_same_row(theirs, ours["results"]["t"])
    return theirs, ours, right


def errata_of(results: Row, key: str) -> list[str]:
    return results["evalcore"]["estimates"]["t"][key]["errata"]


# --- E46 ----------------------------------------------------------------------------------------------------------


def classes(k: int, **options: object) -> tuple[Case, list[int], list[int]]:
    rng = np.random.default_rng(46 + k)
    golds, said = rng.integers(k, size=(2, 30)).tolist()
    said = [gold if rng.random() < 0.5 else one for gold, one in zip(golds, said, strict=True)]
    rows = [{"question": f"q{i}", "choices": list("abc")[:k], "target": gold} for i, gold in enumerate(golds)]
    replies = {(i, c): [(-float(c != said[i]), False)] for i in range(30) for c in range(k)}
    return Case("t", "multiple_choice", rows, replies, [{"metric": "f1", **options}]), golds, said


@pytest.mark.parametrize("average", ["weighted", "macro", "micro"])
def test_e46_the_average_of_f1(average: str) -> None:
    case, golds, said = classes(2, average=average)
    theirs, ours, right = both_sides(case)
    assert theirs["f1,none"] == pytest.approx(f1_score(golds, said))
    assert right["results"]["t"]["f1,none"] == pytest.approx(f1_score(golds, said, average=average))
    assert right["results"]["t"]["f1,none"] != pytest.approx(theirs["f1,none"])
    assert "E46" in errata_of(ours, "f1,none")
    assert "E46" in errata_of(right, "f1,none")


def test_e46_a_declared_default_is_no_difference() -> None:
    case, _, _ = classes(2, average="binary", pos_label=1)
    assert "E46" not in errata_of(both_sides(case)[2], "f1,none")


def test_e46_three_classes_end_both_under_the_policy() -> None:
    case, golds, said = classes(3, average="weighted")
    with pytest.raises(ValueError, match="Target is multiclass"):
        run_lm_eval(case, draws=DRAWS)
    with pytest.raises(EvalError, match=r"needs two classes, got 3.*lm-eval ignores average: E46"):
        run_evalcore(case, draws=DRAWS)
    right = run_evalcore(case, tables=EVALCORE)["results"]["t"]["f1,none"]
    assert right == pytest.approx(f1_score(golds, said, average="weighted"))


def test_e46_the_options_of_corpus_metrics() -> None:
    """They only pass pairs on in lm-eval, so ``tokenize`` and the like are lost on the way, too."""
    wanted = ["The cat sat on the mat", "A dog ran home", "It is late now", "We all went to bed"]
    said = ["The cat sat on a mat", "A Dog ran home now", "it is late", "We went to bed"]
    rows = [{"question": "q", "target": one} for one in wanted]
    options = {"bleu": {"tokenize": "char"}, "chrf": {"word_order": 2}, "ter": {"case_sensitive": True}}
    metrics = [{"metric": name, **given} for name, given in options.items()]
    case = Case("t", "generate_until", rows, {(i, 0): [one] for i, one in enumerate(said)}, metrics, config=TEXTS)
    theirs, _, right = both_sides(case)
    plain = {
        "bleu": sacrebleu.corpus_bleu(said, [wanted], tokenize="char").score,
        "chrf": sacrebleu.corpus_chrf(said, [wanted], word_order=2).score,
        "ter": sacrebleu.corpus_ter(said, [wanted], case_sensitive=True).score,
    }
    for name, value in plain.items():
        assert right["results"]["t"][f"{name},none"] == pytest.approx(value)
        assert theirs[f"{name},none"] != pytest.approx(value)
        assert "E46" in errata_of(right, f"{name},none")


# --- E47 ----------------------------------------------------------------------------------------------------------


def pair_up(doc: Mapping[str, object], results: Sequence[str]) -> Row:
    return dict.fromkeys(("bleu", "chrf", "ter", "mine"), (doc["references"], results[0]))


def corpus(counts: Sequence[int]) -> Case:
    """Documents with these numbers of references, of which only the last is what was said."""
    rng = np.random.default_rng(47)
    words = ["the", "a", "cat", "dog", "sat", "ran", "on", "mat"]
    said = [" ".join(rng.choice(words, 7)) for _ in counts]
    others = [[" ".join(rng.choice(words, 7)) for _ in range(count - 1)] for count in counts]
    rows = [{"question": "q", "target": "", "references": [*some, one]} for one, some in zip(said, others, strict=True)]
    closed_by = {"bleu": "bleu", "chrf": "chrf", "ter": "ter", "mine": "chrf++"}
    metrics = [{"metric": name, "aggregation": how, "higher_is_better": True} for name, how in closed_by.items()]
    replies = {(i, 0): [one] for i, one in enumerate(said)}
    return Case("t", "generate_until", rows, replies, metrics, process_results=pair_up, config=TEXTS)


@pytest.mark.parametrize("counts", [[2] * 11 + [1], [1, 2, 3] * 5, [3] * 14 + [2]], ids=str)
def test_e47_references_of_a_corpus(counts: Sequence[int]) -> None:
    """Values and errors: in each of lm-eval's resamples the fewest of the documents drawn count."""
    theirs, _, right = both_sides(corpus(counts))
    for name, best in (("bleu", 100.0), ("chrf", 100.0), ("ter", 0.0), ("mine", 100.0)):
        assert right["results"]["t"][f"{name},none"] == pytest.approx(best)  # every text is one of its references
        assert theirs[f"{name},none"] != pytest.approx(best, abs=1.0)
        assert "E47" in errata_of(right, f"{name},none")


def test_e47_is_not_about_equal_numbers_of_references() -> None:
    theirs, _, right = both_sides(corpus([2] * 12))
    assert right["results"]["t"]["bleu,none"] == pytest.approx(theirs["bleu,none"])
    assert "E47" not in errata_of(right, "bleu,none")


# --- E48 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gold", "said", "theirs", "right"),
    [
        ("i", "\u0130", 1.0, 0.0),
        ("\u0130", "i\u0307", 0.0, 1.0),
        ("\u0130stanbul", "i\u0307stanbu", 1.0, 0.0),
        ("Straße", "STRASSE", 0.0, 0.0),
        ("ABC", "abc", 1.0, 1.0),
    ],
)
def test_e48_texts_that_grow_in_lower_case(gold: str, said: str, theirs: float, right: float) -> None:
    rows = [{"question": "q", "target": gold}, {"question": "q", "target": "x"}]
    metrics = [{"metric": "exact_match", "ignore_case": True}]
    case = Case("t", "generate_until", rows, {(0, 0): [said], (1, 0): ["y"]}, metrics, config=TEXTS)
    wrong, ours, best = both_sides(case)
    assert wrong["exact_match,none"] == theirs / 2
    assert best["results"]["t"]["exact_match,none"] == right / 2
    for results in (ours, best):
        assert ("E48" in errata_of(results, "exact_match,none")) == ("\u0130" in gold + said)


def test_only_one_letter_grows_in_lower_case() -> None:
    assert [chr(i) for i in range(sys.maxunicode + 1) if len(chr(i).lower()) > 1] == ["\u0130"]


# --- E10 ----------------------------------------------------------------------------------------------------------


def overlap(references: Sequence[str], predictions: Sequence[str]) -> float:
    """Between -1 and 1, or NaN where there is nothing to compare."""
    wanted, said = set(references[0].split()), set(predictions[0].split())
    return nan if not wanted else 2 * len(wanted & said) / len(wanted | said) - 1 if said else 0.0


def test_e10_document_by_document(tmp_path: Path) -> None:
    """Lists of no, one and several golds; scores that are negative, nothing or NaN."""
    golds = [["a b"], ["a c", "b"], [], ["", "a"], ["x y z", "a b c d"], ["q", "a b"], ["a"]]
    said = ["a", "a", "a", "a", "a", "a b", ""]
    rows = [{"question": "q", "target": one} for one in golds]
    metrics = [
        {"metric": overlap, "aggregation": "mean", "higher_is_better": True},
        {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True},
    ]
    case = Case("t", "generate_until", rows, {(i, 0): [one] for i, one in enumerate(said)}, metrics, config=TEXTS)
    theirs, ours = run_theirs(case, tmp_path, draws=DRAWS), run_ours(case, draws=DRAWS)
    assert_same_row(theirs.results["results"]["t"], ours.results["results"]["t"])
    for name in ("overlap", "exact_match"):
        assert [line[name] for line in ours.lines] == [line[name] for line in theirs.lines]


def test_rows_of_the_errata_are_in_the_table_and_on_the_page() -> None:
    page = Path(__file__).parents[2].joinpath("docs", "errata.md").read_text("utf-8")
    for name in ("E46", "E47", "E48"):
        assert name in ERRATA
        assert f"| {name} **P** | lm-eval |" in page
