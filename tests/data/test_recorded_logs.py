"""Sample logs of four generations of lm-eval, read as recorded runs: their published figures, their documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalcore import build_report, report_task, score
from evalcore.core.records.task import MetricKey
from evalcore.lm_eval import LM_EVAL_0_4_13
from evalcore.shell.compare.compare import compare
from evalcore.shell.compare.runs import read_recorded

FOLDERS = ("asdiv_2024", "eqbench_2025", "math_perturbed_2026", "negotiationtom_2026")
CODED = ("micro_f1,none", "macro_f1,none")


@pytest.fixture(scope="module")
def folder(recorded) -> Path:
    return recorded("lmeval_raw_logs").folder


@pytest.mark.parametrize("name", FOLDERS)
def test_every_published_number_is_read_back(folder, name):
    found = read_recorded(folder / name)
    report = build_report([report_task(one) for one in found.side.scored], found.side.trees)
    logged = {one.name: one for one in (*report.tasks, *report.groups)}
    count = 0
    for task, row in found.results["results"].items():
        for text, value in row.items():
            key = MetricKey.parse(text)
            if key is None or not isinstance(value, int | float) or task == "math_rephrased_full":
                continue
            if text in CODED:
                assert logged[task].get(key) is None
                assert any(text in told and told.startswith((task, f"group {task}")) for told in found.warnings)
                continue
            assert logged[task][key].value == pytest.approx(value, rel=1e-14), (task, text)
            count += 1
    assert count == {"asdiv_2024": 1, "eqbench_2025": 4, "math_perturbed_2026": 1, "negotiationtom_2026": 5}[name]


@pytest.mark.parametrize("name", FOLDERS)
def test_their_standard_errors_from_the_same_columns(folder, name):
    """The scores themselves are theirs: under lm-eval's rules they give its errors, too."""
    from msgspec.structs import replace

    found = read_recorded(folder / name)
    for one in found.side.scored:
        report = report_task(replace(one, tables=LM_EVAL_0_4_13.name), tables=LM_EVAL_0_4_13)
        if report.name == "math_perturbed_full":
            continue  # 10 of its 5000 documents
        for key, estimate in report.estimates:
            stated = found.results["results"][report.name][key.stderr]
            assert estimate.stderr == pytest.approx(stated, rel=1e-12), (report.name, key)


def test_what_is_not_there_is_told(folder):
    told = read_recorded(folder / "math_perturbed_2026").warnings
    assert any("math_rephrased_full" in one for one in told)
    assert any("10 of the 5000 documents" in one for one in told)


def test_logs_of_2023_without_results(folder, recorded):
    wanted = recorded("lmeval_raw_logs").meta["expected"]
    found = read_recorded(folder / "bigrefactor_2023")
    assert found.warnings == ()
    assert found.results == {}
    for one in found.side.scored:
        published = wanted[f"2023_{one.task.name}"]
        report = report_task(one)
        for key, estimate in report.estimates:
            value = published.get(key.metric, published.get(f"{key.metric}_logged"))
            assert (estimate.value, estimate.n) == (value, published["n"]), (one.task.name, key)
    kinds = {one.task.name: one.task.output_type for one in found.side.scored}
    assert kinds["boolq-seq2seq"] == "generate_until"
    assert {kinds[name] for name in ("mathqa", "pubmed_qa", "qnli", "winogrande")} == {"multiple_choice"}


def test_documents_are_those_of_the_log_in_key_order(folder):
    found = read_recorded(folder / "negotiationtom_2026")
    for task, rows in found.side.documents.items():
        (path,) = (folder / "negotiationtom_2026").glob(f"samples_{task}_*.jsonl")
        docs = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert [row.key for row in rows] == sorted(doc["doc_id"] for doc in docs)
        same = {(json.dumps(doc["doc"], sort_keys=True), doc["target"]) for doc in docs}
        assert len({row.content for row in rows}) == len(same)
    clustered = read_recorded(folder / "negotiationtom_2026", cluster="dialogue_id")
    assert all(row.cluster for rows in clustered.side.documents.values() for row in rows)
    first, second = (dict(one.clusters) for one in clustered.side.scored[:2])
    assert set(first.values()) == set(second.values())  # the same dialogues in both tasks


@pytest.mark.parametrize("name", FOLDERS)
def test_a_run_has_its_own_rules_and_prompts_and_no_number_contradicts_it(folder, name):
    found = compare(folder / name, folder / name)
    assert (found.lead, found.notes, found.warnings) == ((), (), (f"A and B are the same run: {folder / name}",))
    told = [*found.runs[0].warnings, *score(folder / name).warnings]
    assert not [one for one in told if "in the results, but" in one]


def test_of_logs_without_results_the_rules_are_unknown(folder):
    for path in [folder / "bigrefactor_2023", *(folder / "bigrefactor_2023").glob("*.jsonl")]:
        found = compare(path, path)
        assert (found.lead, found.warnings) == ((), (f"A and B are the same run: {path}",))
        assert [one.partition(": ")[0] for one in found.notes] == ["rules that could not be compared"]
