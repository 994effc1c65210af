"""``evalcore explain`` on real runs: numbers against the sample logs themselves, every way to name a document, safe output."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from sample_runs import rows_of, write_run
from sample_runs import write_log as write_rows

from evalcore.core.records.task import MetricKey
from evalcore.shell.cli import main

QUICKSTART = Path(__file__).resolve().parents[2] / "examples" / "quickstart"
ESCAPES = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quickstart, as it is."""
    home = tmp_path_factory.mktemp("explain")
    shutil.copytree(QUICKSTART, home / "q")
    assert main(["run", str(home / "q" / "config.yaml"), "--output_path", str(home / "out"), "--quiet"]) == 0
    return home / "out"


def told(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    capsys.readouterr()
    assert main(["explain", *map(str, arguments)]) == code
    out = capsys.readouterr()
    return out.out if code == 0 else out.err


def data(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, object]:
    text = told(capsys, *arguments, "--json")
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"not strict JSON: {word}"))


def rows(run: Path, task: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run / f"samples_{task}.jsonl").read_text().splitlines()]


# --- the whole way -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("doc", [0, 3, 24, 29])
def test_every_filter_ends_where_the_log_does(run: Path, capsys: pytest.CaptureFixture[str], doc: int) -> None:
    found = data(capsys, run, "--task", "quickstart_one_step", "--doc", doc)
    logged = {row["filter"]: row for row in rows(run, "quickstart_one_step") if row["doc_id"] == doc}
    assert [one["filter"] for one in found["filters"]] == list(logged)
    for one in found["filters"]:
        row = logged[one["filter"]]
        assert one["kept"] == one["logged"] == row["filtered_resps"]
        assert one["agrees"] is True
        assert one["steps"][0][0]["before"] == row["resps"][0] == found["answers"][0]
        assert [step["step"] for step in one["steps"][0]] == ["regex", "take_first"]
    for score in found["scores"]:
        assert score["score"] == score["traced"] == logged[score["filter"]][score["metric"]]
    assert found["prompts"][0]["prompt"] == logged["strict-match"]["arguments"]["gen_args_0"]["arg_0"]
    assert found["gold"] == logged["strict-match"]["target"]


def test_contributions_are_those_of_the_logged_scores(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "exact_match,flexible-extract"
    logs = {task: {row["doc_id"]: row["exact_match"] for row in rows(run, task) if row["filter"] == "flexible-extract"}
            for task in ("quickstart_one_step", "quickstart_two_step")}  # fmt: skip
    for doc, score in list(logs["quickstart_one_step"].items())[::7]:
        found = data(capsys, run, "--task", "quickstart_one_step", "--doc", doc, "--metric", name)
        own, group = found["contributions"]
        scores = logs["quickstart_one_step"].values()
        assert own["value"] == pytest.approx(sum(scores) / 30)
        assert own["without"] == pytest.approx((sum(scores) - score) / 29)
        assert own["moved"] == pytest.approx(own["value"] - own["without"])
        assert own["weight"] == pytest.approx(1 / 30)
        total = sum(scores) + sum(logs["quickstart_two_step"].values())
        assert (group["name"], group["kind"]) == ("quickstart_arithmetic", "group")
        assert group["value"] == pytest.approx(total / 50)
        assert group["without"] == pytest.approx((total - score) / 49)
        assert group["weight"] == pytest.approx(1 / 50)


def test_repeats_are_traced_one_by_one_and_then_reduced(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, run, "--task", "quickstart_simple_questions", "--doc", 0)
    [one] = found["filters"]
    each = [judged[0]["score"] for judged in one["replies"]]
    assert each == [1.0, 0.0, 0.0, 1.0]
    scores = {score["metric"]: score["score"] for score in found["scores"]}
    assert scores["exact_match@mean"] == sum(each) / 4
    assert scores["exact_match@pass@2"] == pytest.approx(1 - 1 / 6)
    text = told(capsys, run, "--task", "quickstart_simple_questions", "--doc", 0)
    assert "Answer 4 of 4" in text
    assert "mean of 1, 0, 0, 1" in text
    assert "maj@4 of 'green', 'earth', 'red', 'green'" in text
    assert "'earth' is not 'green'" in text


def test_choices_show_their_likelihoods(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, run, "--task", "quickstart_nature", "--doc", 0)
    assert "likeliest is choice 2 'beaver' (-8.544), which is right" in text
    assert re.search(r"2  ' beaver' +-8\.5444 +-1\.4241 +-1\.4241  no +right", text)
    assert text.count("Which animal builds dams") == 1  # the prompt that four requests share
    assert re.search(r"knowledge +acc +70", text)


def test_only_what_is_asked_for(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, run, "--task", "quickstart_one_step", "--doc", 1, "--filter", "strict-match")
    assert "strict-match" in text
    assert "flexible-extract" not in text
    assert "unknown filter 'strict'; did you mean 'strict-match'?" in told(
        capsys, run, "--task", "quickstart_one_step", "--doc", 1, "--filter", "strict", code=2
    )
    assert "unknown metric 'exact_mach'; did you mean 'exact_match'?" in told(
        capsys, run, "--task", "quickstart_one_step", "--doc", 1, "--metric", "exact_mach", code=2
    )


# --- which document ------------------------------------------------------------------------------------------------


def test_a_document_by_hash_is_the_same_document(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = data(capsys, run, "--task", "quickstart_world", "--doc", 5)
    two = data(capsys, run, "--task", "quickstart_world", "--doc", f"hash:{one['hash'][:10].upper()}")
    assert {**one, "found_by": "hash"} == two
    assert "35 documents of quickstart_world are called so" in told(
        capsys, run, "--task", "quickstart_world", "--doc", "hash:", code=2
    )


def test_what_there_is_where_a_document_or_task_is_not(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "numbered 0 to 34; the nearest are 34, 33, 32" in told(
        capsys, run, "--task", "quickstart_world", "--doc", 99, code=2
    )
    assert "did you mean 'quickstart_world'?" in told(capsys, run, "--task", "quickstart_word", "--doc", 0, code=2)
    wrong = told(capsys, run, "--task", "quickstart_arithmetic", "--doc", 0, code=2)
    assert "quickstart_arithmetic is a group: say which of its tasks, quickstart_one_step, quickstart_two_step" in wrong
    assert "has 7 tasks: say which by --task" in told(capsys, run, "--doc", 0, code=2)
    assert "no such file or folder" in told(capsys, run / "nowhere", "--doc", 0, code=2)


def test_an_id_that_the_log_gives_comes_before_a_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Documents 0, 1, 2 are called 1, 2 and x."""
    table = tmp_path / "t.jsonl"
    table.write_text("".join(json.dumps({"name": name, "a": "4", "g": "4"}) + "\n" for name in (1, 2, "x")))
    given = (table, "--answer", "a", "--gold", "g", "--id", "name", "--doc")
    for wanted, doc, by in (("1", 0, "id"), ("#1", 1, "number"), ("2", 1, "id"), ("0", 0, "number"), ("x", 2, "id")):
        found = data(capsys, *given, wanted)
        assert (found["doc_id"], found["found_by"]) == (doc, by), wanted
    assert "found by its id; by its number it is --doc '#0'" in told(capsys, *given, "1")
    assert "found by its number; by its id it is --doc 'x'" in told(capsys, *given, "#2")
    assert "the nearest are 2, 1, 0" in told(capsys, *given, "#7", code=2)
    log = write_log(tmp_path / "log", *(row(at, ["1"], ["1"], 1.0, doc={"idx": at + 1}) for at in range(2)))
    assert data(capsys, log, "--doc", 1)["doc_id"] == 1  # a name in the data of a log comes last
    assert (found := data(capsys, log, "--doc", 2))["doc_id"] == 1
    assert found["found_by"] == "name"
    assert "found by" not in told(capsys, log, "--doc", 1)


# --- logs of our own -----------------------------------------------------------------------------------------------


def row(number: int, said: list[str], kept: object, score: object, **more: object) -> dict[str, object]:
    return {
        "doc_id": number,
        "doc": {"id": f"q-{number}", "question": f"{number} + 1 ="},
        "target": str(number + 1),
        "arguments": {"gen_args_0": {"arg_0": f"{number} + 1 =", "arg_1": {"until": ["\n"]}}},
        "resps": [said],
        "filtered_resps": kept,
        "filter": "digits",
        "metrics": ["exact_match"],
        "exact_match": score,
        **more,
    }


FILTERS = [{"function": "regex", "regex_pattern": "([0-9]+)"}, {"function": "majority_vote"}]
CONFIG = {
    "task": "sums",
    "output_type": "generate_until",
    "doc_to_text": "{{question}}",
    "doc_to_target": "{{answer}}",
    "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    "filter_list": [{"name": "digits", "filter": FILTERS}],
}
VOTES = ["1", "no", "no idea"]


def write_log(folder: Path, *given: dict[str, object], config: dict[str, object] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "samples_sums_2026-01-01T00-00-00.000000.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in given))
    if config is not None:
        results = {"results": {"sums": {"alias": "sums"}}, "configs": {"sums": config}, "versions": {}}
        (folder / "results_2026-01-01T00-00-00.000000.json").write_text(json.dumps(results))
    return path


def test_a_log_alone_says_what_it_says_and_is_traced_by_a_task_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path, row(0, ["so 1 or 2"], ["1"], 1.0), row(1, ["3"], ["3"], 0.0))
    text = told(capsys, log, "--doc", "q-0")  # its only task, by its own name
    assert "sums, document 0 (its own name: q-0)" in text
    assert "no config says which filters these are" in text
    assert "the log kept '1'" in text
    assert re.search(r"sums +digits +exact_match +2 +0\.5000 +0\.0000 +\+0\.500000", text)
    file = tmp_path / "sums.yaml"
    file.write_text(yaml.safe_dump({**CONFIG, "dataset_path": "json"}))
    traced = told(capsys, log, "--doc", 0, "--task_file", file)
    assert "match 1 of 2 of '([0-9]+)'" in traced
    assert "votes: '1' 1" in traced
    assert "equal to the gold '1'" in traced


def test_a_task_file_with_other_filters_says_that_the_log_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path, row(0, ["so 1 or 2"], ["1"], 1.0))
    file = tmp_path / "sums.yaml"
    last = [{"name": "digits", "filter": [{**FILTERS[0], "group_select": -1}, {"function": "take_first"}]}]
    file.write_text(yaml.safe_dump({**CONFIG, "filter_list": last, "dataset_path": "json"}))
    text = told(capsys, log, "--doc", 0, "--task_file", file)
    assert "the log kept '1' instead: it was scored by other filters than these" in text
    assert "traced again it is 0" in text


def test_lm_evals_own_rules_are_found_where_they_give_what_the_log_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In lm-eval a fallback can win a vote (erratum E19); a log that says so was scored by its rules."""
    theirs = write_log(tmp_path / "a", row(0, VOTES, ["[invalid]"], 0.0), config=CONFIG).parent
    assert "by the rules of lm-eval-0.4.13" in told(capsys, theirs, "--doc", 0)
    [one] = data(capsys, theirs, "--doc", 0)["filters"]
    assert (one["kept"], one["agrees"]) == (["[invalid]"], True)
    ours = write_log(tmp_path / "b", row(0, VOTES, ["1"], 1.0), config=CONFIG).parent
    [one] = data(capsys, ours, "--doc", 0)["filters"]
    assert (one["kept"], one["agrees"], one["rules"]) == (["1"], True, "evalcore")


def test_code_of_a_task_is_never_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "def process_results(doc, results):\n    raise SystemExit"
    own = {**CONFIG, "process_results": code}
    folder = write_log(tmp_path / "a", row(0, ["1"], [["1"]], 1.0), config=own).parent
    found = data(capsys, folder, "--doc", 0)
    assert found["filters"][0]["agrees"] is True  # filters are no code
    assert [(one["score"], one["traced"]) for one in found["scores"]] == [(1.0, None)]
    custom = {**CONFIG, "filter_list": [{"name": "digits", "filter": [{"function": "<class 'utils.Mine'>"}]}]}
    folder = write_log(tmp_path / "b", row(0, ["1"], ["1"], 1.0), config=custom).parent
    text = told(capsys, folder, "--doc", 0)
    assert "it cannot be run again: unknown filter" in text
    assert "the log kept '1'" in text


def test_a_document_without_a_score_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lost = {"unscored": {"exact_match": "failed: timed out"}}
    bad = row(1, [], [], None, resps=[[None]], metrics=[], evalcore=lost)
    del bad["exact_match"]
    folder = write_log(tmp_path, row(0, ["1"], ["1"], 1.0), bad, config=CONFIG).parent
    text = told(capsys, folder, "--doc", 1)
    assert "no filter saw it" in text
    assert re.search(r"digits +exact_match +none +timed out", text)
    assert re.search(r"sums +digits +exact_match +1 +1\.0000 +1\.0000 +0\.000000", text)


# --- texts from outside ----------------------------------------------------------------------------------------------

HOSTILE = "\x1b[2J\x1b]0;owned\x07 1 \u202e\u2066|`*<b>\r\x9b31m \ud800"


@pytest.mark.parametrize("form", [(), ("--markdown",), ("--full",)])
def test_nothing_that_a_terminal_obeys_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: tuple[str, ...]
) -> None:
    doc = {"id": HOSTILE, "question": HOSTILE}
    given = row(0, [HOSTILE, HOSTILE, "2"], [HOSTILE], 0.0, doc=doc, target=HOSTILE, filter=HOSTILE)
    given["arguments"] = {"gen_args_0": {"arg_0": HOSTILE, "arg_1": {"until": [HOSTILE]}}}
    own = {**CONFIG, "filter_list": [{"name": HOSTILE, "filter": FILTERS}]}
    folder = write_log(tmp_path, given, config=own).parent
    text = told(capsys, folder, "--doc", 0, *form)
    assert "owned" in text
    assert not ESCAPES.search(text), ESCAPES.search(text)
    found = data(capsys, folder, "--doc", 0)
    assert found["answers"][0][0] == HOSTILE  # for programs all of it


def test_huge_texts_are_shortened_in_the_middle_unless_all_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    huge = "begins " + "x" * 2_000_000 + " ends with 1"
    given = row(0, [huge], ["1"], 1.0)
    given["arguments"] = {"gen_args_0": {"arg_0": huge, "arg_1": {}}}
    folder = write_log(tmp_path, given, config=CONFIG).parent
    text = told(capsys, folder, "--doc", 0)
    assert len(text) < 20_000
    assert text.count("begins xxx") == 2
    assert text.count("xxx ends with 1") == 2
    assert "characters …" in text
    assert huge in told(capsys, folder, "--doc", 0, "--full")


def test_markdown_and_text_tell_the_same_scores(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, run, "--task", "quickstart_one_step", "--doc", 3)
    marked = told(capsys, run, "--task", "quickstart_one_step", "--doc", 3, "--markdown")
    heads = [line[4:] for line in marked.splitlines() if line.startswith("### ")]
    assert heads[1:] == ["Prompt", "Answer", "Filter strict-match", "Filter flexible-extract", "Gold", "Scores", "Contribution"]  # fmt: skip
    assert all(re.search(rf"^{re.escape(head)}$", text, re.M) for head in heads[1:])
    keys = [MetricKey("exact_match", name) for name in ("strict-match", "flexible-extract")]
    assert all(re.search(rf"\|{key.filter} *\|{key.metric} *\| *1\|", marked) for key in keys)


# --- rules, shards, old logs, other harnesses ------------------------------------------------------------------------

MEDIAN = {"task": "t", "output_type": "generate_until", "metric_list": [{"metric": "acc", "aggregation": "median"}]}


@pytest.mark.parametrize(("policy", "middle"), [("evalcore", 0.375), ("lm-eval-0.4.13", 0.5)])
def test_numbers_are_made_again_by_the_rules_of_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: str, middle: float
) -> None:
    """lm-eval's median of an even number of scores is the upper of the two in the middle."""
    results = {"configs": {"t": MEDIAN}, "evalcore": {"policy": policy}}
    even = write_run(tmp_path / "even", {"t": [0.0, 0.75, 0.25, 0.5]}, results=results)
    [part] = data(capsys, even, "--doc", 0)["contributions"]
    assert (part["value"], part["without"]) == (middle, 0.5)
    odd = write_run(tmp_path / "odd", {"t": [1.0, 0.0, 0.75, 0.25, 0.5]}, results=results)
    [part] = data(capsys, odd, "--doc", 0)["contributions"]
    assert (part["value"], part["without"]) == (0.5, middle)
    assert main(["diff", str(odd), str(even), "--json"]) == 1
    [number] = json.loads(capsys.readouterr().out)["numbers"]
    assert (number["before"], number["after"]) == (0.5, middle)


def test_logs_of_2023_name_only_the_first_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = {"arguments": ["Sky?", " blue"], "resps": [[[-1.5, False]], [[-2.5, False]]]}
    row = {
        "doc_id": 0,
        "doc": {"q": "Sky?"},
        "target": "blue",
        **pair,
        "filtered_resps": [[-1.5, False], [-2.5, False]],
    }
    log = write_rows(tmp_path / "sky.jsonl", [row | {"acc": 1.0}])
    other = write_rows(tmp_path / "b" / "sky.jsonl", [row | {"acc": 0.0}])
    text = told(capsys, log, "--doc", 0)
    assert "-1.5000" in text
    assert "-2.5000" in text
    assert main(["diff", str(log), str(other)]) == 1
    assert "right -> wrong" in capsys.readouterr().out


def test_the_file_is_that_of_the_shard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = rows_of("t", "acc", [1.0, 0.0, 1.0])
    write_rows(tmp_path / "samples_t_2026-01-31T12-00-00.000000.jsonl", rows[:2])
    second = write_rows(tmp_path / "samples_t_2026-01-31T13-00-00.000000.jsonl", rows[2:])
    for hour in (12, 13):  # without results, nothing would say that these are of one run
        (tmp_path / f"results_2026-01-31T{hour}-00-00.000000.json").write_text(json.dumps({"results": {"t": {}}}))
    found = data(capsys, tmp_path, "--doc", 2)
    assert (found["file"], found["line"]) == (str(second), 1)
    assert f"in {second}:1" in told(capsys, tmp_path, "--doc", 2)


@pytest.mark.parametrize("odd", [False, True])
def test_rows_that_do_not_name_their_filter_have_those_of_the_config_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], odd: bool
) -> None:
    """``odd``: another row has a score that JSON has no words for, as lm-eval writes it."""
    config = CONFIG | {"filter_list": [{"name": name, "filter": FILTERS} for name in ("first", "second")]}
    given = [row(at, ["1"], [name], 0.5 + at, filter=name) for name in ("first", "second") for at in range(2)]
    if odd:
        given[0]["exact_match"] = float("nan")
    else:
        given = [{key: value for key, value in one.items() if key != "filter"} for one in given]
    write_log(tmp_path, *given, config=config)
    found = data(capsys, tmp_path, "--doc", 1)
    assert {one["filter"]: one["logged"] for one in found["filters"]} == {"first": ["first"], "second": ["second"]}
    assert {one["filter"]: one["score"] for one in found["scores"]} == {"first": 1.5, "second": 1.5}


def test_a_plain_table_is_traced_as_scoring_takes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "my table.jsonl"
    lines = [
        {"k": at // 2, "n": at % 2, "a": reply, "g": "4", "s": 0.25} for at, reply in enumerate(["5", "4", "4", "no"])
    ]
    table.write_text("".join(json.dumps(one) + "\n" for one in lines))
    given = ("--answer", "a", "--gold", "g", "--id", "k", "--repeat", "n")
    assert main(["score", str(table), *given, "-o", str(tmp_path / "out"), "--quiet"]) == 0
    for doc in (0, 1):
        found, scored = data(capsys, table, *given, "--doc", f"#{doc}"), data(capsys, tmp_path / "out", "--doc", doc)
        assert [found[key] for key in ("filters", "answers", "gold")] != [[], [], None]
        assert found["answers"] == scored["answers"]
        assert [one["score"] for one in found["scores"]] == [one["score"] for one in scored["scores"]] == [float(doc)]
    text = told(capsys, table, *given, "--doc", "0")
    assert "'5' is not '4'" in text
    assert re.search(r"my table +exact_match +2 +0\.5", text)  # its part in the number
    assert "traced by what `score` does with it" in text
    assert "Prompt" not in text  # no column holds what was asked
    recorded = told(capsys, table, "--answer", "a", "--score", "s", "--doc", "0")
    assert re.search(r"none +s +0\.25 +as it was recorded", recorded)
    assert re.search(r"Gold\n +\(none\)", recorded)


def test_an_inspect_log_is_explained_and_diffed_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = {"id": 1, "epoch": 1, "input": "2 + 2", "target": "4", "output": {"choices": [
        {"message": {"role": "assistant", "content": "4"}, "stop_reason": "stop"}]}, "scores": {"match": {"value": "C"}}}  # fmt: skip
    log = {
        "version": 2,
        "status": "success",
        "eval": {"task": "sums", "model": "m", "dataset": {}},
        "samples": [sample],
    }
    path = tmp_path / "sums.json"
    path.write_text(json.dumps(log))
    text = told(capsys, path, "--doc", 0)
    assert re.search(r"sums +match +1 +1\.0", text)
    assert main(["diff", str(path), str(path)]) == 0
    assert "No verdict changed" in capsys.readouterr().out
