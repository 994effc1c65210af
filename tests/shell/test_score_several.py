"""``evalcore score`` of several logs at once, and flags that only some of them can follow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evalcore.core.records.array import Array
from evalcore.core.records.column import build_column
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import GENERATE_UNTIL
from evalcore.core.records.row import Floats
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricKey, MetricSpec, Task
from evalcore.core.tables import EVALCORE
from evalcore.shell.cli import main
from evalcore.shell.config.plan import Plan
from evalcore.shell.output.files.results import RunFacts, title_run
from evalcore.shell.run.close import close_task

STAMPED = "2024-01-01T00-00-00.000000"
REGEX = 'regex={"regex_pattern": "(a+)"}'


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[str, str]]:
    """What ``evalcore score`` prints and tells."""

    def typed(*argv: object, code: int = 0) -> tuple[str, str]:
        found = main(["score", *map(str, argv), "--quiet"])
        out, err = capsys.readouterr()
        assert found == code, err
        return out, err

    return typed


def text_row(at: int, said: str | list[str], **scores: object) -> dict[str, object]:
    replies = [said] if isinstance(said, str) else said
    asked = {"gen_args_0": {"arg_0": f"q{at}?", "arg_1": {"until": ["\n"]}}}
    told = {"filter": "none", "metrics": list(scores), **scores}
    return {
        "doc_id": at,
        "doc": {"q": at},
        "target": "a",
        "arguments": asked,
        "resps": [replies],
        "filtered_resps": replies,
        **told,
    }


def log(folder: Path, task: str, rows: list[dict[str, object]], **results: object) -> Path:
    """A sample log; with ``results``, beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"samples_{task}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if results:
        (folder / "results.json").write_text(json.dumps(results))
    return path


def told_run(task: str, model: str, **more: object) -> dict[str, object]:
    config = {
        "task": task,
        "output_type": "generate_until",
        "task_alias": "short",
        "metric_list": [{"metric": "exact_match"}],
    }
    return {
        "results": {task: {"alias": "short", "exact_match,none": 0.5}, "g": {"alias": "both", "exact_match,none": 0.5}},
        "configs": {task: config},
        "versions": {task: 1},
        "n-shot": {task: 0},
        "groups": {"g": {"alias": "both", "exact_match,none": 0.5}},
        "group_subtasks": {"g": [task]},
        "config": {"model": "hf", "model_args": f"pretrained={model}"},
        **more,
    }


def aliases(out: str) -> dict[str, object]:
    return {name: str(row["alias"]).strip(" -") for name, row in json.loads(out)["results"].items()}


# --- which is which -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "labels"), [(("org/a", "org/b"), ("org/a", "org/b")), (("m", "m"), ("a/out", "b/out"))]
)
def test_logs_of_one_task_show_their_models_or_their_folders(tmp_path, say, models, labels):
    rows = [text_row(0, "a"), text_row(1, "b")]
    for folder, model in zip("ab", models, strict=True):
        log(tmp_path / folder / "out", "t", rows, **told_run("t", model))
    out, _ = say(tmp_path / "a", tmp_path / "b", "--json")
    shown = aliases(out)
    assert sorted(one for name, one in shown.items() if name.startswith("t ")) == [f"short ({one})" for one in labels]
    assert sorted(one for name, one in shown.items() if name.startswith("g ")) == [f"both ({one})" for one in labels]
    table, _ = say(tmp_path / "a", tmp_path / "b")
    assert all(f"short ({one})" in table and f"both ({one})" in table for one in labels)
    say(tmp_path / "a", tmp_path / "b", "--output_path", tmp_path / "both")
    assert sorted(aliases(say(tmp_path / "both", "--json")[0]).values()) == sorted(shown.values())


def test_a_log_alone_keeps_its_alias(tmp_path, say):
    path = log(tmp_path, "t", [text_row(0, "a")], **told_run("t", "m"))
    assert aliases(say(path, "--json")[0]) == {"t": "short", "g": "both"}


def test_parts_of_a_log_and_logs_by_one_file_go_by_their_names(tmp_path, say):
    rows = [text_row(0, "a"), text_row(1, "b")]
    path = log(tmp_path / "run", "t", rows, **told_run("t", "m"))
    assert {"t_0": "t_0", "t_1": "t_1"}.items() <= aliases(say(path, "--group_by", "q", "--json")[0]).items()
    (tmp_path / "x.yaml").write_text(
        "task: x\ntask_alias: ex\noutput_type: generate_until\ndoc_to_text: q\ndoc_to_target: a\n"
    )
    plain = [log(tmp_path / "plain", name, rows) for name in ("u", "v")]
    assert aliases(say(*plain, "--task", tmp_path / "x.yaml", "--json")[0]) == {"u": "u", "v": "v"}
    assert aliases(say(plain[0], "--task", tmp_path / "x.yaml", "--json")[0]) == {"u": "ex"}


@pytest.mark.parametrize("counted", [None, 4])
def test_the_numbers_of_one_shard_are_not_held_against_all(tmp_path, say, counted):
    """Each shard has results of its own, unless these count all documents and so are those of all."""
    for at, folder in enumerate("ab"):
        told = told_run("t", "m", results={"t": {"own,none": float(at == 0)}}, group_subtasks={})
        told["configs"]["t"] |= {"process_results": "def own(doc, results): ...", "metric_list": [{"metric": "own"}]}
        sizes = {"n-samples": {"t": {"original": 4, "effective": counted or 2}}}
        rows = [text_row(2 * at + i, "a", own=float(at == 0)) for i in range(2)]
        log(tmp_path / folder, "t", rows, **told, **sizes)
    found = json.loads(say(tmp_path, "--json", code=0)[0])
    assert found["evalcore"]["estimates"]["t"]["own,none"]["value"] == 0.5
    told = " ".join(found["evalcore"]["warnings"])
    assert "2 files were taken as one task of 4 documents" in told
    assert "what was recorded stands" in told
    assert ("own,none is 1.0 in the results" in told) is (counted == 4), told


# --- flags that some logs cannot follow -----------------------------------------------------------------------------


def test_each_log_takes_the_scores_that_it_has(tmp_path, say):
    log(tmp_path, "t", [text_row(0, "a", acc=1.0)])
    log(tmp_path, "u", [text_row(0, "a", em=0.0), text_row(1, "a", em=1.0)])
    found = json.loads(say(tmp_path, "--score", "acc", "--score", "em", "--json")[0])["results"]
    assert (found["t"]["acc,none"], found["u"]["em,none"]) == (1.0, 0.5)
    assert "em,none" not in found["t"]
    assert "unknown recorded score 'ema'" in say(tmp_path, "--score", "acc", "--score", "ema", code=2)[1]
    _, told = say(tmp_path, "--score", "acc", code=2)
    assert "Known: em, em,none; --only NAME scores the tasks of that name alone - at u" in told
    say(tmp_path, "--score", "acc", "--only", "t")


def test_a_log_without_scores_says_so(tmp_path, say):
    _, told = say(log(tmp_path, "t", [text_row(0, "a")]), "--score", "acc", code=2)
    assert "has no recorded scores, and so no 'acc'; --metric NAME scores its answers" in told
    assert "Known" not in told


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--metric", "f1"], "unknown metric 'f1'. Known: acc, acc_all, bypass, perplexity - at t (one log-likelihood"),
        (["--filter", REGEX], "filter 'regex' is for texts, but"),
    ],
)
def test_what_log_likelihoods_cannot_have_is_refused_at_once(tmp_path, say, flags, told):
    asked = {"gen_args_0": {"arg_0": "q?", "arg_1": " a"}}
    row = {**text_row(0, "a", acc=1.0), "arguments": asked, "resps": [[["-1.5", "True"]]], "filtered_resps": []}
    path = log(tmp_path, "t", [{**row, "filtered_resps": [["-1.5", "True"]]}])
    assert told in say(path, *flags, code=2)[1]
    found = json.loads(say(path, "--metric", "acc", "--filter", "take_first", "--json")[0])
    assert found["results"]["t"]["acc,none"] == 1.0


def test_a_group_file_whose_tasks_lie_beside_it_says_what_to_add(tmp_path, say):
    (tmp_path / "g.yaml").write_text("group: g\ntask: [t]\n")
    (tmp_path / "t.yaml").write_text("task: t\noutput_type: generate_until\ndoc_to_text: q\ndoc_to_target: a\n")
    path = log(tmp_path / "run", "t", [text_row(0, "a")])
    _, told = say(path, "--task", tmp_path / "g.yaml", code=2)
    assert f"--include_path {tmp_path} also looks for tasks there" in told
    say(path, "--task", tmp_path / "g.yaml", "--include_path", tmp_path)


# --- repeats --------------------------------------------------------------------------------------------------------


def test_replies_that_a_filter_leaves_out_are_told_of(tmp_path, say):
    path = log(tmp_path, "t", [text_row(0, ["a", "b", "b", "b"]), text_row(1, ["b", "b", "a", "a"])])
    first = ["--filter", "lowercase", "--filter", "take_first"]

    def value(*flags: str) -> tuple[float, bool]:
        found = json.loads(say(path, *flags, "--json")[0])
        told = any("take_first leaves the first of 4 replies" in one for one in found["evalcore"]["warnings"])
        return found["results"]["t"]["exact_match,none"], told

    assert value(*first, "--metric", "exact_match") == (0.5, True)
    assert value(*first, "--metric", "exact_match", "--reducer", "mean") == (0.375, False)
    assert value(*first, "--metric", 'exact_match={"reducer": "mean"}') == (0.375, False)
    assert value("--filter", "majority_vote", "--filter", "take_first") == (0.0, False)


# --- what is told ---------------------------------------------------------------------------------------------------


def test_problems_are_listed_once_and_a_file_that_cannot_be_read_has_no_rules_to_lack(tmp_path, say):
    good = log(tmp_path, "t", [text_row(0, "a")], **told_run("t", "m"))
    cut = log(tmp_path / "cut", "u", [text_row(0, "a")])
    cut.write_bytes(cut.read_bytes()[:40])
    out, err = say(good, cut, "--keep-going", code=1)
    assert (out + err).count("could not be read") == 1
    assert (out + err).count(f"{cut}:1: ") == 1
    assert "no results with its rules lie beside" not in out + err
    shown, _ = say(good, cut, "--keep-going", "--json", code=1)
    assert "1 record could not be read:" in json.loads(shown)["evalcore"]["warnings"]


def test_titles_are_short():
    title = title_run(RunFacts(model="mockllm/model", model_args={"custom_outputs": ["x" * 50] * 200}))
    assert title.startswith("mockllm/model (custom_outputs=['xxx")
    assert len(title) < 200


def test_a_task_that_cannot_be_closed_keeps_what_is_known_of_it():
    task = Task("t", GENERATE_UNTIL, (MetricSpec("own", "no such thing"),), alias="short", version=3, num_fewshot=2)
    two = build_column([0, 1], Floats(Array([0.5, 1.0])))
    broken = Scored(task, (ScoredColumn(MetricKey("own"), two, task.metrics[0]),))
    found = close_task(broken, Plan(model="-", tasks=()), EVALCORE, n_original=9)
    assert (found.alias, found.version, found.num_fewshot, found.n_original, found.n_docs) == ("short", 3, 2, 9, 2)
    [(_, lost)] = found.estimates
    assert "no such thing" in (lost.reason or "")
    assert lost.counts.failed == 2
    with pytest.raises(EvalError, match="no such thing"):
        close_task(broken, Plan(model="-", tasks=(), on_unscorable="zero"), EVALCORE, n_original=9)


def test_several_stamped_runs_are_found_again_where_they_were_written(
    tmp_path: Path, say: Callable[..., tuple[str, str]]
) -> None:
    """A task that is named after a file with a time in its name keeps its results beside it."""
    for model, said in (("a", "4"), ("b", "5")):
        folder = tmp_path / model
        folder.mkdir()
        (folder / f"samples_t_{STAMPED}.jsonl").write_text(json.dumps({**text_row(0, said), "target": "4"}) + "\n")
        results = {"results": {"t": {}}, "configs": {"t": {"output_type": "generate_until"}}, "model_name": model}
        (folder / f"results_{STAMPED}.json").write_text(json.dumps(results))
    first, _ = say(tmp_path / "a", tmp_path / "b", "--csv", "-o", tmp_path / "out")
    again, told = say(tmp_path / "out", "--csv")
    assert again == first
    assert "no results" not in told
