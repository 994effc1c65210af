"""lm-eval's own outputs held against each other: rules that differ are told, and no rule that only looks different."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from both_sides import Case, run_lm_eval
from test_lm_eval_files import CASES, OWN, SEVERAL, TEXTS, tracked

from evalcore import EvalError, score
from evalcore.comparisons import Compared, check_run
from evalcore.shell.compare.compare import compare

Row = dict[str, object]
STRICT, RAW = TEXTS.filters


def theirs(folder: Path, *cases: Case) -> Path:
    """What lm-eval writes for these tasks."""
    tracked(folder, run_lm_eval(*cases, draws=4), [case.name for case in cases])
    return folder


def rules_of(compared: Compared) -> list[tuple[str, str, str, str]]:
    return [(one.task, one.part, one.a, one.b) for each in compared.comparisons for one in each.rules]


def with_filter(pattern: str, **more: object) -> Case:
    step = {"function": "regex", "regex_pattern": pattern, **more}
    return replace(TEXTS, filters=[{"name": "strict", "filter": [step, {"function": "take_first"}]}, RAW])


def test_the_same_tasks_run_twice_have_the_same_rules(tmp_path: Path) -> None:
    found = compare(theirs(tmp_path / "a", *CASES), theirs(tmp_path / "b", *CASES))
    assert rules_of(found) == []
    assert found.lead == found.notes == found.warnings == ()


def test_a_changed_regex_leads_and_fails_unless_it_may_differ(tmp_path: Path) -> None:
    a, b = theirs(tmp_path / "a", TEXTS), theirs(tmp_path / "b", with_filter(r"is (\d)"))
    found = compare(a, b)
    parts = ("texts", "regex_pattern of filter regex", repr(r"is (\d+)"), repr(r"is (\d)"))
    assert rules_of(found) == [parts]
    shown = found.lead[0]
    assert shown.startswith("exact_match,strict, bleu,strict, chrf,strict and 1 more: regex_pattern of filter regex")
    assert shown.endswith(f"differs: {parts[2]} in A, {parts[3]} in B (texts)")
    checked = check_run(a, baseline=b)
    (gate,) = (one for one in checked.gates if one.kind == "rules")
    assert not checked.passed
    assert gate.passed is False
    assert "regex_pattern of filter regex differs" in gate.verdict
    may = compare(a, b, rules_may_differ=True)
    assert may.lead == ()
    assert may.notes == (shown,)
    allowed = check_run(a, baseline=b, rules_may_differ=True)
    assert allowed.passed
    assert any("regex_pattern of filter regex differs" in note for note in allowed.notes)


def test_rules_that_are_only_spelled_differently_are_the_same(tmp_path: Path) -> None:
    """Defaults given or left out, options that are off; a filter that takes the first of one reply."""
    spelled = with_filter(r"is (\d+)", group_select=0, fallback="[invalid]")
    off = [{"metric": "exact_match", "aggregation": "mean", "ignore_case": False, "regexes_to_ignore": []}]
    spelled = replace(spelled, metrics=[*off, *TEXTS.metrics[1:]])
    bare = replace(SEVERAL, filters=[{"name": "none", "filter": [{"function": "take_first"}]}])
    found = compare(theirs(tmp_path / "a", TEXTS, SEVERAL), theirs(tmp_path / "b", spelled, bare))
    assert rules_of(found) == []
    assert found.lead == ()


def test_options_and_aggregations_differ(tmp_path: Path) -> None:
    case = replace(SEVERAL, metrics=[{"metric": "exact_match", "ignore_case": True}])
    median = replace(SEVERAL, metrics=[{"metric": "exact_match", "aggregation": "median"}])
    plain, others = theirs(tmp_path / "a", SEVERAL), (theirs(tmp_path / "b", case), theirs(tmp_path / "c", median))
    assert rules_of(compare(plain, others[0])) == [("several", "ignore_case of the metric", "none", "True")]
    with pytest.raises(EvalError, match=r"nothing to compare.* is not compared: mean in one run, median in the other"):
        compare(plain, others[1])


def own_scores(doc: Row, results: Sequence[object]) -> Row:
    return {"length": float(len(str(results[0]))) + 1, "zero": 0}


def test_code_is_compared_by_its_source(tmp_path: Path) -> None:
    """Its formatting does not matter; a name that stands for other code does."""
    a = theirs(tmp_path / "a", OWN)
    assert rules_of(compare(a, theirs(tmp_path / "b", OWN))) == []
    (_, part, one, two), *more = rules_of(compare(a, theirs(tmp_path / "c", replace(OWN, process_results=own_scores))))
    assert (part, more) == ("process_results", [])
    assert one.startswith("own_scores (sha256 ")
    assert two.startswith("own_scores (sha256 ")
    assert one != two
    (path,) = a.rglob("results_*.json")
    text = path.read_text("utf-8")
    source = json.loads(text)["configs"]["own"]["process_results"]
    spaced = text.replace(json.dumps(source), json.dumps(source.replace(": ", ":  ") + "    # nothing else\n"))
    assert spaced != text
    for name, recorded in (("d", spaced), ("e", text.replace(json.dumps(source), '"<function own_scores at 0x7f12>"'))):
        other = tmp_path / name
        other.mkdir()
        for file in path.parent.iterdir():
            (other / file.name).write_text(recorded if file == path else file.read_text("utf-8"), "utf-8")
        assert rules_of(compare(a, other)) == []


def test_our_scores_of_the_same_answers_have_the_same_rules(tmp_path: Path) -> None:
    """Under lm-eval's policy nothing is to say; under ours a note says whose scores they are."""
    tasks = (TEXTS, SEVERAL)
    a = theirs(tmp_path / "a", *tasks)
    score(a, output_path=tmp_path / "ours", policy="lm-eval-0.4.13")
    score(a, output_path=tmp_path / "usual")
    same = compare(a, tmp_path / "ours")
    assert rules_of(same) == []
    assert same.notes == same.lead == ()
    usual = compare(a, tmp_path / "usual")
    assert rules_of(usual) == []
    assert usual.lead == ()
    assert usual.notes[0].startswith("rules that could not be compared: A has scores made by another program")
    policies = compare(tmp_path / "ours", tmp_path / "usual")
    assert policies.lead[0] == "policy differs: 'lm-eval-0.4.13' in A, 'evalcore' in B (several, texts)"
    assert not check_run(tmp_path / "ours", baseline=tmp_path / "usual").passed


# --- numbers that contradict the results --------------------------------------------------------------------------------


MEDIAN = replace(
    SEVERAL,
    name="median",
    rows=[{"question": f"q{i}?", "target": str(i)} for i in range(4)],
    replies={(doc, 0): [str(doc) if doc < 2 else "no"] for doc in range(4)},
    metrics=[{"metric": "exact_match", "aggregation": "median", "higher_is_better": True}],
)


def test_a_number_that_contradicts_the_results_is_told_with_its_erratum(tmp_path: Path) -> None:
    run = theirs(tmp_path / "a", MEDIAN, SEVERAL)
    why = "lm-eval takes the upper middle as the median of an even number of scores (E01)"
    told = f"median: exact_match,none is 1.0 in the results, but 0.5 by the answers in the log: {why}"
    assert [one for one in score(run).warnings if "in the results" in one] == [told]
    recorded = told.replace("by the answers in the log", "by the logged scores")
    for run_warnings in (compare(run, run).runs[0].warnings, check_run(run, min="several/exact_match=0").notes):
        assert [one for one in run_warnings if "in the results" in one] == [recorded]
    assert not [one for one in score(run, policy="lm-eval-0.4.13").warnings if "in the results" in one]
    for changed in ({"metric": "f1"}, {"filter": "lowercase"}, {"limit": 2}):
        assert not [one for one in score(run, **changed).warnings if "in the results" in one]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_number_of_lm_eval_is_contradicted_without_an_erratum(case: Case, tmp_path: Path) -> None:
    run = theirs(tmp_path, case)
    for one in score(run).warnings:
        assert "in the results, but" not in one or one.endswith(")"), one
    assert not [one for one in score(run, policy="lm-eval-0.4.13").warnings if "in the results, but" in one]
