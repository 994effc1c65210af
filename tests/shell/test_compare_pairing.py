"""``evalcore compare``: why documents do not pair, what else differs between runs, directions, narrow screens."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from sample_runs import STAMP, rows_of, write_log, write_run

from evalcore.core.compare.lines import CORRECTIONS, Comparison, ComparisonLine, ComparisonSide
from evalcore.core.records.task import MetricKey
from evalcore.shell.cli import main
from evalcore.shell.compare.compare import Compared
from evalcore.shell.compare.runs import read_recorded
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.output.compare.renderers import build_page
from evalcore.shell.output.terminal.grid import draw_page
from evalcore.shell.output.terminal.screen import Screen

FINE = [1.0, 0.0, 1.0, 1.0] * 10


def told(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    assert main(["compare", *map(str, arguments)]) == code
    said = capsys.readouterr()
    assert "unexpected" not in said.err
    return said.out if code == 0 else said.err


def data(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, object]:
    return json.loads(told(capsys, *arguments, "--json"))


# --- documents --------------------------------------------------------------------------------------------------------


def without_prompts(folder: Path, **more: object) -> Path:
    rows = [{**row, "arguments": [["", {}]]} for row in rows_of("t", "acc", FINE, **more)]
    for row in rows:  # questions of the run's own about the same passages
        row["doc"]["question"] = f"{sorted(more)} {row['doc_id']}"
    return write_log(folder / f"samples_t_{STAMP}.jsonl", rows).parent


def test_documents_that_do_not_pair_are_explained_and_paired_by_the_fields_one_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = without_prompts(tmp_path / "a", source="x")
    b = without_prompts(tmp_path / "b", difficulty=3, year=2020)
    why = told(capsys, a, b, code=2)
    assert "no document is in two runs" in why
    assert "only A has the fields source" in why
    assert "only B has the fields difficulty, year" in why
    assert "both have passage, question" in why
    (line,) = data(capsys, a, b, "--match", "passage")["pairs"][0]["lines"]
    assert (line["n"], line["difference"]) == (40, 0.0)
    wrong = told(capsys, a, b, "--match", "question,sourse", code=2)
    assert "did you mean 'source'? Known: passage, question, source" in wrong
    assert f"samples_t_{STAMP}.jsonl:1" in wrong
    assert "--match" in told(capsys, a, b, "--match", ",", code=2)


def test_few_pairs_are_explained_beside_the_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = rows_of("t", "acc", FINE)

    def changed(name: str, first: int) -> Path:
        """The same log, but for the documents from this one on, which are others."""
        other = [
            {**row, "doc": {"question": f"other {at}", "extra": 1}, "arguments": [[f"other {at}", {}]]}
            if at >= first
            else row
            for at, row in enumerate(rows)
        ]
        return write_log(tmp_path / name / "samples_t.jsonl", other)

    a = changed("a", 40)
    (warning,) = data(capsys, a, changed("b", 10))["warnings"]
    assert "only B has the fields extra" in warning
    assert len(data(capsys, a, changed("c", 35))["warnings"]) == 1
    assert data(capsys, a, changed("d", 36))["warnings"] == []


def test_documents_that_no_prompt_identifies_lead_however_few_lack_a_counterpart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """That may be because of what a model wrote."""
    rows = [{**row, "arguments": [["", {}]]} for row in rows_of("t", "acc", FINE)]
    a = write_log(tmp_path / "a/samples_t.jsonl", rows)
    b = write_log(tmp_path / "b/samples_t.jsonl", [*rows[:-1], {**rows[-1], "doc": {"question": "another"}}])
    (warning,) = data(capsys, a, b)["warnings"]
    assert warning.startswith("t: only 39 documents are paired, of 40 of A and 40 of B")


def test_what_is_read_has_the_fields_of_its_documents(tmp_path: Path) -> None:
    rows = rows_of("t", "acc", [1.0, 0.0])
    rows[1]["doc"]["late"] = 1
    found = read_recorded(write_log(tmp_path / "samples_t.jsonl", rows))
    assert found.fields == {"t": {"question", "passage", "late"}}


def test_an_empty_path_is_not_this_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_run(tmp_path / "a", {"t": FINE}))
    assert "empty" in told(capsys, ".", "", code=2)
    assert "shell variable" in told(capsys, " ", ".", code=2)


def test_rows_of_another_tool_are_told_what_a_log_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write_run(tmp_path / "a", {"t": FINE})
    for count in (1, 3):
        other = write_log(tmp_path / f"other{count}.jsonl", [{"input": "?", "output": "!"}] * count)
        said = told(capsys, good, other, code=2)
        assert "its rows need doc_id, doc, target, arguments, resps" in said
        assert "these have input, output" in said
        assert main(["power", str(other)]) == 2
        assert "its rows need doc_id" in capsys.readouterr().err


# --- what else differs ------------------------------------------------------------------------------------------------


def settings(shots: int, digest: str, model: str, **more: object) -> dict[str, object]:
    return {"n-shot": {"t": shots, "u": 0}, "task_hashes": {"t": digest, "u": "same"}, "model_name": model, **more}


def test_models_shots_and_prompts_that_differ_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = {"t": FINE, "u": FINE}
    a = write_run(tmp_path / "a", tasks, results=settings(0, "1", "org/a", model_source="hf"))
    b = write_run(tmp_path / "b", tasks, results=settings(5, "2", "org/b"))
    c = write_run(tmp_path / "c", tasks, results=settings(0, "2", "org/a", model_source="hf"))
    assert data(capsys, a, b)["warnings"] == ["n-shot differs: 0 in A, 5 in B (t)"]
    text = told(capsys, a, b)
    assert text.startswith(f"A: a ({a}), org/a (hf)\nB: b ({b}), org/b\n")
    assert "n-shot differs" in text
    assert told(capsys, a, b, "--task", "t").startswith(f"A: a ({a}), org/a (hf)\n")
    (prompts,) = data(capsys, a, c)["warnings"]
    assert prompts == "prompts differ: the task hashes do, while documents and n-shot are the same (t)"
    assert told(capsys, a, c).startswith(f"A: a ({a})\nB: c ({c})\n")
    assert data(capsys, a, a)["warnings"] == [f"A and B are the same run: {a}"]
    assert [run["model"] for run in data(capsys, a, b)["runs"]] == ["org/a (hf)", "org/b"]


def test_the_number_of_examples_is_in_the_head_where_it_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = (
        write_run(tmp_path / name, {"t": FINE}, results={"n-shot": {"t": shots}})
        for name, shots in (("a", 0), ("b", 5))
    )
    assert told(capsys, a, b).startswith(f"A: a ({a}), 0-shot\nB: b ({b}), 5-shot\n")


def test_rules_that_differ_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = write_run(tmp_path / "a", {"t": FINE}, results={"evalcore": {"on_unscorable": "zero"}})
    b = write_run(tmp_path / "b", {"t": FINE}, results={})
    (warning,) = data(capsys, a, b)["warnings"]
    assert "count as 0 in A (on_unscorable: zero), are left out in B (on_unscorable: exclude)" in warning


def test_clusters_are_counted_by_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = write_run(tmp_path / "a", {"t": FINE, "u": FINE[:20]})
    b = write_run(tmp_path / "b", {"t": [1.0] * 40, "u": [1.0] * 20})
    text = told(capsys, a, b, "--cluster", "passage")
    assert "8 clusters of 40 documents (t)" in text
    assert "4 clusters of 20 documents (u)" in text
    assert "too few to tell" in text
    assert "only 4 clusters: no p-value below 0.125 is possible" in text
    lines = data(capsys, a, b, "--cluster", "passage")["pairs"][0]["lines"]
    assert [line["clusters"] for line in lines] == [8, 4]
    assert "clusters of" not in told(capsys, a, b)


def test_tasks_may_be_typed_with_commas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "a", {"t": FINE, "u": FINE, "w": FINE})
    lines = data(capsys, run, run, "--task", "t, u")["pairs"][0]["lines"]
    assert [line["task"] for line in lines] == ["t", "u"]


# --- directions -------------------------------------------------------------------------------------------------------


def verdict(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[object, object]:
    (line,) = data(capsys, *arguments)["pairs"][0]["lines"]
    return line["higher_is_better"], line["verdict"]


@pytest.mark.parametrize(
    ("metric", "results", "flags", "expected"),
    [
        ("surprise", None, (), (None, "A higher")),
        ("surprise", None, ("--lower_is_better", "surprise"), (False, "B better")),
        ("surprise", None, ("--higher_is_better", "surprise,none"), (True, "A better")),
        ("surprise", {"higher_is_better": {"t": {"surprise": False}}}, (), (False, "B better")),
        ("surprise", {"higher_is_better": {"t": {"surprise": True}}}, (), (True, "A better")),
        ("surprise", {"higher_is_better": {"t": {"surprise": None}}}, (), (None, "A higher")),
        ("acc", None, (), (True, "A better")),
        ("acc", None, ("--lower_is_better", "acc"), (False, "B better")),
        ("brier_score", None, (), (False, "B better")),
        ("exact_match@mean", None, (), (True, "A better")),
    ],
)
def test_a_metric_points_where_someone_says_so(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    metric: str,
    results: dict[str, object] | None,
    flags: tuple[str, ...],
    expected: tuple[bool | None, str],
) -> None:
    a = write_run(tmp_path / "a", {"t": [1.0] * 40}, metric, results)
    b = write_run(tmp_path / "b", {"t": [0.0] * 40}, metric, results)
    assert verdict(capsys, a, b, *flags) == expected


def test_the_config_says_more_than_the_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = {"metric": "surprise", "aggregation": "mean", "higher_is_better": False}
    config = {"task": "t", "output_type": "generate_until", "metric_list": [entry]}
    results = {"configs": {"t": config}, "higher_is_better": {"t": {"surprise": True}}}
    a, b = (
        write_run(tmp_path / name, {"t": [score] * 40}, "surprise", results) for name, score in (("a", 1.0), ("b", 0.0))
    )
    assert verdict(capsys, a, b) == (False, "B better")


# --- narrow screens ---------------------------------------------------------------------------------------------------

LINE = ComparisonLine(
    name="a_task_of_some_length",
    key=MetricKey("exact_match", "flexible-extract"),
    a=0.75,
    b=0.5,
    n=12000,
    difference=0.25,
    ci=(0.1, 0.4),
    p_value=0.02,
    adjusted=0.04,
    adjusted_ci=(0.05, 0.45),
    detectable=0.2,
    higher_is_better=True,
    better=(0,),
)


def compared_of(runs: int) -> Compared:
    run = Recorded("run", Path("run"), ComparisonSide("run", ()), {}, {}, ())
    pairs = tuple((a, b) for a in range(runs) for b in range(a + 1, runs))
    one = Comparison(names=("a", "b"), lines=(LINE, replace(LINE, name="u")), correction=CORRECTIONS["holm"], family=2)
    return Compared(
        runs=(run,) * runs, names=tuple(map(str, range(runs))), pairs=pairs, comparisons=(one,) * len(pairs)
    )


@pytest.mark.parametrize("width", [200, 160, 80, 60])
@pytest.mark.parametrize("runs", [2, 3, 8])
def test_pages_fit_any_screen_and_explain_only_what_they_show(width: int, runs: int) -> None:
    text = draw_page(build_page(compared_of(runs)), Screen(width))
    assert all(cell_len(line) <= width for line in text.splitlines())
    head = next(line for line in text.splitlines() if line.startswith("Tasks"))
    if runs == 2:
        text, _, short = text.partition("In short:")
        assert " ".join(short.split()).count("A is better by 0.250, 95 % interval ") == 2
        assert ("detectable: " in text) is ("detectable" in head)
        assert ("interval: " in text) is ("interval" in head)
        assert ("left out because this terminal is too narrow" in text) is (width < 200)
        assert ("+0.0500 to +0.4500" in text) is ("adjusted interval" in head) is (width >= 160)
        assert text.count("A better") == 2
        assert ("0.0400" in text) is ("adjusted p" in head) is (width == 200)  # p-values go first
        assert ("0.750" in text) is (width >= 80)
        assert text.count("12,000 ") == text.count("+0.25") == text.count("+0.100") == 2
    else:
        matrix = width >= 160 and runs == 3
        assert ("− A" in head) is ("− A, − B, ...: the row's run" in text) is matrix
        assert ("A − B" in text) is ("A − B, ...: the first run minus the second" in text) is not matrix
        assert "12,000" in text
        assert "+0.25" in text
        assert "+0.100 to +0.400" in text or "+0.1000 to +0.4000" in text
        assert ("0.750" in text) is (width >= 80)  # score, interval and n stay
        assert ("0.0400" in text) is ("(adjusted p)" in text or "adjusted p" in head)
        assert ("0.0400" in text) is (width == 200 or (width == 160 and not matrix))  # p goes first


def test_a_matrix_has_everything_where_it_fits() -> None:
    text = draw_page(build_page(compared_of(3)))
    assert "A  12,000  0.7500" in text
    assert "+0.2500* +0.1000 to +0.4000 (0.0400)" in text
    assert "-0.2500* -0.4000 to -0.1000 (0.0400)" in text
    assert "its 95 % interval (adjusted p)" in text


def test_a_run_whose_number_depends_on_the_other_has_a_range_of_documents() -> None:
    compared = compared_of(3)
    few = replace(compared.comparisons[0], lines=(replace(LINE, n=900, a=0.7),))
    text = draw_page(build_page(replace(compared, comparisons=(few, *compared.comparisons[1:]))))
    assert re.search(r"flexible-extract +exact_match +↑ +A +900–12,000 +·", text)
