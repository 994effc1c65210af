"""Which files are one task, how much of a log is in memory at once, and logs whose results are damaged."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evalcore.core.lm_eval.result_row import leaf_from_flat
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import GENERATE_UNTIL, Generate
from evalcore.core.records.task import MetricSpec, Task
from evalcore.core.tables import EVALCORE
from evalcore.shell import cli
from evalcore.shell.logs.inspect.log import INSPECT
from evalcore.shell.logs.log import Logged, LogTask, Problem
from evalcore.shell.logs.open import open_logs
from evalcore.shell.score import stream as streaming
from evalcore.shell.score.recipes import Recipe
from evalcore.shell.score.sample import read_as_logged
from evalcore.shell.score.verdicts import list_known_scores

STAMP = "2024-01-01T00-00-00.000000"
Say = Callable[..., tuple[str, str]]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """What a verb prints and tells."""

    def typed(*argv: object, code: int = 0) -> tuple[str, str]:
        found = cli.main(list(map(str, argv)))
        out, err = capsys.readouterr()
        assert found == code, err
        return out, err

    return typed


def row(at: int, said: str = "a", **more: object) -> dict[str, object]:
    asked = {"gen_args_0": {"arg_0": f"q{at}?", "arg_1": {"until": ["\n"]}}}
    plain = {"doc_id": at, "doc": {"q": at}, "target": "a", "arguments": asked, "resps": [[said]]}
    return {**plain, "filtered_resps": [said], "filter": "none", "metrics": ["exact_match"], "exact_match": 1.0, **more}


def run(folder: Path, rows: list[dict[str, object]], **results: object) -> Path:
    """A sample log of the task t, beside results."""
    folder.mkdir(parents=True)
    (folder / f"samples_t_{STAMP}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    config = {"task": "t", "output_type": "generate_until", "metric_list": [{"metric": "exact_match"}]}
    told = {"results": {"t": {"exact_match,none": 1.0}}, "configs": {"t": config}, **results}
    (folder / f"results_{STAMP}.json").write_text(json.dumps(told))
    return folder


def opened(folder: Path) -> list[str]:
    return [one.name for one in open_logs([folder])]


# --- which files are one task ------------------------------------------------------------------------------------


def test_tables_that_name_no_model_are_not_pooled(tmp_path: Path, say: Say) -> None:
    for name, answer, subjects in (("a", 1, "law law art art"), ("b", 2, "art art law law")):
        (tmp_path / name).mkdir()
        cells = "".join(f"q{at},1,{answer},{one}\n" for at, one in enumerate(subjects.split()))
        (tmp_path / name / "data.csv").write_text("q,reply,gold,subject\n" + cells)
        flags = ("--answer", "reply", "--gold", "gold", "--group_by", "subject", "-o", tmp_path / f"o{name}", "-q")
        say("score", tmp_path / name / "data.csv", *flags)
    out, _ = say("score", tmp_path / "oa", tmp_path / "ob", "--json", "-q")
    found = json.loads(out)["results"]
    laws = {name: one["exact_match,none"] for name, one in found.items() if name.startswith("data_law")}
    assert laws == {"data_law (oa/samples_data_law.jsonl)": 1.0, "data_law (ob/samples_data_law.jsonl)": 0.0}


def test_files_of_one_folder_are_pooled_though_no_model_is_known(tmp_path: Path) -> None:
    folder = run(tmp_path / "a", [row(0)])
    for file in run(tmp_path / "b", [row(1)]).iterdir():
        file.rename(folder / file.name.replace("2024", "2025"))
    assert opened(tmp_path) == ["t"]


@pytest.mark.parametrize(
    "other",
    [
        {"system_instruction": "think"},
        {"system_instruction_sha": "ff"},
        {"chat_template": "{{m}}"},
        {"chat_template_sha": "ff"},
        {"fewshot_as_multiturn": True},
        {"config": {"gen_kwargs": {"temperature": 1}}},
    ],
)
def test_shards_were_asked_in_the_same_way(tmp_path: Path, other: dict[str, object]) -> None:
    run(tmp_path / "a", [row(0)], model_name="m", system_instruction="be terse")
    run(tmp_path / "b", [row(1)], **{"model_name": "m", "system_instruction": "be terse", **other})
    assert len(opened(tmp_path)) == 2


def test_shards_may_differ_in_what_was_left_out(tmp_path: Path) -> None:
    run(tmp_path / "a", [row(0)], model_name="m", config={"limit": 1, "samples": {"t": [0]}})
    run(tmp_path / "b", [row(1)], model_name="m", config={"limit": 2, "samples": {"t": [1]}})
    assert opened(tmp_path) == ["t"]


def test_a_run_in_the_folder_of_another_has_a_label_of_its_own(tmp_path: Path, say: Say) -> None:
    grouped = {"groups": {"g": {"exact_match,none": 1.0}}, "group_subtasks": {"g": ["t"]}}
    run(tmp_path / "a", [row(0)], model_name="m", **grouped)
    run(tmp_path / "a" / "a", [row(0, "b")], model_name="m", **grouped)
    out, _ = say("score", tmp_path, "-q")
    assert "g (a) " in out
    assert "g (a/a) " in out


# --- how much is in memory ---------------------------------------------------------------------------------------


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def log_of(rows: Callable[[], Iterator[Logged | Problem]]) -> LogTask:
    return LogTask(name="t", path=Path("l.eval"), output_type=GENERATE_UNTIL, rows=rows, reader=INSPECT)


def test_names_of_scores_are_gathered_without_the_documents() -> None:
    def rows() -> Iterator[Logged]:
        for at in range(100):
            yield Logged(doc_id=at, doc=b"x" * 100_000, gold=None, scores={"b" if at == 99 else "a": 1})

    assert list_known_scores(log_of(rows), ["b"]) == ("a", "b")
    assert list_known_scores(log_of(lambda: iter(())), ["b"]) is None
    assert peak_of(lambda: list_known_scores(log_of(rows), ["b"])) < 1_000_000


RECIPE = Recipe(Task("t", GENERATE_UNTIL, (MetricSpec("exact_match"),)), read_as_logged)


def long_rows(count: int, **more: object) -> Iterator[Logged]:
    for at in range(count):
        yield Logged(**{"doc_id": at, "doc": b"{}", "gold": "a", "replies": (("a",),), **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "more",
    [
        {"doc": b'{"q": "' + b"x" * 990 + b'"}'},
        {"replies": (("x" * 250,) * 4,)},
        {"requests": (Generate("x" * 1000),)},
    ],
)
def test_a_piece_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch, more: dict[str, object]) -> None:
    monkeypatch.setattr(streaming, "PIECE_BYTES", 5000)
    assert [len(one.samples) for one in streaming.score_rows(long_rows(12, **more), RECIPE, EVALCORE)] == [5, 5, 2]
    split = streaming.score_split(long_rows(12, **more), RECIPE, lambda one: f"t_{one.doc_id % 2}", EVALCORE)
    found = [(one.scored.task.name, len(one.samples)) for one in split]
    assert found == [("t_0", 3), ("t_1", 2), ("t_1", 3), ("t_0", 2), ("t_0", 1), ("t_1", 1)]


def test_a_piece_is_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "PIECE", 2)
    assert [len(one.samples) for one in streaming.score_rows(long_rows(4), RECIPE, EVALCORE)] == [2, 2]
    split = streaming.score_split(long_rows(5), RECIPE, lambda one: f"t_{one.doc_id > 0:d}", EVALCORE)
    assert [(one.scored.task.name, len(one.samples)) for one in split] == [("t_1", 2), ("t_1", 2), ("t_0", 1)]


# --- Inspect -----------------------------------------------------------------------------------------------------


def inspect_log(path: Path, failed: set[tuple[int, int]]) -> Path:
    error = {"output": None, "scores": None, "error": {"message": "boom"}}
    samples = [
        {
            "id": at,
            "epoch": epoch,
            "input": "q",
            "target": "a",
            "output": {"completion": "a"},
            "scores": {"match": {"value": "C"}},
            **(error if (at, epoch) in failed else {}),
        }
        for at in range(3)
        for epoch in (1, 2)
    ]
    spec = {"task": "t", "model": "m/x", "config": {"epochs": 2}}
    path.write_text(json.dumps({"version": 2, "status": "success", "eval": spec, "plan": {}, "samples": samples}))
    return path


def test_requests_of_inspect_logs_are_left_out_where_they_are_not_wanted(tmp_path: Path) -> None:
    path = inspect_log(tmp_path / "l.json", set())
    [[with_them], [without]] = [open_logs([path], requests=wanted) for wanted in (True, False)]
    assert [len(one.requests) for one in with_them.rows() if isinstance(one, Logged)] == [1, 1, 1]
    assert [len(one.requests) for one in without.rows() if isinstance(one, Logged)] == [0, 0, 0]


def test_epochs_that_ended_in_an_error_are_counted(tmp_path: Path, say: Say) -> None:
    told = "epochs without an answer and a score: "
    out, _ = say("score", inspect_log(tmp_path / "l.json", {(0, 2), (2, 1)}), "-q")
    assert f"{told}2, in 2 documents" in out
    out, _ = say("score", inspect_log(tmp_path / "l.json", {(0, 1), (0, 2)}), "-q", code=1)
    assert told not in out  # a document without a score is told of as such


# --- damaged results ---------------------------------------------------------------------------------------------


def test_scores_of_a_filter_that_the_config_does_not_have_stand(tmp_path: Path, say: Say) -> None:
    config = {
        "task": "t",
        "output_type": "generate_until",
        "process_results": "def own(doc, results): ...",
        "metric_list": [{"metric": "own"}],
        "filter_list": [{"name": "strict", "filter": [{"function": "take_first"}]}],
    }
    rows = [row(at, metrics=["own"], own=1.0) for at in range(3)]
    out, _ = say("score", run(tmp_path / "a", rows, configs={"t": config}), "--json", "-q")
    assert json.loads(out)["results"]["t"]["own,none"] == 1.0


@pytest.mark.parametrize("size", [0, 3, 1e300, float("inf"), float("nan")])
def test_results_of_no_documents_and_of_huge_errors_are_read(size: float) -> None:
    flat = {"acc,none": 0.5, "acc_stderr,none": 1e300, "sample_len": size}
    [(_, found)] = leaf_from_flat("t", flat).value.estimates
    assert (found.spread.variance is None) == (not 0 < size < float("inf"))
    assert (found.n is None) == (not size < float("inf")), "what is no number of documents is none"


@pytest.mark.parametrize("key", ["acc,none", "acc_stderr,none", "sample_len"])
def test_a_number_of_results_that_is_too_long_is_refused(key: str) -> None:
    with pytest.raises(EvalError, match=f"expected {key} in the results to be a number.* - at t"):
        leaf_from_flat("t", {"acc,none": 0.5, "acc_stderr,none": 0.1, "sample_len": 3, key: 10**400})


def test_shots_that_are_no_number_are_not_compared(tmp_path: Path, say: Say) -> None:
    one, other = (run(tmp_path / name, [row(at) for at in range(3)], **{"n-shot": {"t": [5]}}) for name in "ab")
    out, _ = say("compare", one, other)
    assert "n-shot differs" not in out


@pytest.mark.parametrize("verb", ["run", "score"])
def test_only_a_run_has_an_answer_log(verb: str, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALCORE_TRACEBACK", raising=False)
    monkeypatch.setattr(cli, "import_module", lambda name: None)
    _, err = say(verb, code=70)
    assert "unexpected AttributeError" in err
    assert ("answer log" in err) == (verb == "run")
