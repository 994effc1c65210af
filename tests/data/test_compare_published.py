"""``compare`` on published answers: two GSM8K models, and BIG-Bench Hard with and without chain of thought."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from run_folders import replay_run
from scipy import stats
from test_bbh_codex import ALGORITHMIC, ANSWER, FAMILIES, NLP

from evalcore.shell.cli import main

STRICT = [
    {"name": "strict", "filter": [{"function": "regex", "regex_pattern": "\\nA: (.*)$"}, {"function": "take_first"}]}
]
EXACT = {"metric": "exact_match", "regexes_to_ignore": [",", "\\$", "\\.$"], "ignore_case": True}
COT = [{"name": "none", "filter": [{"function": "regex", "regex_pattern": ANSWER}, {"function": "take_first"}]}]
DIRECT = [{"name": "none", "filter": [{"function": "remove_whitespace"}, {"function": "take_first"}]}]


def compared(capsys, *paths) -> dict:
    capsys.readouterr()
    assert main(["compare", *map(str, paths), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def gsm8k(recorded, tmp_path_factory):
    data = recorded("gsm8k_openai")
    rows = [{**row, "target": row["answer"]} for row in data.rows]
    models = ("6b_verification", "175b_finetuning", "175b_verification")
    runs = {
        name: replay_run(tmp_path_factory.mktemp("gsm8k") / name, {"gsm8k": rows}, name, STRICT, EXACT)
        for name in models
    }
    return data, runs


def test_two_columns_of_gsm8k(gsm8k, capsys):
    data, runs = gsm8k
    a, b = "6b_verification", "175b_finetuning"
    found = compared(capsys, runs[a], runs[b])
    (line,) = found["pairs"][0]["lines"]
    assert (line["a"], line["b"]) == tuple(data.meta["expected"][name]["acc"] for name in (a, b))
    right = np.array([[row[f"{name}_is_correct"] for row in data.rows] for name in (a, b)], float)
    apart = right[0] - right[1]
    wins, losses = int(np.sum(apart > 0)), int(np.sum(apart < 0))
    assert (len(line["better"]), len(line["worse"])) == (wins, losses)
    assert line["difference"] == pytest.approx(apart.mean(), abs=1e-15)
    assert line["stderr"] == pytest.approx(stats.sem(apart), rel=1e-12)
    tail = stats.binom.cdf(losses, wins + losses, 0.5) - stats.binom.pmf(losses, wins + losses, 0.5) / 2
    assert line["p_value"] == pytest.approx(2 * tail, rel=1e-9)
    assert line["ci_low"] < apart.mean() < line["ci_high"]
    unpaired = np.sqrt(sum(data.meta["expected"][name]["stderr"] ** 2 for name in (a, b)))
    assert line["stderr"] < 0.95 * unpaired, "pairing pays"


@pytest.mark.parametrize("flags", [("--id", "idx"), ("--prompt", "question"), ()])
def test_the_same_two_as_tables(recorded, gsm8k, tmp_path, capsys, flags):
    """However documents are known, the answers are no part of them: the paired numbers are those of the runs."""
    _, runs = gsm8k
    folders = []
    for name in ("6b_verification", "175b_finetuning"):
        path = tmp_path / name / "gsm8k.csv"
        path.parent.mkdir()
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("idx", "question", "answer", "reply", "correct"))
            rows = recorded("gsm8k_openai").rows
            writer.writerows((at, row["question"], row["answer"], row[name], 0) for at, row in enumerate(rows))
        folder = tmp_path / name / "out"
        pattern = json.dumps({"regex_pattern": "\nA: (.*)$"})
        metric = "exact_match=" + json.dumps({key: value for key, value in EXACT.items() if key != "metric"})
        told = ["score", str(path), "--answer", "reply", "--gold", "answer", *flags]
        told += ["--filter", f"regex={pattern}", "--metric", metric, "-o", str(folder), "--quiet"]
        assert main(told) == 0
        folders.append(folder)
    (ours,) = compared(capsys, *folders)["pairs"][0]["lines"]
    (theirs,) = compared(capsys, runs["6b_verification"], runs["175b_finetuning"])["pairs"][0]["lines"]
    same = ("n", "a", "b", "difference", "stderr", "ci_low", "ci_high", "p_value")
    assert {key: ours[key] for key in same} == {key: theirs[key] for key in same}
    assert main(["check", str(folders[1]), "--baseline", str(folders[0])]) == 1


def test_three_columns_are_three_pairs_in_one_family(gsm8k, capsys):
    _, runs = gsm8k
    found = compared(capsys, *runs.values())
    assert len(found["pairs"]) == 3
    assert found["family"] == 3


@pytest.fixture(scope="module")
def bbh(recorded, tmp_path_factory):
    by_task: dict[str, list[dict]] = {}
    for row in recorded("bbh_codex").rows:
        by_task.setdefault(row["task"], []).append(row)

    def group(name, children):
        spec = {"metric": "exact_match", "weight_by_size": False, "average": "children"}
        return {"group": name, "task": children, "aggregate_metric_list": [spec]}

    def node(name):
        return group(name, list(FAMILIES[name])) if name in FAMILIES else name

    tree = [
        group("bbh", [group("nlp", list(map(node, NLP))), group("algorithmic", list(map(node, ALGORITHMIC)))]),
    ]
    return {
        mode: replay_run(tmp_path_factory.mktemp("bbh") / mode, by_task, f"prediction_{mode}", filters, groups=tree)
        for mode, filters in (("cot", COT), ("direct", DIRECT))
    }


def test_chain_of_thought_against_answer_only(bbh, recorded, capsys):
    published = recorded("bbh_codex").meta["published"]["accuracy"]
    found = compared(capsys, bbh["cot"], bbh["direct"])
    (one,) = found["pairs"]
    lines = {line["task"].split("::")[-1]: line for line in one["lines"]}
    tasks = {name: line for name, line in lines.items() if line["kind"] == "task"}
    assert len(tasks) == 27
    for name, line in tasks.items():
        assert 100 * line["a"] == pytest.approx(published[f"cot|{name}"], abs=1e-9)
        assert 100 * line["b"] == pytest.approx(published[f"direct|{name}"], abs=1e-9)
    for family, members in FAMILIES.items():
        assert lines[family]["difference"] == pytest.approx(
            np.mean([lines[name]["difference"] for name in members]), abs=1e-12
        )
    halves = [lines[name]["difference"] for name in ("nlp", "algorithmic")]
    assert lines["bbh"]["difference"] == pytest.approx(np.mean(halves), abs=1e-12)
    assert lines["bbh"]["p_adjusted"] < 0.01
    worse = {name for name, line in tasks.items() if line["difference"] < 0 and line["p_adjusted"] <= 0.05}
    assert {name for name in tasks if published[f"cot|{name}"] < published[f"direct|{name}"]} >= worse
    assert found["family"] == len(lines)


def test_a_run_against_itself(bbh, capsys):
    for line in compared(capsys, bbh["cot"], bbh["cot"])["pairs"][0]["lines"]:
        assert (line["difference"], line["p_value"]) == (0, 1)
