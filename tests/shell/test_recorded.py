"""Recorded runs read back: the run's own numbers to the last bit, documents by content, and bad files named."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from math import nan
from pathlib import Path

import msgspec
import pytest
import yaml
from small_tasks import evalcore, evalcore_here, write_tasks

from evalcore import GENERATE_UNTIL, MetricKey, MetricSpec, Pipeline, Step, Task, build_report, report_task
from evalcore.core.groups.tree import Group, GroupMetric, Leaf, all_groups
from evalcore.core.lm_eval.result_row import leaf_from_flat
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import thaw_dict
from evalcore.core.records.outcome import FAILED, NOT_EMITTED, UNSCORABLE
from evalcore.core.records.report import Report, TaskReport
from evalcore.core.records.task import config_of
from evalcore.lm_eval import lm_eval_results
from evalcore.shell.compare.runs import read_recorded
from evalcore.shell.logs.runs.identity import hash_content
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.logs.runs.tasks import build_recorded_task, find_spec
from evalcore.shell.output.files.results import RunFacts, build_results
from evalcore.stats import Inference

Row = dict[str, object]

MORE: dict[str, Row] = {
    "labels": {
        "output_type": "multiple_choice",
        "doc_to_text": "{{city}} is a",
        "doc_to_choice": ["city", "river"],
        "doc_to_target": "{{a % 2}}",
        "cluster": "{{a // 3}}",
        "metric_list": [
            {"metric": name} for name in ("acc", "f1", "mcc", "brier_score", "acc_all", "ece", "likelihood")
        ],
    },
    "words": {
        "output_type": "generate_until",
        "doc_to_text": "Say {{city}}:",
        "doc_to_target": "{{city|upper}}:",
        "metric_list": [
            {"metric": "bleu", "lowercase": True, "effective_order": True},
            {"metric": "chrf"},
            {"metric": "ter"},
            {"metric": "f1"},
        ],
        "filter_list": [
            {"name": "first", "filter": [{"function": "take_first"}]},
            {
                "name": "own",
                "filter": [{"function": "take_first"}],
                "metric_list": [{"metric": "exact_match", "ignore_case": True}],
            },
        ],
    },
    "several": {
        "output_type": "generate_until",
        "doc_to_text": "{{city}}",
        "doc_to_target": "{{[city, a|string]}}",
        "metric_list": [{"metric": "chrf"}, {"metric": "exact_match"}],
    },
    "draws": {
        "output_type": "generate_until",
        "doc_to_text": "{{city}} green green",
        "doc_to_target": "green",
        "repeats": 4,
        "generation_kwargs": {"temperature": 0.7, "do_sample": True},
        "repeat_cfg": {"reducer": ["mean", "pass@2", "maj@3"]},
        "metric_list": [{"metric": "exact_match"}],
    },
    "ends": {
        "output_type": "loglikelihood",
        "doc_to_text": "{{city}} lies",
        "doc_to_target": " by the sea",
        "metric_list": [{"metric": "perplexity"}, {"metric": "acc"}],
    },
    "coded": {
        "output_type": "generate_until",
        "doc_to_text": "{{city}}",
        "doc_to_target": "city",
        "process_results": "!function utils.scores",
        "metric_list": [
            {"metric": "length", "aggregation": "median", "higher_is_better": True},
            {"metric": "even", "aggregation": "mean", "higher_is_better": True},
            {"metric": "mean_by_code", "aggregation": "!function utils.average", "higher_is_better": True},
            {"metric": "most", "aggregation": "!function utils.most", "higher_is_better": True},
        ],
    },
}
CODE = """
def scores(doc, results):
    if doc["a"] == 3:
        raise ValueError("three")
    n = float(len(results[0]))
    out = {"length": n, "mean_by_code": n / 10, "most": n, "also": n * 2}
    return out if doc["a"] % 2 else {**out, "even": None if doc["a"] == 4 else 1.0}

def average(items):
    return sum(items) / len(items)

def most(items):
    return max(items)
"""
OVER = {
    "group": "over",
    "task": ["small", "labels", "ends"],
    "aggregate_metric_list": [
        {"metric": "acc", "weight_by_size": False},
        {"metric": "exact_match", "average": "children", "filter_list": ["strict", "raw"]},
        {"metric": "f1", "aggregation": "pool", "filter_list": ["none"]},
    ],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of every kind of metric, with clusters, repeats, nested groups and documents without a score."""
    home = tmp_path_factory.mktemp("home")
    folder = write_tasks(home / "tasks", 12)
    source = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": "docs.jsonl"}}, "test_split": "test"}
    for name, task in MORE.items():
        text = yaml.safe_dump({"task": name, **task, **source}, sort_keys=False)
        for function in ("scores", "average", "most"):
            text = text.replace(f"'!function utils.{function}'", f"!function utils.{function}")
        (folder / f"{name}.yaml").write_text(text)
    (folder / "utils.py").write_text(CODE)
    (folder / "over.yaml").write_text(yaml.safe_dump(OVER, sort_keys=False))
    config = {
        "model": "dummy",
        "tasks": ["over", "words", "several", "draws", "coded"],
        "include_path": "tasks",
        "output_path": "out",
    }
    (home / "run.yaml").write_text(yaml.safe_dump(config))
    done = evalcore(home, "run", "run.yaml", "--trust", "tasks/utils.py")
    assert done.returncode == 1, done.stderr  # one document has no score
    return home / "out"


def report_of(found: Recorded, inference: Inference | None = None) -> Report:
    asked = inference or Inference()
    return build_report(
        [report_task(one, inference=asked) for one in found.side.scored], found.side.trees, inference=asked
    )


def check_same_numbers(found: Recorded, left_out: tuple[tuple[str, str], ...] = ()) -> int:
    """Every estimate of results.json, field by field as it is written there; how many there were."""
    again = json.loads(json.dumps(build_results(report_of(found), RunFacts(model="any"))))["evalcore"]["estimates"]
    wanted = thaw_dict(found.results)["evalcore"]["estimates"]
    count = spread = 0
    for name, row in wanted.items():
        for key, estimate in row.items():
            if (name, key) in left_out:
                assert key not in again[name]
                continue
            made = again[name][key]
            for part in ("value", "stderr", "ci", *estimate):
                assert made[part] == estimate[part], (name, key, part)
            count += 1
            spread += len(set(made["ci"] or [])) == 2 and made["value"] not in (0, 1)
    assert spread > count / 2  # numbers of which something could be lost
    return count


def test_the_quickstart_reads_back_to_its_own_numbers(tmp_path: Path) -> None:
    config = Path(__file__).parents[2] / "examples/quickstart/config.yaml"
    done = evalcore(tmp_path, "run", config, "--output_path", "out", "--quiet")
    assert done.returncode == 0, done.stderr
    found = read_recorded(tmp_path / "out")
    assert check_same_numbers(found) == 21
    assert found.warnings == ()
    assert found.name == found.side.name == "out"
    assert sum(map(len, found.side.documents.values())) == 210
    everyday = found.texts["quickstart_everyday"]
    assert everyday[0] == "It started to rain, so she opened her"


def test_every_metric_reads_back_to_its_own_numbers(run: Path) -> None:
    found = read_recorded(run)
    # max is code that no log holds; the mean of "mean_by_code" is what its code gives, but its error is not.
    lost = (("coded", "most,none"), ("coded", "mean_by_code,none"))
    assert check_same_numbers(msgspec.structs.replace(found, side=without(found, "mean_by_code")), lost) == 36
    told = [one for one in found.warnings if "most,none" in one]
    assert len(told) == len(found.warnings) == 1
    assert "code" in told[0]
    kept = report_of(found).task("coded")["mean_by_code,none"]
    assert kept.value == pytest.approx(found.results["results"]["coded"]["mean_by_code,none"], rel=1e-12)


def without(found: Recorded, metric: str) -> object:
    scored = tuple(
        msgspec.structs.replace(one, columns=tuple(c for c in one.columns if c.key.metric != metric))
        for one in found.side.scored
    )
    return msgspec.structs.replace(found.side, scored=scored)


def test_documents_without_a_score_keep_their_state_and_reason(run: Path) -> None:
    (coded,) = [one for one in read_recorded(run).side.scored if one.task.name == "coded"]
    length, even = coded.column("length,none"), coded.column("even,none")
    assert len(length) == len(even) == 12
    assert length.status.data[3] == FAILED
    assert "three" in dict(length.reasons)[3]
    assert even.status.data[[1, 4]].tolist() == [NOT_EMITTED, UNSCORABLE]


def test_clusters_are_the_runs_own_or_those_asked_for(run: Path) -> None:
    found = read_recorded(run)
    codes = {one.task.name: one.clusters_by_key() for one in found.side.scored}
    assert codes["ends"] is None
    assert len(set(codes["labels"].values())) == 4
    assert [row.cluster for row in found.side.documents["labels"]][:4] == ["0", "0", "0", "1"]
    asked = read_recorded(run / "samples_ends.jsonl", cluster="{{a // 6}}")
    assert len({code for _, code in asked.side.scored[0].clusters}) == 2
    estimate = report_task(asked.side.scored[0])["acc,none"]
    assert len(set(estimate.spread.clusters.ints.tolist())) == 2


def test_noise_of_repeats_is_read_back(run: Path) -> None:
    found = report_of(read_recorded(run)).task("draws")["exact_match@mean,none"]
    assert found.spread.repeats == 4
    assert found.spread.noise > 0


def test_a_log_alone_has_the_usual_aggregations(run: Path) -> None:
    results = json.loads((run / "results.json").read_text())["results"]
    for task, keys in {
        "labels": ("acc,none", "f1,none", "mcc,none", "brier_score,none", "acc_all,none", "ece,none"),
        "ends": ("perplexity,none", "acc,none"),
        "lines": ("word_perplexity,none", "bits_per_byte,none"),
        "words": ("chrf,first", "ter,first", "f1,first"),
        "several": ("chrf,none", "exact_match,none"),
    }.items():
        found = read_recorded(run / f"samples_{task}.jsonl")
        assert found.results == {}
        assert found.name == task
        assert found.warnings == ()
        made = report_task(found.side.scored[0])
        few = [f"{task}: {key}: {told}" for key, estimate in made.estimates for told in estimate.warnings]
        assert list(made.warnings) == few, "of few documents, and of nothing else"
        for key in keys:
            assert made[key].value == results[task][key], key


def test_packed_logs_and_folders_of_logs(run: Path, tmp_path: Path) -> None:
    for task in ("labels", "ends"):
        packed = gzip.compress((run / f"samples_{task}.jsonl").read_bytes())
        (tmp_path / f"samples_{task}_2026-01-02T03-04-05.678901.jsonl.gz").write_bytes(packed)
    (tmp_path / "samples_ends_2025-01-02T03-04-05.678901.jsonl").write_text('{"doc_id": 0, "doc": {}, "acc": 0}\n')
    (tmp_path / "notes.jsonl").write_text('{"not": "a row"}\n')
    found = read_recorded(tmp_path)
    assert [one.task.name for one in found.side.scored] == ["ends", "labels"]
    assert len(found.side.documents["ends"]) == 12
    assert any("several logs" in one for one in found.warnings)


def test_a_group_whose_aggregation_was_code_loses_that_metric_only() -> None:
    done = [
        leaf_from_flat(name, {"acc,none": v, "f1,none": v, "sample_len": 9}).value
        for name, v in zip("ab", (0.2, 0.8), strict=True)
    ]
    metrics = (
        GroupMetric("acc", weight_by_size=False),
        GroupMetric("f1", aggregation=lambda values, sizes: max(values)),
    )
    tree: Group[TaskReport | None] = Group("g", (Leaf("a", None), Group("h", (Leaf("b", None),))), metrics, alias="G")
    written = json.loads(json.dumps(build_results(build_report(done, [tree]), RunFacts(model="any"))))
    from evalcore.shell.logs.runs.trees import grow_trees

    grown = grow_trees(written, done)
    (read,) = grown.trees
    assert read.alias == "G"
    assert [one.name for one in all_groups(read)] == ["h"]
    assert [one.metric for one in read.metrics] == ["acc"]
    assert not read.metrics[0].weight_by_size
    (told,) = grown.warnings
    assert "lambda" in told


def test_groups_that_contain_each_other_are_left_out_with_a_warning() -> None:
    from evalcore.shell.logs.runs.trees import grow_trees

    grown = grow_trees({"group_subtasks": {"g": ["h"], "h": ["g"]}, "results": {}}, [])
    assert grown.trees == ()
    assert "contain each other" in grown.warnings[0]


# --- documents by content ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ["", "\ud83d"])
def test_content_does_not_depend_on_how_it_was_written(tmp_path: Path, odd: str) -> None:
    doc = {"q": "é 日本 \u2028 \0" + odd, "n": [1, 2.5, None, True], "m": {"b": 1, "a": 2}}
    other = {"m": {"a": 2, "b": 1}, "n": [1, 2.5, None, True], "q": doc["q"]}
    rows = [{"doc_id": i, "doc": one, "target": "t", "acc": 1} for i, one in enumerate((doc, other, {**doc, "q": ""}))]
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    a.write_text("".join(json.dumps(row) + "\n" for row in rows))
    b.write_text(
        "".join(json.dumps(row, ensure_ascii=False, indent=1).replace("\n", " ") + "\n" for row in rows[2:]),
        encoding="utf-8",
    )
    one, two, three = read_recorded(a).side.documents["a"]
    assert (one.content, one.occurrence) == (two.content, 0)
    assert two.occurrence == 1
    assert three.content == read_recorded(b).side.documents["b"][0].content != one.content
    assert hash_content({"x": nan}, "t") == hash_content({"x": None}, "t")  # our own logs write null
    assert hash_content({"x": 1}, "t") != hash_content({"x": 1}, "u")


# --- files that are damaged, or something else ------------------------------------------------------------------


GOOD = '{"doc_id": 0, "doc": {"q": "a"}, "target": "t", "filter": "none", "metrics": ["acc"], "acc": 1.0}\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD + GOOD.replace("1.0", "0.0"), [":2: expected one row per document and filter", "line 1", "doc 0"]),
        (GOOD + '{"doc_id": 1, "doc": {"q"', [":2: not JSON"]),
        (GOOD + '["no row"]\n', [":2: expected a row of a sample log"]),
        (GOOD + GOOD.replace('"doc_id": 0', '"doc_id": "x"'), [":2: expected the number of a document", "'x'"]),
        (GOOD + GOOD.replace("none", "other").replace('"a"', '"b"'), [":2: expected the same document", "doc 0"]),
        (GOOD.encode()[:-1] + b', "x": "\xff"}\n', None),
        (GOOD + GOOD.replace('"doc_id": 0', '"doc_id": 1').replace('"a"', '"\xff"').replace("\xff", "\udcff"), None),
        ("", ["expected an evalcore run folder"]),
        ("a,b\n1,2\n", ["expected an evalcore run folder", "`evalcore score "]),
    ],
    ids=["twice", "torn", "no row", "no number", "other doc", "unread", "surrogate", "empty", "csv"],
)
def test_bad_logs_are_named_with_file_and_line(tmp_path: Path, text: str | bytes, words: list[str] | None) -> None:
    path = tmp_path / "samples_t.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    if words is None:
        with pytest.raises(EvalError, match=r"samples_t\.jsonl"):
            read_recorded(path)
        return
    with pytest.raises(EvalError) as wrong:
        read_recorded(path)
    assert all(word in str(wrong.value) for word in [str(path), *words]), wrong.value


def test_numbers_that_json_has_no_words_for(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    lines = [GOOD, GOOD.replace('"doc_id": 0', '"doc_id": 1').replace("1.0", "NaN")]
    ours = json.loads(GOOD.replace('"doc_id": 0', '"doc_id": 2').replace("1.0", "null"))
    lines.append(json.dumps({**ours, "evalcore": {"nonfinite": {"acc": "-inf"}}}) + "\n")
    path.write_text("".join(lines))
    column = read_recorded(path).side.scored[0].column("acc,none")
    assert column.status.data.tolist() == [0, UNSCORABLE, UNSCORABLE]
    assert [why.rpartition(" ")[2] for _, why in column.reasons] == ["nan", "-inf"]


def test_a_cluster_that_is_missing_is_named(run: Path, tmp_path: Path) -> None:
    with pytest.raises(EvalError, match=r"samples_ends\.jsonl:1: cluster: .*'cty'.*fields: a, b, city - at doc 0"):
        read_recorded(run / "samples_ends.jsonl", cluster="cty")
    rows = [json.loads(line) for line in (run / "samples_labels.jsonl").read_text().splitlines()]
    del rows[5]["evalcore"]
    path = tmp_path / "samples_labels.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(EvalError, match=r"samples_labels\.jsonl:6: .* 1 of 12 have none - at doc 5"):
        read_recorded(path)


def test_results_without_samples_say_what_to_do(run: Path, tmp_path: Path) -> None:
    shutil.copy(run / "results.json", tmp_path / "results.json")
    for path in (tmp_path, tmp_path / "results.json"):
        with pytest.raises(EvalError, match="log_samples: true"):
            read_recorded(path)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda home, run: home / "nothing", "no such file or folder"),
        (lambda home, run: home, "found neither"),
        (lambda home, run: run / "answers.jsonl", "holds answers, not scores"),
        (lambda home, run: run / "run.json", "found no results"),
    ],
)
def test_what_is_no_run_is_told(run: Path, tmp_path: Path, make: Callable[[Path, Path], Path], words: str) -> None:
    with pytest.raises(EvalError, match=words):
        read_recorded(make(tmp_path, run))


def test_a_number_that_the_scores_do_not_give_is_a_warning_with_both(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    path = tmp_path / "run/samples_ends.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["acc"] = 1.0 - rows[0]["acc"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows[:-1]))
    found = read_recorded(tmp_path / "run")
    told = [one for one in found.warnings if one.startswith("ends: acc,none")]
    stated = found.results["results"]["ends"]["acc,none"]
    assert len(told) == 1
    assert str(stated) in told[0]
    assert str(report_of(found).task("ends")["acc,none"].value) in told[0]
    assert any("11 of the 12 documents" in one for one in found.warnings)


def test_rows_without_a_filter_take_the_filters_of_the_results_in_order(tmp_path: Path) -> None:
    """lm-eval before 2025 did not write which filter a row is of."""
    rows = [{"doc_id": i % 2, "doc": {"q": i % 2}, "target": "t", "acc": float(i > 1)} for i in range(4)]
    (tmp_path / "samples_t_2024-01-01T00-00-00.1.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    results = {"results": {"t": {"acc,strict": 0.0, "acc,loose": 1.0}}, "configs": {"t": {"task": "t"}}}
    (tmp_path / "results_2024-01-01T00-00-00.1.json").write_text(json.dumps(results))
    found = read_recorded(tmp_path)
    assert found.warnings == ()
    assert {str(k): e.value for k, e in report_task(found.side.scored[0]).estimates} == results["results"]["t"]


def test_results_are_the_same_bytes_for_the_same_report() -> None:
    tree = Group("g", (Leaf("a", None),), (GroupMetric("acc", weights={"a": 1.0}),), metadata={"z": 1, "b": 2, "c": 3})
    done = [leaf_from_flat("a", {"acc,none": 0.5, "sample_len": 9}).value]
    (group,) = build_results(build_report(done, [tree]), RunFacts(model="any"))["evalcore"]["groups"]
    assert list(group["metadata"]) == ["b", "c", "z"]
    assert lm_eval_results(build_report(done, [tree]))["group_subtasks"] == {"g": ["a"]}


def test_a_run_that_counts_failures_as_zero_reads_back_as_such(tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks", 12)
    config = {"model": "dummy", "tasks": ["sums"], "include_path": "tasks", "output_path": "some", "limit": 7}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
    assert evalcore_here(tmp_path, "run", "run.yaml").returncode == 0
    replay = ["--model", "replay", "--model_args", "path=some/answers.jsonl", "--limit", 12, "--output_path", "all"]
    evalcore_here(tmp_path, "run", "run.yaml", *replay, "--on_unscorable", "zero")
    found = read_recorded(tmp_path / "all")
    assert found.warnings == ()
    stated = found.results["evalcore"]["estimates"]["sums"]
    assert all(one["n_failed"] == 5 and one["n_scored"] == 12 for one in stated.values())
    for key, one in stated.items():
        done = evalcore_here(
            tmp_path, "check", "all", "--strict", "--min", f"sums/{key}={one['value'] - 1e-6}", "--json"
        )
        gate = json.loads(done.stdout)["gates"][0]
        assert (done.returncode, gate["value"]) == (0, one["value"])


def test_a_task_made_in_python_reads_back_as_declared() -> None:
    metric = MetricSpec("exact_match", "median", ("mean", "pass@2"), False, {"ignore_case": True})
    own = Pipeline("own", (Step.of("take_first"),), (MetricSpec("f1", max, (lambda scores: 1.0,)),))
    task = Task("t", GENERATE_UNTIL, (metric,), (Pipeline("none"), own))
    config = json.loads(json.dumps(thaw_dict(config_of(task))))
    found = build_recorded_task("t", config, GENERATE_UNTIL, ["none", "own"])
    assert (found.warnings, found.task.metrics, found.task.filters[0]) == ((), (metric,), Pipeline("none"))
    assert find_spec(found.task, MetricKey("exact_match@pass@2")) == (metric, "pass@2")
    assert find_spec(found.task, MetricKey("f1", "own")) == (MetricSpec("f1", reducers=("lambda",)), "lambda")
    assert config["filter_list"][1]["metric_list"] == [{"metric": "f1", "aggregation": "max", "reducer": ["lambda"]}]
    assert found.coded == {"f1"}


@pytest.mark.parametrize("source", ["        reducer=lambda scores: max(scores),\n", "<function <lambda>>"])
def test_a_lambda_as_reducer_is_code_without_a_name(source: str) -> None:
    config = {"output_type": "generate_until", "metric_list": [{"metric": "f1", "reducer": ["mean", source]}]}
    found = build_recorded_task("t", config, GENERATE_UNTIL, ["none"])
    assert find_spec(found.task, MetricKey("f1@lambda"))[1] == "lambda"
    assert found.coded == {"f1"}
    shared = {"metric_list": [{"metric": "f1"}], "repeat_cfg": {"reducer": source}}
    assert build_recorded_task("t", shared, GENERATE_UNTIL, ["none"]).coded == {"f1"}


def test_a_config_that_is_not_read_is_a_warning_and_the_log_is_read(tmp_path: Path) -> None:
    row = {"doc_id": 0, "doc": {"q": 0}, "target": "t", "f1": 1.0, "filter": "none"}
    (tmp_path / "samples_t_2024-01-01T00-00-00.1.jsonl").write_text(json.dumps(row) + "\n")
    config = {"task": "t", "metric_list": [{"metric": "f1", "aggregation": ["mean"]}]}
    results = {"results": {"t": {"f1,none": 1.0}}, "configs": {"t": config}}
    (tmp_path / "results_2024-01-01T00-00-00.1.json").write_text(json.dumps(results))
    found = read_recorded(tmp_path)
    assert [one for one in found.warnings if "the config in the results was not read" in one]
    assert report_task(found.side.scored[0])["f1,none"].value == 1.0
