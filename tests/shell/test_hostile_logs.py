"""Recorded runs with odd or hostile content: clusters that are none, numbers too large, groups without end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from counting import count_elements, growth
from sample_runs import STAMP, rows_of, write_log, write_run

from evalcore.core.aggregate.aggregations import AGGREGATIONS
from evalcore.core.aggregate.clusters import whole_clusters
from evalcore.core.compare.lines import Comparison, ComparisonLine, ComparisonSide, Shared
from evalcore.core.lm_eval.result_row import leaf_from_flat
from evalcore.core.records.array import Ints64
from evalcore.core.records.document import DocumentRow
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Summary
from evalcore.core.records.request import freeze_options
from evalcore.core.records.task import MetricKey
from evalcore.core.stats.bootstrap import jackknife
from evalcore.shell.cli import main
from evalcore.shell.compare.compare import Compared, select_lines
from evalcore.shell.compare.runs import read_recorded
from evalcore.shell.logs.runs.identity import make_cluster_reader
from evalcore.shell.logs.runs.result_errors import list_known
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.logs.runs.scores import build_rows as score_rows
from evalcore.shell.logs.runs.trees import grow_trees
from evalcore.shell.output.compare.renderers import describe_pair
from evalcore.shell.prompts.clusters import read_cluster

Row = dict[str, object]
FINE = [1.0, 0.0, 1.0, 1.0] * 5
HUGE = 10**400


def changed(path: Path, at: int, change: Callable[[Row], None]) -> Path:
    """A log of twenty documents, one row of which is changed."""
    rows = rows_of("t", "acc", FINE)
    change(rows[at])
    return write_log(path / "samples_t.jsonl", rows)


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    code = main([*map(str, arguments)])
    out = capsys.readouterr()
    assert "unexpected" not in out.err
    assert "Traceback" not in out.err
    return code, out.out + out.err


# --- clusters ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["{{passage}}-{{part}}", "part"])
@pytest.mark.parametrize("part", [None, float("nan")])
def test_a_cluster_that_is_nothing_is_an_error_with_its_place(tmp_path: Path, given: str, part: object) -> None:
    rows = rows_of("t", "acc", FINE, part="x")
    rows[3]["doc"]["part"] = part  # type: ignore[index]
    path = write_log(tmp_path / "samples_t.jsonl", rows)
    with pytest.raises(EvalError, match=r"samples_t.jsonl:4: cluster: .* got nothing .* at doc 3"):
        read_recorded(path, cluster=given)
    del rows[3]["doc"]["part"]  # type: ignore[attr-defined]
    with pytest.raises(EvalError, match=r"samples_t.jsonl:4: cluster: .* at doc 3"):
        read_recorded(write_log(path, rows), cluster=given)


@pytest.mark.parametrize("value", [7, 7.0, "7", "é"])
def test_a_log_and_a_run_read_the_same_cluster(value: object) -> None:
    doc = {"a": value, "b": 2}
    for given in ("a", "{{a}}/{{b}}"):
        assert make_cluster_reader(given)(doc) == read_cluster(given, list(doc))(doc)


@pytest.mark.parametrize("wrong", [[1], {"a": 1}, 1.5, True, ""])
def test_a_recorded_cluster_that_is_none_is_an_error(tmp_path: Path, wrong: object) -> None:
    rows = rows_of("t", "acc", FINE)
    for row in rows:
        row["evalcore"] = {"cluster": wrong}
    with pytest.raises(EvalError, match=r"samples_t.jsonl:1: expected a number or a text under cluster.* at doc 0"):
        read_recorded(write_log(tmp_path / "samples_t.jsonl", rows))


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_a_score_too_large_for_a_number_is_no_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = changed(tmp_path, 2, lambda row: row.update(acc=HUGE))
    found = read_recorded(path).side.scored[0].columns[0].column
    assert found.scored.tolist() == [at != 2 for at in range(20)]
    assert "finite" in dict(found.reasons)[2]
    assert said(capsys, "compare", path, path)[0] == 0


@pytest.mark.parametrize("metric", ["f1", "mcc", "brier_score", "bleu", "perplexity", "word_perplexity", "ece", "acc"])
@pytest.mark.parametrize("wrong", [HUGE, [HUGE, 1], [1, HUGE], [[HUGE], [1.0]], [1, [HUGE, 0.5]], [-HUGE, 10**25]])
def test_no_score_of_any_shape_is_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], metric: str, wrong: object
) -> None:
    rows = rows_of("t", metric, [1.0, 0.0])
    pairs = {"f1": [1, 0], "mcc": [1, 0], "brier_score": [1, "[0.5 0.5]"], "bleu": ["a", "b"]}
    for row, score in zip(rows, (pairs.get(metric, [0.5, 2]), wrong), strict=True):
        row[metric] = score
    path = write_log(tmp_path / "samples_t.jsonl", rows)
    assert said(capsys, "compare", path, path)[0] in (0, 2)


def test_a_number_of_a_document_has_64_bits(tmp_path: Path) -> None:
    path = changed(tmp_path, 4, lambda row: row.update(doc_id=10**30))
    with pytest.raises(EvalError, match=r"samples_t.jsonl:5: expected a doc_id of at most 64 bits, got 10"):
        read_recorded(path)


@pytest.mark.parametrize("noise", [[1e308, 10**25], [1e308, 2], [0.1, 10**25], [0.1, -1], [-0.1, 2], [HUGE, 2]])
def test_noise_that_nothing_has_is_an_error_with_its_place(tmp_path: Path, noise: object) -> None:
    path = changed(tmp_path, 1, lambda row: row.update(evalcore={"noise": {"acc": noise}}))
    with pytest.raises(EvalError, match=r"samples_t.jsonl:2: expected the variance of a score and its replies"):
        read_recorded(path)


@pytest.mark.parametrize(
    "row",
    [
        {"acc,none": HUGE, "acc_stderr,none": 0.1},
        {"acc,none": -HUGE, "acc_stderr,none": 0.1},
        {"acc,none": 0.75, "acc_stderr,none": HUGE},
        {"acc,none": 0.75, "acc_stderr,none": 1e300},
        {"acc,none": 1e300, "acc_stderr,none": 1e-300},
        {"acc,none": 0.75, "acc_stderr,none": 0.1, "sample_len": 1e308},
        {"acc,none": 0.75, "acc_stderr,none": 0.1, "sample_len": HUGE},
    ],
)
def test_results_may_state_any_number(tmp_path: Path, capsys: pytest.CaptureFixture[str], row: Row) -> None:
    groups = {"group_subtasks": {"g": ["t", "u"]}, "groups": {"g": row}}
    rows = {"t": row, "u": {"sample_len": 1e308, **row}, "g": row}
    tasks = {"t": FINE, "u": FINE}
    run = write_run(tmp_path / "run", tasks, results={"results": rows, **groups})
    told = run / f"results_{STAMP}.json"
    alone = write_log(tmp_path / "alone" / "results.json", [json.loads(told.read_text())])
    for where in (run, alone):
        for flags in ((), ("--half-width", "0.01"), ("--difference", "0.01")):
            assert said(capsys, "power", where, *flags)[0] in (0, 2)
        assert said(capsys, "check", where, "--min", "t/acc=0.5")[0] in (0, 1, 2)
    assert said(capsys, "compare", run, run)[0] == 0


@pytest.mark.parametrize("count", [1e308, 1e100, HUGE])
def test_documents_that_no_run_has_are_not_counted(count: float) -> None:
    row = {"acc,none": 0.5, "acc_stderr,none": 0.05, "sample_len": count}
    assert list_known({"results": {"t": row}})[0].n == 0


@pytest.mark.parametrize("flag", ["--half-width", "--difference"])
def test_a_distance_that_nothing_reaches_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    path = changed(tmp_path, 0, lambda row: None)
    code, text = said(capsys, "power", path, flag, "1e-200")
    assert code == 2
    assert "expected a distance" in text


# --- groups -----------------------------------------------------------------------------------------------------------


def diamonds(levels: int) -> dict[str, list[str]]:
    """Every level is reached by two ways from the one above."""
    below = {f"g{at}": [f"a{at}", f"b{at}"] for at in range(levels)}
    sides = {f"{side}{at}": [f"g{at + 1}"] for at in range(levels) for side in "ab"}
    return {**below, **sides, f"g{levels}": ["t"]}


@pytest.mark.parametrize("ours", [True, False])
def test_groups_with_more_paths_than_can_be_walked_are_left_out(ours: bool) -> None:
    groups = diamonds(40)
    task = leaf_from_flat("t", {"acc,none": 0.5, "sample_len": 10}).value
    rows = {name: {"acc,none": 0.5} for name in groups}
    written = [{"group": name, "task": below, "aggregate_metric_list": []} for name, below in groups.items()]
    own = {"evalcore": {"groups": written}} if ours else {}
    grown = grow_trees({"group_subtasks": groups, "groups": rows, "results": rows, **own}, [task])
    assert grown.trees == ()
    assert "the groups of the results are left out: expected at most 100,000 places" in grown.warnings[0]
    few = diamonds(3)
    grown = grow_trees({"group_subtasks": few, "groups": rows, "results": rows}, [task])
    assert [tree.name for tree in grown.trees] == ["g0"]


def test_a_file_with_such_groups_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", {"t": FINE}, results={"group_subtasks": diamonds(40)})
    assert f"the groups of {run} are left out" in read_recorded(run).warnings[0]
    assert said(capsys, "compare", run, run)[0] == 0


def test_documents_below_diamonds_and_circles_are_counted_once() -> None:
    row = {"acc,none": 0.5, "acc_stderr,none": 0.05}
    groups = {**diamonds(40), "x": ["y", "t"], "y": ["x"]}
    rows = {**dict.fromkeys(groups, row), "t": {**row, "sample_len": 30}}
    found = {one.name: one.n for one in list_known({"results": rows, "group_subtasks": groups})}
    assert found["g0"] == found["x"] == 30
    chain = {str(at): [str(at + 1)] for at in range(3000)} | {"3000": ["t"]}
    rows = {"0": row, "t": {**row, "sample_len": 30}}
    assert list_known({"results": rows, "group_subtasks": chain})[0].n == 30


# --- work in proportion to the documents ------------------------------------------------------------------------------


def test_unmatched_documents_are_named_in_one_pass(tmp_path: Path) -> None:
    def name(n: int) -> dict[str, object]:
        table = {"t": tuple(DocumentRow(at, f"q{at}", None, str(at), 0) for at in range(n))}
        run = Recorded("r", tmp_path, ComparisonSide("r", (), table), {}, {}, ())
        keys = tuple(range(n))
        one = Comparison(names=("a", "b"), lines=(), documents=(Shared("t", 0, keys, keys),))
        return describe_pair(Compared(runs=(run, run), names=("a", "b"), pairs=((0, 1),), comparisons=(one,)), 0)

    assert growth(name, 500) < 2.1
    assert name(500)["documents"][0]["only_b"][:2] == ["q0", "q1"]  # type: ignore[index]


class Pair(tuple[str, ...]):
    """A pair of texts; comparing it with another is a step."""

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]


def test_the_row_that_is_no_pair_is_found_in_one_pass() -> None:
    def read(n: int) -> None:
        with pytest.raises(EvalError, match=r"got \('c',\)"):
            score_rows([*(Pair(("a", str(at))) for at in range(n)), ("c",)], AGGREGATIONS["bleu"], freeze_options())

    assert growth(read, 500) < 2.1


def test_members_of_clusters_are_found_in_one_pass() -> None:
    def gather(clusters: Ints64) -> Summary:
        n = len(clusters)
        return whole_clusters(
            Summary(np.zeros((n, 1)), lambda index: index.sum(axis=1).astype(float), np.arange(n)), clusters
        )

    read = [count_elements(gather, np.arange(n) // 2) for n in (1000, 2000)]
    assert read[1] < 2.1 * read[0]
    assert growth(lambda n: gather(np.arange(n) // 2), 1000) < 2.1
    few = Summary(np.zeros((5, 1)), lambda index: index @ 10.0 ** np.arange(index.shape[1]), np.arange(5))
    drawn = whole_clusters(few, np.array([7, 3, 7, 3, 1])).resampled(np.array([[1, 0, 2]]))
    assert drawn.tolist() == [1 + 30 + 0 + 2000 + 40000]


def test_a_jackknife_holds_one_copy_of_the_units_at_a_time() -> None:
    import tracemalloc

    n = 50_000
    tracemalloc.start()
    jackknife(lambda index: np.array([float(index.shape[1])]), n)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 8 * n  # 200 copies are ten times that


# --- nothing to compare -----------------------------------------------------------------------------------------------


def test_a_comparison_without_any_number_says_why() -> None:
    empty = Comparison(names=("a", "b"), lines=(), warnings=("t: only a has f1,none",))
    with pytest.raises(EvalError, match=r"nothing to compare: .*t: acc is left out: odd; t: only a has f1,none"):
        select_lines([empty], metrics=["acc"], warnings=["t: acc is left out: odd"])
    one = Comparison(names=("a", "b"), lines=(ComparisonLine(name="t", key=MetricKey("acc")),), tasks_only_a=("u",))
    with pytest.raises(EvalError, match=r"only the first has u\); u: acc is left out: odd"):
        select_lines([one], tasks=["u"], warnings=["u: acc is left out: odd"])
