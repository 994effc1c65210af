"""``evalcore score`` alone, on recorded answers as they are: every published figure, by flags and small files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalcore.core.records.task import MetricKey
from evalcore.shell.cli import main

Numbers = dict[str, dict[str, object]]

LM_EVAL = ["--policy", "lm-eval-0.4.13"]
TAKE = {"function": "take_first"}


@pytest.fixture
def score(capsys):
    """Type ``evalcore score`` and read back the estimates that it prints as JSON: task or group -> key -> estimate."""

    def run(*argv: object, codes: tuple[int, ...] = (0,)) -> Numbers:
        code = main(["score", *map(str, argv), "--json", "--quiet"])
        out, err = capsys.readouterr()
        assert code in codes, err
        return json.loads(out)["evalcore"]["estimates"]

    return run


def write(path: Path, value: object) -> Path:
    """YAML reads JSON."""
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def pipeline(name: str, *steps: dict[str, object], **more: object) -> dict[str, object]:
    return {"name": name, "filter": [*steps, TAKE], **more}


# --- BIG-Bench Hard: tasks in a column, families as groups -------------------------------------------------------


BBH_FAMILIES = ("logical_deduction", "tracking_shuffled_objects")
BBH_ANSWER = r"(?m)the answer is (.*?)\.?$"
BBH_LM_EVAL = r"(?<=the answer is )(.*)(?=.)"
# Suzgun et al. 2022 (arXiv 2210.09261), table 2: the tasks without the mark of an algorithmic task.
BBH_NLP = [
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
]


def bbh_groups(tasks: list[str]) -> list[dict[str, object]]:
    equal = {"metric": "exact_match", "weight_by_size": False, "average": "children"}
    families = {name: [one for one in tasks if one.startswith(name)] for name in BBH_FAMILIES}
    single = [one for one in tasks if not one.startswith(BBH_FAMILIES)]
    others = [one for one in single if one not in BBH_NLP]
    return [
        *({"group": name, "task": below, "aggregate_metric_list": [equal]} for name, below in families.items()),
        {"group": "macro_23", "task": [*single, *BBH_FAMILIES], "aggregate_metric_list": [equal]},
        {"group": "nlp_12", "task": BBH_NLP, "aggregate_metric_list": [equal]},
        {"group": "algorithmic_11", "task": [*others, *BBH_FAMILIES], "aggregate_metric_list": [equal]},
        {"group": "macro_27", "task": tasks, "aggregate_metric_list": [{**equal, "average": "leaves"}]},
        {"group": "micro_6511", "task": tasks, "aggregate_metric_list": [{"metric": "exact_match"}]},
    ]


@pytest.mark.parametrize("mode", ["cot", "direct"])
def test_bbh_54_accuracies_and_their_groups(recorded, score, tmp_path, mode):
    data = recorded("bbh_codex")
    expected, published = data.meta["expected"][mode], data.meta["published"]["accuracy"]
    groups = write(tmp_path / "groups.yaml", bbh_groups(sorted(expected["task_acc"])))
    patterns = {"none": BBH_ANSWER, "get-answer": BBH_LM_EVAL}
    rules = {
        "cot": [pipeline(name, {"function": "regex", "regex_pattern": one}) for name, one in patterns.items()],
        "direct": [pipeline("none", {"function": "remove_whitespace"})],
    }[mode]
    filters = write(tmp_path / "filters.yaml", {"filter_list": rules})
    columns = ["--answer", f"prediction_{mode}", "--gold", "target", "--task_column", "task"]
    found = score(data.folder / "data.jsonl.gz", *columns, "--filters", filters, "--groups", groups)
    key = "exact_match,none"
    for task, value in expected["task_acc"].items():
        one = found[task][key]
        assert (one["value"], one["n"]) == (value, expected["task_n"][task]), task
        assert one["stderr"] == pytest.approx(expected["task_stderr"][task], rel=1e-13), task
        assert 100 * one["value"] == pytest.approx(published[f"{mode}|{task}"], rel=1e-14), task
    for group in ("macro_23", "macro_27", "micro_6511", "nlp_12", "algorithmic_11"):
        assert found[group][key]["value"] == pytest.approx(expected[group], rel=1e-14), group
    for family, value in expected["family_acc"].items():
        assert found[family][key]["value"] == pytest.approx(value, rel=1e-14), family
    other = "exact_match,get-answer" if mode == "cot" else key
    wanted = expected["task_acc_lmeval_get_answer_regex"]
    assert {task: found[task][other]["value"] for task in wanted} == wanted


# --- GSM8K: a column of answers per model -----------------------------------------------------------------------


GSM8K = {
    "metric_list": [
        {
            "metric": "exact_match",
            "ignore_case": True,
            "regexes_to_ignore": [",", "\\$", "(?s).*#### ", "\\.$"],
        }
    ],
    "filter_list": [
        pipeline("strict", {"function": "regex", "regex_pattern": r"\nA: (.*)$"}),
        pipeline(
            "flexible-extract",
            {"function": "regex", "regex_pattern": r"(-?[$0-9.,]{2,})|(-?[0-9]+)", "group_select": -1},
        ),
    ],
}


@pytest.mark.parametrize("model", ["6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"])
def test_gsm8k_of_four_models(recorded, score, tmp_path, model):
    data = recorded("gsm8k_openai")
    wanted, rules = data.meta["expected"][model], write(tmp_path / "gsm8k.yaml", GSM8K)
    columns = ["--answer", model, "--gold", "answer", "--id", "idx"]
    found = score(data.folder / "data.jsonl.gz", *columns, "--filters", rules)["data"]
    strict = found["exact_match,strict"]
    assert (strict["value"], strict["n"]) == (wanted["acc"], wanted["n"])
    assert strict["stderr"] == pytest.approx(wanted["stderr"], rel=1e-13)
    assert found["exact_match,flexible-extract"]["value"] == wanted["lmeval_flexible_extract_exact_match"]


def test_gsm8k_labels_as_they_were_published(recorded, score):
    data = recorded("gsm8k_openai")
    found = score(data.folder / "data.jsonl.gz", "--score", "175b_verification_is_correct", "--id", "idx")["data"]
    wanted = data.meta["published"]["accuracy_from_labels"]["175b_verification"]
    assert found["175b_verification_is_correct,none"]["value"] == wanted


# --- WinoGrande: log-likelihoods, a column of models --------------------------------------------------------------


def test_winogrande_accuracy_and_error(recorded, score):
    data = recorded("winogrande_llama2")
    columns = ["--loglikelihoods", "loglikelihoods", "--gold", "gold", "--task_column", "model"]
    found = score(data.folder / "data.jsonl.gz", *columns, "--metric", "acc", *LM_EVAL)
    assert set(found) == set(data.meta["expected"])
    for model, wanted in data.meta["expected"].items():
        one = found[model]["acc,none"]
        assert (one["value"], one["stderr"], one["n"]) == (wanted["acc"], wanted["acc_stderr"], wanted["n"])


# --- CRUXEval: labels of ten samples -------------------------------------------------------------------------------


def test_cruxeval_pass_at_k_from_labels(recorded, score):
    data, ks = recorded("cruxeval_codellama7b"), (1, 2, 3, 5, 10)
    columns = ["--answer", "generations", "--score", "correct", "--id", "id", "--task_column", "mode"]
    reducers = [part for k in ks for part in ("--reducer", f"pass@{k}")]
    found = score(data.folder / "data.jsonl.gz", *columns, *reducers)
    for mode, wanted in data.meta["expected"].items():
        for k in ks:
            one = found[mode][f"correct@pass@{k},none"]
            assert 100 * one["value"] == pytest.approx(wanted[f"pass@{k}"], rel=1e-13), (mode, k)
            assert one["n"] == wanted["problems"]


# --- WMT17: corpus metrics under names of their own -------------------------------------------------------------


CORPUS = {
    "bleu_13a": {"metric": "bleu", "tokenize": "13a"},
    "bleu_tok_none": {"metric": "bleu", "tokenize": "none"},
    "bleu_intl": {"metric": "bleu", "tokenize": "intl"},
    "bleu_char": {"metric": "bleu", "tokenize": "char"},
    "bleu_13a_lowercase": {"metric": "bleu", "tokenize": "13a", "lowercase": True},
    "chrf": {"metric": "chrf"},
    "chrfpp": {"metric": "chrf++"},
}
SYSTEMS = tuple(f"{name}.en-de" for name in ("LIUM-NMT.4900", "online-A.0", "online-B.0", "online-F.0", "online-G.0"))


@pytest.mark.parametrize(
    "system", [*(pytest.param(system, marks=pytest.mark.slow) for system in SYSTEMS[:-1]), SYSTEMS[-1]]
)
def test_wmt17_bleu_and_chrf(recorded, score, tmp_path, system):
    """Every tokenisation for the first system; for the others what was published."""
    pytest.importorskip("sacrebleu")
    published = {name: CORPUS[name] for name in ("bleu_13a", "chrf")}
    check_corpus(recorded, score, tmp_path, system, CORPUS if system == SYSTEMS[0] else published)


@pytest.mark.slow
def test_wmt17_ter(recorded, score, tmp_path):
    """It takes seven seconds for a system."""
    pytest.importorskip("sacrebleu")
    check_corpus(recorded, score, tmp_path, SYSTEMS[0], {"ter": {"metric": "ter"}})


def check_corpus(recorded, score, tmp_path, system, metrics):
    data = recorded("wmt17_ende_sacrebleu")
    wanted = data.meta["expected"][f"newstest2017.{system}"]
    each = [pipeline(name, metric_list=[one]) for name, one in metrics.items()]
    rules = write(tmp_path / "corpus.yaml", {"filter_list": each})
    columns = ["--answer", system, "--gold", "reference", "--id", "idx"]
    # values only: the errors are resampled, and tested elsewhere
    found = score(data.folder / "data.jsonl.gz", *columns, "--filters", rules, "--bootstrap_iters", 0)["data"]
    for name, one in metrics.items():
        assert found[f"{one['metric']},{name}"]["value"] == pytest.approx(wanted[name], rel=1e-13), name


# --- MMLU-Pro: categories of a field, answers that no rule finds --------------------------------------------------


L1 = json.dumps({"regex_pattern": r"answer is \(?([A-J])\)?"})
MMLU_PRO = ["--answer", "model_output", "--gold", "answer", "--id", "question_id", "--group_by", "category"]
MMLU_PRO += ["--filter", f"regex={L1}", "--filter", "take_first", "--metric", "exact_match"]
KEY = "exact_match,none"


@pytest.mark.parametrize(("weights", "name"), [("size", "micro"), ("equal", "macro_14")])
def test_mmlu_pro_unparsed_answers_are_wrong(recorded, score, weights, name):
    data = recorded("mmlu_pro_llama3_70b")
    wanted = data.meta["expected"]["l1_regex_none_is_wrong"]
    found = score(data.folder / "data.jsonl.gz", *MMLU_PRO, "--weights", weights)
    assert found["data"][KEY]["value"] == pytest.approx(wanted[name], rel=1e-14)
    for category, one in wanted["per_category"].items():
        estimate = found[f"data_{category}"][KEY]
        assert (estimate["value"], estimate["n"]) == (pytest.approx(one["acc"], rel=1e-14), one["n"]), category


def test_mmlu_pro_unparsed_answers_are_unscorable_and_bounded(recorded, score):
    data = recorded("mmlu_pro_llama3_70b")
    wanted, lost = data.meta["expected"]["l1_regex_none_is_wrong"], data.meta["expected"]["none_l1"]
    found = score(data.folder / "data.jsonl.gz", *MMLU_PRO, "--unparsed", "unscorable", codes=(1,))
    whole = found["data"][KEY]
    assert (whole["n_scored"], whole["n_unscorable"]) == (12032 - lost, lost)
    assert whole["value"] == pytest.approx(wanted["micro"] * 12032 / (12032 - lost), rel=1e-13)
    for category, total in wanted["per_category"].items():
        one = found[f"data_{category}"][KEY]
        assert one["n_scored"] + one["n_unscorable"] == total["n"]
        assert one["lowest"] == pytest.approx(total["acc"], rel=1e-14), category
        assert one["highest"] - one["lowest"] == pytest.approx(one["n_unscorable"] / total["n"], abs=1e-12)


def test_mmlu_pro_bounds_are_printed(recorded, capsys):
    data = recorded("mmlu_pro_llama3_70b")
    flags = [*MMLU_PRO, "--unparsed", "unscorable", "--weights", "equal", "-q"]
    assert main(["score", str(data.folder / "data.jsonl.gz"), *flags]) == 1
    lines = capsys.readouterr().out.splitlines()
    wanted = data.meta["expected"]["l1_regex_none_is_wrong"]
    lowest = {"data": wanted["macro_14"], "data_law": wanted["per_category"]["law"]["acc"]}
    for name, value in lowest.items():
        (line,) = [one for one in lines if one.startswith(f"- {name}: exact_match,none is")]
        assert f"it lies between {value:.4f} and " in line


def test_mmlu_pro_published_predictions(recorded, score):
    data = recorded("mmlu_pro_llama3_70b")
    wanted = data.meta["expected"]["pred_published_none_is_wrong"]
    columns = ["--answer", "pred_published", "--gold", "answer", "--id", "question_id", "--group_by", "category"]
    zero = ["--metric", "exact_match", "--on_unscorable", "zero"]
    found = score(data.folder / "data.jsonl.gz", *columns, *zero, codes=(0, 1))
    assert found["data"][KEY]["value"] == pytest.approx(wanted["micro"], rel=1e-14)


# --- lm-eval's logs of four years ------------------------------------------------------------------------------------


def test_lm_evals_logs_by_their_own_rules(recorded, score):
    """What can be scored without code is; the recorded scores of the rest stand."""
    data, count = recorded("lmeval_raw_logs"), 0
    for folder in ("asdiv_2024", "eqbench_2025", "math_perturbed_2026", "negotiationtom_2026"):
        found = score(data.folder / folder, *LM_EVAL)
        (path,) = (data.folder / folder).glob("results*.json")
        stated = json.loads(path.read_text(encoding="utf-8"))["results"]
        for name, row in stated.items():
            for text, value in row.items():
                if (
                    MetricKey.parse(text) is None
                    or not isinstance(value, int | float)
                    or text not in found.get(name, ())
                ):
                    continue
                assert found[name][text]["value"] == pytest.approx(value, rel=1e-14), (name, text)
                error = row[text.replace(",", "_stderr,")]
                if isinstance(error, float) and name != "math_perturbed_full":  # 10 of its 5000 documents
                    assert found[name][text]["stderr"] == pytest.approx(error, rel=1e-12), (name, text)
                count += 1
    assert count == 11


MATHQA = """
import re

def choices(doc):
    return [one[4:].rstrip(" ,") for one in re.findall(r"[abcd] \\) .*?, |e \\) .*?$", doc["options"])]
"""
TASKS_2023 = {
    "mathqa": {
        "doc_to_target": "{{['a', 'b', 'c', 'd', 'e'].index(correct)}}",
        "doc_to_choice": "!function own.choices",
    },
    "pubmed_qa": {"doc_to_target": "final_decision", "doc_to_choice": ["yes", "no", "maybe"]},
    "qnli": {"doc_to_target": "label", "doc_to_choice": ["yes", "no"]},
    "winogrande": {"doc_to_target": "{{answer|int - 1}}", "doc_to_choice": "{{[option1, option2]}}"},
}


@pytest.mark.parametrize("name", TASKS_2023)
def test_logs_of_2023_by_a_task_file(recorded, score, tmp_path, name):
    data = recorded("lmeval_raw_logs")
    metrics = [{"metric": one} for one in ("acc", "acc_norm")[: 2 if name == "mathqa" else 1]]
    task = {"task": name, "output_type": "multiple_choice", "doc_to_text": "", "metric_list": metrics}
    path = write(tmp_path / f"{name}.yaml", {**task, **TASKS_2023[name]})
    path.write_text(path.read_text().replace('"!function own.choices"', "!function own.choices"), encoding="utf-8")
    (tmp_path / "own.py").write_text(MATHQA, encoding="utf-8")
    trusted = ["--trust", tmp_path / "own.py"] if name == "mathqa" else []
    found = score(data.folder / "bigrefactor_2023" / f"_{name}.jsonl", "--task", path, *trusted, *LM_EVAL)[name]
    wanted = data.meta["expected"][f"2023_{name}"]
    assert (found["acc,none"]["value"], found["acc,none"]["n"]) == (wanted["acc"], wanted["n"])
    assert found["acc,none"]["stderr"] == pytest.approx(wanted["acc_stderr"], rel=1e-14)
    assert "acc_norm,none" not in found or found["acc_norm,none"]["value"] == wanted["acc_norm"]


def test_a_log_with_fewer_documents_than_its_results_says_so(recorded, capsys):
    data = recorded("lmeval_raw_logs")
    assert main(["score", str(data.folder / "math_perturbed_2026"), "--quiet", "--csv"]) == 0
    assert "10 of the 5000 documents" in capsys.readouterr().err


def test_boolq_of_2023_as_logged_and_stripped(recorded, score):
    data = recorded("lmeval_raw_logs")
    wanted, path = data.meta["expected"]["2023_boolq-seq2seq"], data.folder / "bigrefactor_2023/_boolq-seq2seq.jsonl"
    for flags, value in (
        ([], wanted["exact_match_logged"]),
        (["--filter", "remove_whitespace", "--filter", "take_first"], wanted["exact_match_after_strip"]),
    ):
        one = score(path, *flags)["boolq-seq2seq"]["exact_match,none"]
        assert (one["value"], one["n"]) == (value, wanted["n"])


F1 = """
def _f1(counts):
    hits, extra, lost = (sum(part) for part in zip(*counts))
    return 2.0 * hits / (2 * hits + extra + lost) if hits else 0.0

def micro_f1(items):
    return _f1([(len(set(g) & set(s)), len(set(s) - set(g)), len(set(g) - set(s))) for g, s in items])

def macro_f1(items):
    labels = sorted({label for g, s in items for label in (*g, *s)})
    each = [_f1([(l in g and l in s, l in s and l not in g, l in g and l not in s) for g, s in items]) for l in labels]
    return sum(each) / len(each)
"""


def test_recorded_label_sets_by_an_aggregation_of_our_own(recorded, score, tmp_path):
    """Two metrics whose scores are label sets: the log has the sets, a trusted file has the aggregation."""
    data = recorded("lmeval_raw_logs")
    metrics = [f'{{"metric": "{one}", "aggregation": !function f1.{one}}}' for one in ("micro_f1", "macro_f1")]
    path = tmp_path / "labels.yaml"
    path.write_text(
        f"task: labels\noutput_type: generate_until\nmetric_list: [{', '.join(metrics)}]\n", encoding="utf-8"
    )
    (tmp_path / "f1.py").write_text(F1, encoding="utf-8")
    (log,) = (data.folder / "negotiationtom_2026").glob("*intention*.jsonl")
    flags = ["--task", path, "--trust", tmp_path / "f1.py", "--score", "micro_f1", "--score", "macro_f1"]
    found = score(log, *flags, *LM_EVAL)["negotiationtom_intention"]
    published = data.meta["expected"]["negotiationtom_intention"]["published"]
    for key in ("micro_f1,none", "macro_f1,none"):
        assert found[key]["value"] == pytest.approx(published[key], rel=1e-13), key


# --- Inspect's logs --------------------------------------------------------------------------------------------------


def runs_of(data):
    """File name -> what is expected of it."""
    expected = data.meta["expected"]
    return {Path(one["path"]).name: expected[one["run"]] for one in data.meta["provenance"]["files"]}


def test_inspect_logs_by_the_scores_they_have(recorded, score):
    data = recorded("inspect_logs")
    paths = sorted((data.folder / "raw").glob("*.eval"))
    assert len(paths) == 4
    for path in paths:
        wanted = runs_of(data)[path.name]
        one = score(path)["popularity"][f"{wanted['scorer']},none"]
        assert one["value"] == pytest.approx(wanted["published"]["accuracy"], rel=1e-15)
        assert one["stderr"] == pytest.approx(wanted["published"]["stderr"], rel=1e-13)
        assert one["n"] == wanted["n_samples"]


PLAIN = json.dumps({"ignore_case": True, "ignore_punctuation": True, "regexes_to_ignore": [r"\s"]})


def test_inspect_logs_scored_again_from_their_answers(recorded, score):
    data = recorded("inspect_logs")
    flags = ["--metric", f"exact_match={PLAIN}", "--reducer", "mean"]
    paths = sorted((data.folder / "raw").glob("*.eval"))
    found = score(*paths, *flags)  # one call for all: each has a name of its own
    assert len(found) == 4
    for name, row in found.items():
        (wanted,) = [one for file, one in runs_of(data).items() if file in name]
        assert row["exact_match,none"]["value"] == pytest.approx(wanted["accuracy"], rel=1e-15)


def test_inspect_rows_as_a_table(recorded, score, tmp_path):
    """C is right and I is wrong; epochs are repeats."""
    data = recorded("inspect_logs")
    metrics = {"metric_list": [{"metric": "exact_match"}], "repeat_cfg": {"reducer": "mean"}}
    task = write(
        tmp_path / "letters.yaml", {"task": "letters", "output_type": "generate_until", "doc_to_target": "C", **metrics}
    )
    columns = ["--answer", "score", "--id", "sample_id", "--repeat", "epoch", "--task_column", "run"]
    found = score(data.folder / "data.jsonl", *columns, "--task", task)
    assert set(found) == set(data.meta["expected"])
    for run, wanted in data.meta["expected"].items():
        one = found[run]["exact_match,none"]
        assert one["value"] == pytest.approx(wanted["published"]["accuracy"], rel=1e-15), run
        assert one["stderr"] == pytest.approx(wanted["published"]["stderr"], rel=1e-13), run
        assert one["n"] == wanted["n_samples"]


def test_inspect_answers_as_a_table_scored_again(recorded, score):
    data = recorded("inspect_logs")
    columns = [
        "--answer",
        "answer",
        "--gold",
        "target",
        "--id",
        "sample_id",
        "--repeat",
        "epoch",
        "--task_column",
        "run",
    ]
    found = score(data.folder / "data.jsonl", *columns, "--metric", f"exact_match={PLAIN}", "--reducer", "mean")
    for run, wanted in data.meta["expected"].items():
        if wanted["scorer"] == "match":
            one = found[run]["exact_match,none"]
            assert one["value"] == pytest.approx(wanted["accuracy"], rel=1e-15), run
            assert one["stderr"] == pytest.approx(wanted["stderr"], rel=1e-13), run
