"""Our files against lm-eval's own: its tracker writes its files, its table code reads ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
from both_sides import (
    EVALCORE,
    LM_EVAL_0_4_13,
    Canned,
    Case,
    lm_group,
    our_answers,
    our_group,
    our_samples,
    our_task,
    quiet,
    run_lm_eval,
)
from lm_eval import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager
from lm_eval.utils import make_table

from evalcore import (
    Generate,
    Likelihood,
    LogLikelihood,
    Report,
    Rolling,
    Tables,
    build_report,
    freeze_options,
    report_task,
    score_task,
)
from evalcore.core.lm_eval.sample_log import DocumentRows, join_rows
from evalcore.core.pipeline import tabulate_answers
from evalcore.core.records.request import GENERATE_UNTIL, LOGLIKELIHOOD_ROLLING, MULTIPLE_CHOICE, Request
from evalcore.groups import leaf_from_flat
from evalcore.shell.output.files.results import VARYING, RunFacts, build_results
from evalcore.shell.output.files.run_files import write_results, write_samples
from evalcore.shell.output.files.sample_lines import list_documents
from evalcore.shell.prompts.ready_task import Built
from evalcore.shell.run.write import write_task

Row = dict[str, object]
KWARGS = {"until": ["\n"], "do_sample": False, "temperature": 0.0}
ODD = ["plain", "two\nlines", "U+2028 \u2028 U+0085 \x85", "NUL \0 tab \t", "日本 🙂 é", '"quoted" \\ back', ""]


def metrics(*names: str) -> list[Row]:
    return [{"metric": name} for name in names]


CHOICES = Case(
    "choices",
    "multiple_choice",
    [{"question": f"{text}?", "choices": ["a", "bb"], "target": i % 2} for i, text in enumerate(ODD)],
    {(doc, i): [(-1.0 - 0.3 * i * (doc - 3), i == 0)] for doc in range(len(ODD)) for i in range(2)},
    metrics("acc", "acc_norm", "f1", "mcc", "exact_match"),
)
TEXTS = Case(
    "texts",
    "generate_until",
    [{"question": f"{text}?", "target": str(i), "number": i + 0.5, "none": None} for i, text in enumerate(ODD)],
    {(doc, 0): [f"the answer is {doc * 2} {text}"] for doc, text in enumerate(ODD)},
    metrics("exact_match", "bleu", "chrf", "ter"),
    [
        {"name": "strict", "filter": [{"function": "regex", "regex_pattern": r"is (\d+)"}, {"function": "take_first"}]},
        {"name": "raw", "filter": [{"function": "take_first"}]},
    ],
    config={"generation_kwargs": KWARGS},
)
SEVERAL = Case(
    "several",
    "generate_until",
    [{"question": "which?", "target": ["one", "two"]}, {"question": "what?", "target": ["three"]}],
    {(0, 0): ["two"], (1, 0): ["four"]},
    metrics("exact_match"),
    config={"generation_kwargs": KWARGS},
)
REPEATS = Case(
    "repeats",
    "generate_until",
    [{"question": f"q{i}?", "target": str(i)} for i in range(3)],
    {(doc, 0): [str(doc), str(doc + 1)] for doc in range(3)},
    metrics("exact_match"),
    repeats=2,
    config={"generation_kwargs": KWARGS},
)
LIKELIHOOD = Case(
    "likelihood",
    "loglikelihood",
    [{"question": f"q{i}?", "target": f" t{i}"} for i in range(3)],
    {(doc, 0): [(-1.5 - doc / 3, doc == 1)] for doc in range(3)},
    metrics("acc", "perplexity"),
)
ROLLING = Case(
    "rolling",
    "loglikelihood_rolling",
    [{"question": "", "target": f"some text {text}"} for text in ODD],
    {(doc, 0): [-10.25 - doc / 7] for doc in range(len(ODD))},
    metrics("bits_per_byte", "word_perplexity", "byte_perplexity"),
)


def own_scores(doc: Row, results: Sequence[object]) -> Row:
    return {"length": float(len(str(results[0]))), "zero": 0}


OWN = Case(
    "own",
    "generate_until",
    [{"question": f"q{i}?", "target": str(i)} for i in range(3)],
    {(doc, 0): ["x" * doc] for doc in range(3)},
    [{"metric": name, "aggregation": "mean", "higher_is_better": True} for name in ("length", "zero")],
    process_results=own_scores,
    config={"generation_kwargs": KWARGS},
)
CASES = (CHOICES, TEXTS, SEVERAL, REPEATS, LIKELIHOOD, ROLLING, OWN)


def request_of(case: Case, doc: int, idx: int) -> Request:
    row = case.rows[doc]
    question, target = str(row["question"]), str(row["target"])
    if case.output_type == GENERATE_UNTIL:
        return Generate(question, freeze_options(KWARGS))
    if case.output_type == LOGLIKELIHOOD_ROLLING:
        return Rolling(target)
    if case.output_type == MULTIPLE_CHOICE:
        return LogLikelihood(question, " " + str(list(row["choices"])[idx]))
    return LogLikelihood(question, target)


def built_of(case: Case) -> Built:
    asked = tabulate_answers(our_answers(case)).asked
    places = zip(asked.docs.ints.tolist(), asked.idxs.ints.tolist(), strict=True)
    requests = [request_of(case, doc, idx) for doc, idx in places]
    return Built(our_task(case), asked, requests, tuple(our_samples(case)), {"task": case.name})


def our_documents(case: Case, tables: Tables = LM_EVAL_0_4_13) -> list[DocumentRows]:
    built = built_of(case)
    answers = tabulate_answers(our_answers(case))
    scored = score_task(built.task, built.samples, answers, tables=tables, keep_replies=True)
    return list(list_documents(scored, built, answers))


def our_lines(case: Case) -> list[Row]:
    documents = our_documents(case)
    return join_rows(documents, [str(rest["filter"]) for rest in documents[0].rests])


def our_report(cases: Sequence[Case], trees: Sequence[object] = (), tables: Tables = LM_EVAL_0_4_13) -> Report:
    done = [
        report_task(score_task(our_task(case), our_samples(case), our_answers(case), tables=tables), tables=tables)
        for case in cases
    ]
    return build_report(done, trees, tables=tables)


def tracked(folder: Path, results: Row, names: Sequence[str]) -> tuple[Row, dict[str, list[str]]]:
    """What lm-eval's own tracker writes: its result file, and the lines of each task's sample file."""
    tracker = EvaluationTracker(output_path=str(folder))
    tracker.general_config_tracker.log_experiment_args("canned", {"model": "org/m"}, "Be brief.", "{{ chat }}", True)
    samples = results.pop("samples")
    quiet(tracker.save_results_aggregated, results=results, samples=samples)
    for name in names:
        quiet(tracker.save_results_samples, task_name=name, samples=samples[name])
    (written,) = folder.rglob("results_*.json")
    lines = {
        name: next(iter(folder.rglob(f"samples_{name}_*.jsonl"))).read_text("utf-8").split("\n")[:-1] for name in names
    }
    return json.loads(written.read_text("utf-8")), lines


def same(theirs: object, ours: object) -> bool:
    """Equal as data; numbers of likelihoods as contract A8 has it."""
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(map(same, theirs, ours))
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return list(theirs) == list(ours) and all(same(theirs[key], ours[key]) for key in theirs)
    if isinstance(theirs, float) and isinstance(ours, float):
        return theirs == ours or abs(theirs - ours) <= 1e-12 * abs(theirs)
    return theirs == ours


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_sample_files_are_equal_line_by_line(case: Case, tmp_path: Path) -> None:
    _, theirs = tracked(tmp_path / "theirs", run_lm_eval(case, draws=4), [case.name])
    ours = write_samples(tmp_path / "ours", case.name, [our_documents(case)]).read_bytes().split(b"\n")[:-1]
    assert len(ours) == len(theirs[case.name]) > 0
    for line, other in zip(theirs[case.name], ours, strict=True):
        a, b = json.loads(line), json.loads(other)
        a["arguments"], b["arguments"] = by_key(a["arguments"]), by_key(b["arguments"])
        assert same(a, b), (a, b)


@pytest.mark.parametrize("case", [CHOICES, LIKELIHOOD, ROLLING], ids=lambda case: case.name)
def test_likelihoods_with_token_counts_are_logged_without(case: Case) -> None:
    """Our backends also count tokens, and give rolling texts as likelihoods; lm-eval's log knows neither."""

    def counted(reply: object) -> Likelihood:
        return Likelihood(*reply, tokens=3) if isinstance(reply, tuple) else Likelihood(float(str(reply)), False, 7)

    replies = {place: [counted(one) for one in given] for place, given in case.replies.items()}
    assert our_lines(replace(case, replies=replies)) == our_lines(case)


def by_key(value: object) -> object:
    """Options in one order: ours are kept without one."""
    return json.loads(json.dumps(value, sort_keys=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_task_hashes_are_theirs(case: Case, tmp_path: Path) -> None:
    results, _ = tracked(tmp_path, run_lm_eval(case, draws=4), [case.name])
    assert results["task_hashes"] == {case.name: write_task(tmp_path, case.name, [our_documents(case)])}


def test_brier_rows_hold_the_score_of_the_document(tmp_path: Path) -> None:
    """The one difference: lm-eval writes the text of a numpy array there, cut to eight digits."""
    case = Case(
        "brier", "multiple_choice", CHOICES.rows, CHOICES.replies, metrics("acc", "brier_score"), config=CHOICES.config
    )
    _, theirs = tracked(tmp_path, run_lm_eval(case, draws=4), [case.name])
    for line, ours in zip(theirs["brier"], our_lines(case), strict=True):
        gold, text = json.loads(line)["brier_score"]
        assert isinstance(text, str)
        chances = np.array([float(one) for one in text.strip("[]").split()])
        assert ours["brier_score"] == pytest.approx(((chances - np.eye(2)[gold]) ** 2).sum(), abs=1e-6)


FACTS = RunFacts(
    model="canned",
    model_args={"model": "org/m"},
    system_instruction="Be brief.",
    chat_template="{{ chat }}",
    fewshot_as_multiturn=True,
)


def test_run_level_keys_are_theirs(tmp_path: Path) -> None:
    theirs, _ = tracked(tmp_path, run_lm_eval(CHOICES, TEXTS, draws=4), ["choices", "texts"])
    hashes = {case.name: write_task(tmp_path, case.name, [our_documents(case)]) for case in (CHOICES, TEXTS)}
    ours = json.loads(
        write_results(tmp_path, build_results(our_report((CHOICES, TEXTS)), FACTS, hashes=hashes)).read_text()
    )
    for key, value in theirs.items():
        if key not in ("results", "configs", *VARYING):
            assert ours[key] == value, key
    assert set(theirs) <= set(ours)


def test_every_key_of_a_whole_lm_eval_run_is_there(tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in LIKELIHOOD.rows))
    config = {
        "task": "likelihood",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test",
        "output_type": "loglikelihood",
        "doc_to_text": "question",
        "doc_to_target": "target",
        "metric_list": [dict(one) for one in LIKELIHOOD.metrics or ()],
    }
    own = TaskManager(include_defaults=False)
    found = quiet(simple_evaluate, model=Canned([LIKELIHOOD]), tasks=[config], task_manager=own, bootstrap_iters=4)
    theirs, _ = tracked(tmp_path / "theirs", dict(found), ["likelihood"])
    ours = build_results(our_report([LIKELIHOOD]), FACTS)
    assert set(theirs) - set(ours) == set()
    assert list(theirs["config"]) == list(ours["config"])


TREE_THEIRS = {"whole": lm_group("whole", ["choices", "texts"], [{"metric": "acc"}, {"metric": "exact_match"}])}
TREE_OURS = our_group("whole", ["choices", "texts"], [{"metric": "acc"}, {"metric": "exact_match"}])


def test_their_table_code_prints_our_file(tmp_path: Path) -> None:
    """Cell by cell the table that it prints of its own results."""
    theirs = run_lm_eval(CHOICES, TEXTS, groups=TREE_THEIRS, draws=4)
    path = write_results(tmp_path, build_results(our_report((CHOICES, TEXTS), [TREE_OURS]), FACTS))
    ours = json.loads(path.read_bytes())
    for column in ("results", "groups"):
        a, b = (cells(make_table(one, column)) for one in (theirs, ours))
        assert [row[:8] for row in a] == [row[:8] for row in b]
        assert len(a) > 2


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_their_table_code_prints_numbers_that_are_none(tmp_path: Path) -> None:
    """Nothing scored, one document (no error), an infinite value: never null, never NaN, no crash."""
    hopeless = Case("hopeless", "loglikelihood", LIKELIHOOD.rows, {(d, 0): [(float("nan"), False)] for d in range(3)})
    single = Case("single", "loglikelihood", LIKELIHOOD.rows[:1], {(0, 0): [(-1.0, True)]})
    endless = Case("endless", "loglikelihood", LIKELIHOOD.rows, {(d, 0): [(float("-inf"), False)] for d in range(3)})
    report = our_report((hopeless, single, endless), tables=EVALCORE)
    boundless = leaf_from_flat("boundless", {"acc,none": inf, "acc_stderr,none": nan, "sample_len": 3}).value
    report = build_report([*report.tasks, boundless])
    path = write_results(tmp_path, build_results(report, FACTS))
    text = path.read_text("ascii")
    assert "NaN" not in text
    assert "Infinity" not in text
    ours = json.loads(text, parse_constant=lambda word: pytest.fail(word))
    printed = make_table(ours)
    assert "hopeless" in printed
    assert "N/A" in printed
    for rows in ours["evalcore"]["estimates"].values():
        for estimate in rows.values():
            assert estimate["value"] is not None or estimate["reason"]
    assert ours["evalcore"]["estimates"]["boundless"]["acc,none"]["reason"] == "value is inf; stderr is nan"
