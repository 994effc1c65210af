"""Results and samples as tables: every number, stable types, nothing that a table cannot hold; and as Parquet."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_runs import rows_of as sample_rows
from sample_runs import write_log, write_run
from test_output_rows import small_report

from evalcore import EvalError, Failure, Report, build_report
from evalcore.core.lm_eval.sample_log import DocumentRows
from evalcore.core.records.errors import MissingExtra
from evalcore.frames import samples_of, to_arrow, to_pandas, to_polars, write_parquet
from evalcore.groups import leaf_from_flat
from evalcore.lm_eval import lm_eval_results
from evalcore.shell.cli import main
from evalcore.shell.compare.runs import read_recorded
from evalcore.shell.output.files.arrow_tables import RESULTS, TYPES, list_results
from evalcore.shell.output.files.results import RunFacts, build_results
from evalcore.shell.output.files.run_files import write_results, write_samples
from evalcore.shell.output.files.sample_frames import SAMPLES
from evalcore.shell.output.files.tracker import write_lm_eval
from evalcore.shell.output.terminal.number_rows import drop_repeats, list_rows

REPORT = small_report()
QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart" / "config.yaml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("frames") / "run"
    command = [sys.executable, "-m", "evalcore", "run", str(QUICKSTART), "--output_path", str(out), "--parquet", "-q"]
    subprocess.run(command, check=True, capture_output=True)
    return out


# --- results ----------------------------------------------------------------------------------------------------------


def test_a_report_is_the_rows_of_the_other_writers_and_more() -> None:
    frame = to_arrow(REPORT).to_pylist()
    found = [row for row in drop_repeats(list_rows(REPORT)) if row.metric or not row.group]
    places = {(row["task"], row["metric"] or "", row["filter"] or ""): at for at, row in enumerate(frame)}
    rows = sorted(found, key=lambda row: places[row.name, row.metric, row.filter])
    assert len(frame) == len(rows) > 3
    for ours, row in zip(frame, rows, strict=True):
        assert [ours[key] for key in ("task", "alias", "is_group", "depth", "num_fewshot")] == [row.name, row.alias, row.group, row.depth, row.shots]  # fmt: skip
        assert (ours["metric"] or "", ours["filter"] or "", ours["reason"] or "") == (
            row.metric,
            row.filter,
            row.reason,
        )
        assert (ours["value"], ours["stderr"], ours["ci_low"], ours["ci_high"]) == (
            row.value,
            row.stderr,
            row.low,
            row.high,
        )
        assert (ours["n"], ours["n_failed"] or 0, ours["n_unscorable"] or 0) == (row.n, row.failed, row.unscorable)
        assert (ours["higher_is_better"], ours["version"] or "") == (row.higher, row.version)
    assert [row["task"] for row in frame if row["metric"] != "acc_norm" and row["filter"] != "raw"] == ["low", "choices", "texts", "absent", "alone"]  # fmt: skip
    estimate = REPORT.task("texts")["exact_match,number"]
    (ours,) = [row for row in frame if (row["task"], row["filter"]) == ("texts", "number")]
    assert estimate.counts.failed > 0
    counts = estimate.counts
    assert (ours["n_scored"], ours["lowest"], ours["highest"]) == (counts.scored, counts.lowest, counts.highest)
    assert ours["signature"] == estimate.signature


def test_results_folder_file_and_record_give_the_same_table(folder: Path) -> None:
    path = folder / "results.json"
    table = to_arrow(json.loads(path.read_bytes()))
    assert table.num_rows > 15
    for same in (folder, str(folder), path, read_recorded(folder)):
        assert to_arrow(same).equals(table)
    assert pq.read_table(folder / "results.parquet").equals(table)


def test_another_confidence_is_kept_where_numbers_are_made_again(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "evalcore", "run", str(QUICKSTART), "--output_path", str(tmp_path / "r"), "-q"]
    subprocess.run([*command, "--confidence", "0.5", "--limit", "8"], check=True, capture_output=True)
    again = to_arrow(read_recorded(tmp_path / "r"))
    assert again.equals(to_arrow(tmp_path / "r"))
    assert not (tmp_path / "r" / "results.parquet").exists()


def test_types_do_not_depend_on_what_is_there() -> None:
    empty, full = to_arrow({"results": {}}), to_arrow(REPORT)
    assert empty.schema == full.schema
    assert empty.num_rows == 0
    assert [str(kind) for kind in empty.schema.types] == [
        {"bool_": "bool", "float64": "double"}.get(TYPES[kind], TYPES[kind]) for kind in RESULTS.values()
    ]
    for both in (to_pandas, to_polars):
        assert list(both({"results": {}}).dtypes) == list(both(REPORT).dtypes)
    assert to_arrow([]).schema.names == list(SAMPLES)


def test_pandas_keeps_whole_numbers_and_truth_values_that_are_missing() -> None:
    frame = to_pandas({"results": {"a": {"acc,none": 0.5, "sample_len": 3}, "b": {"f1,none": 1}}})
    assert [str(frame[name].dtype) for name in ("n", "num_fewshot", "higher_is_better", "value")] == ["Int64", "Int64", "boolean", "float64"]  # fmt: skip
    assert frame["n"].tolist()[0] == 3
    assert frame["n"].isna().tolist() == [False, True]
    assert to_polars({"results": {"a": {"acc,none": 0.5}}}).select("task", "value").rows() == [("a", 0.5)]


def test_numbers_that_are_none_are_null() -> None:
    flat = {
        "acc,none": math.inf,
        "acc_stderr,none": math.nan,
        "f1,none": 0.25,
        "f1_stderr,none": "N/A",
        "sample_len": 3,
    }
    report = build_report([leaf_from_flat("a", flat).value])
    for source in (report, build_results(report, RunFacts(model="m")), {"results": {"a": flat}}):
        one, two = to_arrow(source).to_pylist()
        assert [one["value"], one["stderr"], two["value"], two["stderr"], two["n"]] == [None, None, 0.25, None, 3]
    assert not to_pandas(report)["value"].map(math.isinf).any()


def test_old_files_of_lm_eval() -> None:
    """Indented aliases, every task a group of nothing, counts apart from the numbers or not at all."""
    old = {
        "results": {
            "g": {"acc,none": 0.5, "alias": "g"},
            "a": {"acc,none": 0.5, "acc_stderr,none": 0.1, "alias": " - a"},
        },
        "groups": {"g": {"acc,none": 0.5, "alias": "g"}},
        "group_subtasks": {"a": [], "g": ["a"]},
        "versions": {"a": 1.0, "g": "N/A"},
        "n-shot": {"a": 5, "g": 0},
        "n-samples": {"a": {"original": 9, "effective": 7}},
    }
    rows = list_results(old)
    assert [(row["task"], row["alias"], row["is_group"], row["depth"]) for row in rows] == [("g", "g", True, 0), ("a", "a", False, 1)]  # fmt: skip
    assert [(row["version"], row["num_fewshot"], row["n"]) for row in rows] == [(None, 0, None), ("1.0", 5, 7)]


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(categories=None), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "acc,none", "acc_stderr,none", "alias", "ci"]), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
KEYS = ["groups", "group_subtasks", "versions", "n-shot", "higher_is_better", "evalcore"]


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(["a", "b"]), JUNK, max_size=2), st.dictionaries(st.sampled_from(KEYS), JUNK))
def test_any_results_give_a_table_or_one_message(rows: dict[str, object], rest: dict[str, object]) -> None:
    try:
        table = to_arrow({**rest, "results": rows})
    except EvalError as wrong:
        assert "Arrow" in str(wrong)  # noqa: PT017
        return
    assert table.schema.names == list(RESULTS)
    names = [(row["task"], row["metric"], row["filter"]) for row in table.to_pylist()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("wrong", [3, None, {"doc_id": 1}, {}, [1], [{"a": 1}], ["text"], "no/such/folder"])
def test_what_is_no_results_is_refused(wrong: object) -> None:
    with pytest.raises(EvalError, match="expected"):
        to_arrow(wrong)  # type: ignore[arg-type]


def test_a_missing_package_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, make, extra in (
        ("pyarrow", to_arrow, "parquet"),
        ("pandas", to_pandas, "frames"),
        ("polars", to_polars, "frames"),
    ):
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, module, None)
            with pytest.raises(MissingExtra, match=rf'pip install "evalcore\[{extra}\]"'):
                make(REPORT)


# --- samples ----------------------------------------------------------------------------------------------------------


def test_samples_of_a_run(folder: Path) -> None:
    rows = list(samples_of(folder))
    lines = sum(len(path.read_bytes().splitlines()) for path in folder.glob("samples_*.jsonl"))
    table = to_arrow(rows)
    assert table.num_rows == len(rows) == lines == 260
    for row, flat in zip(rows, table.to_pylist(), strict=True):
        assert json.loads(flat["doc"]) == row["doc"]
        assert json.loads(flat["arguments"]) == row["arguments"]
        assert (flat["task"], flat["doc_id"], flat["filter"], flat["target"]) == (
            row["task"],
            row["doc_id"],
            row["filter"],
            row["target"],
        )
        for metric in row["metrics"]:
            score = row[metric]
            assert (json.loads(flat[metric]) if isinstance(score, list) else flat[metric]) == score
        assert all(flat[name] is None for name in table.schema.names[len(SAMPLES) :] if name not in row["metrics"])
    choices = [row for row in table.to_pylist() if row["task"] == "quickstart_world"]
    assert all(len(row["loglikelihoods"]) == 4 and len(row["resps"]) == 4 for row in choices)
    assert [float(json.loads(one)[0]) for one in choices[0]["resps"]] == choices[0]["loglikelihoods"]
    several = next(row for row in table.to_pylist() if row["task"] == "quickstart_simple_questions")
    assert several["resps"] == next(row for row in rows if row["task"] == several["task"])["resps"][0]
    assert len(several["resps"]) == 4
    assert several["loglikelihoods"] is None


def test_samples_of_some_tasks(folder: Path) -> None:
    frame = to_pandas(samples_of(folder, ["quickstart_world"]))
    results = to_pandas(folder)
    wanted = results[(results.task == "quickstart_world") & (results.metric == "acc")]["value"]
    assert frame["acc"].mean() == pytest.approx(float(wanted.iloc[0]))
    with pytest.raises(EvalError, match="did you mean 'quickstart_world'"):
        list(samples_of(folder, ["quickstart_wold"]))
    log = folder / "samples_quickstart_world.jsonl"
    assert to_arrow(log).num_rows == len(frame)
    assert to_polars(log).shape == frame.shape


def test_rows_in_memory_and_of_old_logs() -> None:
    rows = [
        {"doc_id": 0, "doc": {"q": 1}, "arguments": [("Q", " a"), ("Q", " b")], "resps": [[(-1.5, True, 3)], [(-math.inf, False, 3)]], "acc": 1},
        {"doc_id": 1, "doc": {}, "arguments": ["Q", " a"], "resps": [[-1.0, False], [-2.0, False]], "acc": True},
        {"doc_id": 2, "doc": {}, "arguments": [["Q", {}]], "resps": [[Failure("lost"), "0.5", "True"]], "acc": math.nan},
        {"doc_id": 3, "doc": {}, "arguments": [["text"]], "resps": [["-10.25"]], "filtered_resps": ["-10.25"], "acc": None},
    ]  # fmt: skip
    one, old, text, rolling = to_arrow(rows).to_pylist()
    assert (one["loglikelihoods"], old["loglikelihoods"]) == ([-1.5, None], [-1.0, -2.0])
    assert (text["resps"], text["loglikelihoods"]) == ([None, "0.5", "True"], None)
    assert (rolling["loglikelihoods"], rolling["prompt"]) == ([-10.25], "text")
    assert [row["acc"] for row in (one, old, text, rolling)] == [1.0, 1.0, None, None]


def test_metrics_never_hide_a_column() -> None:
    row = {
        "doc_id": 0,
        "doc": {},
        "arguments": [["Q", {}]],
        "resps": [["r"]],
        "metrics": ["prompt", "prompt_score", "acc"],
    }
    table = to_arrow(
        [{**row, "prompt": 0.25, "prompt_score": 0.5, "acc": [1, 2]}, {**row, "prompt": 1, "prompt_score": 0, "acc": 3}]
    )
    assert table.schema.names[-3:] == ["prompt_score", "prompt_score_score", "acc"]
    first, second = table.to_pylist()
    assert (first["prompt"], first["prompt_score"], first["prompt_score_score"]) == ("Q", 0.25, 0.5)
    assert (first["acc"], second["acc"]) == ("[1, 2]", "3")


def test_lone_surrogates_are_escaped_and_told(tmp_path: Path) -> None:
    row = {
        "doc_id": 0,
        "doc": {"q": "\ud83d é"},
        "target": "日本",
        "arguments": [["é", {}]],
        "resps": [["a \ud83d"]],
        "filter": "none",
        "metrics": ["acc"],
        "acc": 1.0,
    }
    fine = {**row, "doc_id": 1, "doc": {"q": "é"}, "resps": [["\\ud83d"]]}
    path = write_samples(tmp_path, "t", [map(DocumentRows, [row, fine])])
    for table in (to_arrow([row, fine]), to_arrow(path)):
        one, two = table.to_pylist()
        assert json.loads(one["doc"]) == row["doc"]
        assert (one["resps"], one["escaped"]) == (["a \\ud83d"], True)
        assert (two["resps"], two["escaped"], two["doc"]) == (["\\ud83d"], False, '{"q": "é"}')
        assert one["target"] == "日本"
    assert to_polars([row, fine])["escaped"].to_list() == [True, False]
    assert to_arrow({"results": {"\ud83d": {"acc,\udc00": 1.0}}}).to_pylist()[0]["task"] == "\\ud83d"


# --- Parquet ----------------------------------------------------------------------------------------------------------


def test_parquet_files_are_the_tables(folder: Path) -> None:
    logs = sorted(folder.glob("samples_*.jsonl"))
    assert sorted(path.stem for path in folder.glob("*.parquet")) == ["results", *(path.stem for path in logs)]
    for log in logs:
        assert pq.read_table(log.with_suffix(".parquet")).equals(to_arrow(log)), log.name
    assert b"evalcore" in pq.read_schema(folder / "results.parquet").metadata


def small_run(folder: Path, tasks: int = 2, rows: int = 3) -> Path:
    leaves = [leaf_from_flat(f"t{i}", {"acc,none": 0.5, "sample_len": rows}).value for i in range(tasks)]
    write_results(folder, build_results(build_report(leaves), RunFacts(model="m")))
    for i in range(tasks):
        write_samples(folder, f"t{i}", [[DocumentRows({"doc_id": doc, "doc": {"q": doc}, "arguments": [["Q", {}]], "resps": [["r"]], "metrics": ["acc"], "acc": 1.0}) for doc in range(rows)]])  # fmt: skip
    return folder


def test_long_logs_are_written_in_parts_of_one_schema(tmp_path: Path) -> None:
    """A score that is text only in the last part is text in all of them."""
    folder = small_run(tmp_path, tasks=1)
    row = {"doc": {"q": "é" * 50}, "arguments": [["Q", {}]], "resps": [["r"]], "metrics": ["acc"]}
    rows = ({**row, "doc_id": i, "acc": [1, 2] if i == 2499 else 1.0} for i in range(2500))
    write_samples(folder, "t0", [map(DocumentRows, rows)])
    _, path = write_parquet(folder)
    found = pq.ParquetFile(path)
    assert found.metadata.num_row_groups == 3
    scores = found.read().column("acc").to_pylist()
    assert (scores[0], scores[-1], len(scores)) == ("1.0", "[1, 2]", 2500)


def test_a_folder_without_samples_and_with_stale_ones(tmp_path: Path) -> None:
    folder = small_run(tmp_path)
    assert [path.name for path in write_parquet(folder)] == [
        "results.parquet",
        "samples_t0.parquet",
        "samples_t1.parquet",
    ]
    theirs = folder / "samples_mine.parquet"
    pq.write_table(pa.table({"x": [1]}), theirs)
    (folder / "samples_t1.jsonl").unlink()
    assert [path.name for path in write_parquet(str(folder))] == ["results.parquet", "samples_t0.parquet"]
    assert sorted(path.name for path in folder.glob("samples_*.parquet")) == [
        "samples_mine.parquet",
        "samples_t0.parquet",
    ]
    (folder / "samples_t0.jsonl").unlink()
    assert [path.name for path in write_parquet(folder)] == ["results.parquet"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    folder = small_run(tmp_path, tasks=1)
    write_parquet(folder)
    before = (folder / "samples_t0.parquet").read_bytes()
    with (folder / "samples_t0.jsonl").open("a") as file:
        file.write('{"doc_id": 9, "doc"')
    with pytest.raises(EvalError, match=r"samples_t0.jsonl:4"):
        write_parquet(folder)
    assert (folder / "samples_t0.parquet").read_bytes() == before
    assert not list(folder.glob(".*"))


def test_a_run_renews_the_parquet_files_it_finds(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "evalcore", "run", str(QUICKSTART), "--output_path", str(tmp_path / "r")]
    subprocess.run([*command, "--parquet", "--limit", "4"], check=True, capture_output=True)
    done = subprocess.run([*command, "--limit", "6", "--overwrite"], check=True, capture_output=True, text=True)
    assert "8 .parquet files" in done.stdout
    assert pq.read_table(tmp_path / "r" / "results.parquet").equals(to_arrow(tmp_path / "r"))
    assert pq.read_table(tmp_path / "r" / "samples_quickstart_world.parquet").num_rows == 6


def test_lm_eval_results_of_a_report_are_enough() -> None:
    report: Report = REPORT
    assert to_arrow(lm_eval_results(report)).equals(to_arrow(report))


def test_a_missing_pyarrow_is_told_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "pyarrow.parquet")
    assert main(["run", str(QUICKSTART), "--output_path", str(tmp_path / "r"), "--parquet"]) == 2
    assert capsys.readouterr().err == "evalcore: this needs 'pyarrow': pip install \"evalcore[parquet]\"\n"
    assert not (tmp_path / "r").exists()


def test_numbers_made_again_follow_the_rules_of_the_run(tmp_path: Path) -> None:
    """lm-eval's median of an even number of scores is the upper of the two in the middle."""
    metric = {"metric": "acc", "aggregation": "median"}
    config = {"task": "t", "output_type": "generate_until", "metric_list": [metric]}
    results = {"configs": {"t": config}, "evalcore": {"policy": "lm-eval-0.4.13"}}
    run = read_recorded(write_run(tmp_path, {"t": [0.0, 0.75, 0.25, 0.5]}, results=results))
    [row] = to_arrow(run).to_pylist()
    assert row["value"] == 0.5


def test_shots_that_a_log_does_not_say_are_null(tmp_path: Path) -> None:
    [row] = to_arrow(read_recorded(write_run(tmp_path, {"t": [1.0, 0.0]}))).to_pylist()
    assert row["num_fewshot"] is None


def test_of_several_runs_in_a_folder_one_is_taken_and_told(tmp_path):
    """The newest of several results is read, and the caller hears of the others."""
    for stamp, value in (("2025-01-01T00-00-00.000001", 0.25), ("2025-01-02T00-00-00.000001", 0.5)):
        results = {"results": {"a": {"acc,none": value}}, "model_name_sanitized": "m"}
        (tmp_path / f"results_{stamp}.json").write_text(json.dumps(results))
    with pytest.warns(UserWarning, match="has 2 results files; read results_2025-01-02.*, the newest"):
        assert to_arrow(tmp_path)["value"].to_pylist() == [0.5]
    with pytest.warns(UserWarning, match="has 2 results files"):
        write_lm_eval(tmp_path, tmp_path / "out", time="2025-01-03T00-00-00.000001")


def test_rows_that_are_no_sample_log_are_told_so(tmp_path: Path) -> None:
    path = tmp_path / "plain.jsonl"
    path.write_text('{"q": "?", "a": "4"}\n{"q": "!", "a": "5"}\n')
    with pytest.raises(EvalError, match=r"no sample log: its rows need doc_id, .*; these have q, a.*evalcore score"):
        to_arrow(path)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_shards_of_one_run_are_read_together(tmp_path: Path) -> None:
    stamps = ["2025-01-01T00-00-00.000001", "2025-01-02T00-00-00.000001"]
    rows = sample_rows("t", "acc", [1.0, 0.0, 1.0])
    for stamp, mine, value in zip(stamps, (rows[:2], rows[2:]), (0.5, 1.0), strict=True):
        write_log(tmp_path / "m" / f"samples_t_{stamp}.jsonl", mine)
        told = {"results": {"t": {"acc,none": value}}, "configs": {"t": {"task": "t"}}, "model_name": "m"}
        (tmp_path / "m" / f"results_{stamp}.json").write_text(json.dumps(told))
    assert [row["doc_id"] for row in samples_of(tmp_path / "m")] == [0, 1, 2]
    assert [row["doc_id"] for row in samples_of(tmp_path / "m" / f"samples_t_{stamps[0]}.jsonl")] == [0, 1]
    written = [path for path in write_parquet(tmp_path / "m") if path.name.startswith("samples")]
    assert [pq.read_table(path)["doc_id"].to_pylist() for path in written] == [[0, 1], [2]]
    # What is written for lm-eval is one results file with the samples that it counts.
    *_, log = write_lm_eval(tmp_path / "m", tmp_path / "out", time=stamps[1])
    assert [json.loads(line)["doc_id"] for line in log.read_text().splitlines()] == [2]
