"""``evalcore diff`` on two scorings of the same answers: against the sample logs themselves, and never mixing up answers."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from sample_runs import STAMP, rows_of, write_log

from evalcore.core.records.outcome import Failed, NotEmitted, Ok, Unscorable
from evalcore.shell.cli import main
from evalcore.shell.explain.changes import KINDS, name_change
from evalcore.shell.output.terminal.screen import Screen

QUICKSTART = Path(__file__).resolve().parents[2] / "examples" / "quickstart"
ESCAPES = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
TEMPLATE = Path("tasks") / "_arithmetic_template_yaml"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quickstart as it is, and once more after an edit: the flexible filter takes the first number."""
    folder = tmp_path_factory.mktemp("diff")
    shutil.copytree(QUICKSTART, folder / "q")
    run = ["run", str(folder / "q" / "config.yaml"), "--quiet", "--output_path"]
    assert main([*run, str(folder / "old")]) == 0
    edited = folder / "q" / TEMPLATE
    text = edited.read_text()
    assert "group_select: -1" in text
    edited.write_text(text.replace("group_select: -1", "group_select: 0"))
    assert main([*run, str(folder / "new")]) == 0
    return folder


def told(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 1) -> str:
    capsys.readouterr()
    assert main(["diff", *map(str, arguments)]) == code
    out = capsys.readouterr()
    return out.err if code == 2 else out.out


def data(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 1) -> dict[str, object]:
    text = told(capsys, *arguments, "--json", code=code)
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"not strict JSON: {word}"))


def scores(run: Path, task: str, name: str) -> dict[int, dict[str, object]]:
    rows = [json.loads(line) for line in (run / f"samples_{task}.jsonl").read_text().splitlines()]
    return {row["doc_id"]: row for row in rows if row["filter"] == name}


def rewrite(run: Path, to: Path, task: str, edit: object) -> Path:
    """A copy of a run in which some rows of a task's log are changed, or dropped where ``edit`` gives None."""
    shutil.copytree(run, to)
    path = to / f"samples_{task}.jsonl"
    rows = [edit(json.loads(line)) for line in path.read_text().splitlines()]  # type: ignore[operator]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows if row is not None))
    return to


# --- what changed ----------------------------------------------------------------------------------------------------


def test_nothing_changed_is_exit_code_0(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, home / "old", home / "old", code=0)
    assert text.startswith("No verdict changed on the 210 documents with the same answers")
    found = data(capsys, home / "old", home / "old", code=0)
    assert found["changed"] is False
    assert all(not task["changes"] and not task["answers_differ"] for task in found["tasks"])
    assert all(one["before"] == one["after"] for one in found["numbers"])


def test_the_changes_are_those_of_the_logs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, home / "old", home / "new", "--limit", 100)
    tasks = {task["task"]: task for task in found["tasks"]}
    for name in ("quickstart_one_step", "quickstart_two_step"):
        wanted, kinds, texts = {}, Counter(), 0
        for label in ("strict-match", "flexible-extract"):
            old, new = scores(home / "old", name, label), scores(home / "new", name, label)
            for doc, row in old.items():
                before, after = row["exact_match"], new[doc]["exact_match"]
                if before != after:
                    wanted[label, doc] = (before, after, row["filtered_resps"], new[doc]["filtered_resps"])
                    kinds["right -> wrong" if before else "wrong -> right"] += 1
                else:
                    texts += row["filtered_resps"] != new[doc]["filtered_resps"]
        made = {
            (one["filter"], one["doc"]): (
                one["before"],
                one["after"],
                one["extracted_before"]["kept"],
                one["extracted_after"]["kept"],
            )
            for one in tasks[name]["changes"]
        }
        assert made == wanted
        assert {kind: count for kind, count in tasks[name]["counts"].items() if count} == dict(kinds)
        assert sum(tasks[name]["other_text_only"].values()) == texts
    assert len(tasks["quickstart_one_step"]["changes"]) > 5
    assert all(not task["changes"] for name, task in tasks.items() if "step" not in name)


def test_numbers_are_those_of_both_results(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = [json.loads((home / run / "results.json").read_text())["results"] for run in ("old", "new")]
    found = data(capsys, home / "old", home / "new")["numbers"]
    assert {one["kind"] for one in found} == {"task", "group"}
    for one in found:
        key = f"{one['metric']},{one['filter']}"
        assert [one["before"], one["after"]] == [pytest.approx(side[one["name"]][key]) for side in results]


@pytest.mark.parametrize(
    ("width", "heads"),
    [
        (200, "Tasks Filter Metric before after after − before right -> wrong wrong -> right other text only"),
        (100, "Tasks before after after − before right -> wrong wrong -> right other text only"),
        (80, "Tasks before after right -> wrong wrong -> right"),
        (60, "Tasks before after right -> wrong wrong -> right"),
    ],
)
def test_numbers_fit_the_screen_and_keep_what_they_are_about(
    width: int, heads: str, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalcore.shell.output.terminal.screen._screen_of", lambda stream: Screen(width))
    text = told(capsys, home / "old", home / "new", "--limit", 0).partition("Numbers\n")[2].partition("\n\n")[0]
    _, head, _, row, *_ = text.splitlines()
    assert " ".join(head.split()) == heads
    assert re.match(r"  one_step( |/)", row)
    assert " 0.3667 " in row
    assert all(len(line) <= width for line in text.splitlines())


def test_people_see_answer_rule_gold_and_score(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, home / "old", home / "new", "--limit", 2)
    assert "exact_match,flexible-extract, document 3: right -> wrong (1 -> 0)" in text
    assert re.search(r"answer +' Jonas reads 9 \* 5 = 45 pages\. The answer is 45\.'", text)
    assert re.search(r"gold +'The answer is 45\.'", text)
    assert re.search(r"before +'45\.' +regex: match 4 of 4 of", text)
    assert re.search(r"after +'9' +regex: match 1 of 4 of", text)
    assert re.search(r"arithmetic +flexible-extract +exact_match +0\.2200 +0\.0\d+ +-0\.\d+", text)
    assert re.search(r"Not shown\n +quickstart_one_step: \d+ more changes; --limit \d+ shows all", text)
    assert text.count("right -> wrong (") + text.count("wrong -> right (") == 2
    marked = told(capsys, home / "old", home / "new", "--limit", 2, "--markdown")
    assert "|before|'45.'" in re.sub(r" +\|", "|", marked)


def test_the_other_way_round_is_the_mirror_image(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (data(capsys, home / a, home / b)["tasks"] for a, b in (("old", "new"), ("new", "old")))
    for left, right in zip(one, two, strict=True):
        assert left["counts"]["right -> wrong"] == right["counts"]["wrong -> right"]
        pairs = [[(c["doc"], c["filter"], c["before"], c["after"]) for c in side["changes"]] for side in (left, right)]
        assert [(d, f, b, a) for d, f, a, b in pairs[0]] == pairs[1]


def test_only_these_tasks_and_metrics(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, home / "old", home / "new", "--task", "*_world", "--metric", "acc", code=0)
    assert [one["task"] for one in found["tasks"]] == ["quickstart_world"]
    assert {one["metric"] for one in found["numbers"] if one["kind"] == "task"} == {"acc"}
    assert "unknown task 'wrld'" in told(capsys, home / "old", home / "new", "--task", "wrld", code=2)
    assert "did you mean 'exact_match'?" in told(capsys, home / "old", home / "new", "--metric", "exact_mtch", code=2)
    assert "no such file or folder" in told(capsys, home / "old", home / "nowhere", code=2)


# --- what is no change of scoring --------------------------------------------------------------------------------------


def test_other_answers_are_told_apart(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def edit(row: dict[str, object]) -> dict[str, object]:
        if row["doc_id"] in (3, 7):
            row |= {"resps": [["another answer"]], "filtered_resps": ["[invalid]"], "exact_match": 0.0}
        return row

    other = rewrite(home / "old", tmp_path / "other", "quickstart_one_step", edit)
    found = data(capsys, home / "old", other)
    task = next(one for one in found["tasks"] if one["task"] == "quickstart_one_step")
    assert task["answers_differ"] == [3, 7]
    assert task["changes"] == []
    text = told(capsys, home / "old", other)
    assert "The answers differ: use compare" in text
    assert "quickstart_one_step: 2 of 30 documents (3, 7)" in text
    assert text.startswith("No verdict changed on the 208 documents")


def test_documents_are_matched_by_what_they_say(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def renumber(row: dict[str, object]) -> dict[str, object]:
        return row | {"doc_id": 1000 - row["doc_id"]}  # type: ignore[operator]

    other = rewrite(home / "old", tmp_path / "renumbered", "quickstart_nature", renumber)
    assert data(capsys, home / "old", other, code=0)["changed"] is False
    less = rewrite(home / "old", tmp_path / "less", "quickstart_nature", lambda row: row if row["doc_id"] else None)
    text = told(capsys, home / "old", less)
    assert re.search(r"Only before\n +quickstart_nature: 1 documents \(0\)", text)


def test_what_only_one_side_has(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def rename(row: dict[str, object]) -> dict[str, object]:
        return row | {"filter": "renamed"} if row["filter"] == "strict-match" else row

    other = rewrite(home / "old", tmp_path / "renamed", "quickstart_one_step", rename)
    (other / "samples_quickstart_prose.jsonl").unlink()
    found = data(capsys, home / "old", other)
    task = next(one for one in found["tasks"] if one["task"] == "quickstart_one_step")
    assert (task["metrics_only_a"], task["metrics_only_b"]) == (["exact_match,strict-match"], ["exact_match,renamed"])
    assert found["tasks_only_a"] == ["quickstart_prose"]
    (other / "samples_quickstart_two_step.jsonl").unlink()
    groups = {one["name"] for one in data(capsys, home / "old", other)["numbers"] if one["kind"] == "group"}
    assert groups == {"quickstart_knowledge"}  # the other one is not made of the same tasks any more
    text = told(capsys, home / "old", other)
    assert re.search(r"Only after\n +quickstart_one_step: exact_match,renamed", text)


def test_a_filter_under_a_new_name_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = rows_of("t", "acc", [1.0, 0.0])
    sides = [write_log(tmp_path / name / "samples_t.jsonl", [row | {"filter": name} for row in rows]) for name in "ab"]
    text = told(capsys, *sides)
    assert "No verdict was compared" in text
    assert "t: before a; after b" in text
    assert "keep its old name" in " ".join(text.split())
    assert "0 numbers" not in text
    [task] = data(capsys, *sides)["tasks"]
    assert (task["filters_only_a"], task["filters_only_b"]) == (["a"], ["b"])


def test_where_the_text_is_the_same_how_it_was_judged_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only an option of the metric was changed: both sides extracted 'yes', and one did not ignore the stop."""
    sides = []
    for side, ignored, score in (("a", [","], 0.0), ("b", [",", r"\.$"], 1.0)):
        metric = {
            "metric": "exact_match",
            "aggregation": "mean",
            "higher_is_better": True,
            "regexes_to_ignore": ignored,
        }
        config = {"task": "t", "output_type": "generate_until", "metric_list": [metric]}
        rows = [row | {"target": "yes."} for row in rows_of("t", "exact_match", [score])]
        write_log(tmp_path / side / f"samples_t_{STAMP}.jsonl", rows)
        results = {"results": {"t": {"exact_match,none": score}}, "configs": {"t": config}}
        (tmp_path / side / f"results_{STAMP}.json").write_text(json.dumps(results))
        sides.append(tmp_path / side)
    text = told(capsys, *sides)
    assert re.search(r"before +'yes' +'yes' is not 'yes\.'", text)
    assert re.search(r"after +'yes' +'yes' and the gold 'yes\.' are equal once normalised: 'yes'", text)
    assert r"exact_match: regexes_to_ignore was [','], is [',', '\\.$'] (t)" in text
    [task] = data(capsys, *sides)["tasks"]
    [changed] = task["options_changed"]
    assert (changed["before"]["regexes_to_ignore"], changed["after"]["regexes_to_ignore"]) == ([","], [",", r"\.$"])
    assert data(capsys, sides[0], sides[0], code=0)["tasks"][0]["options_changed"] == []


def test_scores_that_come_and_go(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def edit(row: dict[str, object]) -> dict[str, object]:
        if row["doc_id"] == 2 and row["filter"] == "strict-match":
            row = {key: value for key, value in row.items() if key != "exact_match"}
            row |= {"metrics": [], "evalcore": {"unscored": {"exact_match": "unscorable: no number in it"}}}
        return row

    other = rewrite(home / "old", tmp_path / "lost", "quickstart_one_step", edit)
    for sides, kind in (((home / "old", other), "newly unscorable"), ((other, home / "old"), "newly scored")):
        [task] = [one for one in data(capsys, *sides)["tasks"] if one["changes"]]
        [change] = task["changes"]
        assert (change["doc"], change["kind"]) == (2, kind)
        assert "no number in it" in told(capsys, *sides)


def test_logs_alone_are_compared_by_what_they_say(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a config there is no rule to name, but what was extracted and the verdicts are there."""
    for run in ("old", "new"):
        (tmp_path / run).mkdir()
        shutil.copy(home / run / "samples_quickstart_one_step.jsonl", tmp_path / run / "samples_sums.jsonl")
    sides = [tmp_path / run / "samples_sums.jsonl" for run in ("old", "new")]
    found = data(capsys, *sides)
    whole = data(capsys, home / "old", home / "new", "--task", "quickstart_one_step")
    assert found["tasks"][0]["counts"] == whole["tasks"][0]["counts"]
    text = told(capsys, *sides, "--limit", 1)
    assert re.search(r"before +'45\.' +no config says which filters these are", text)


KIND_CASES = [
    (Ok(1.0), Ok(0.0), False, "right -> wrong"),
    (Ok(0), Ok(1), False, "wrong -> right"),
    (Ok(1.0), Ok(0.0), True, "wrong -> right"),
    (Ok(0.5), Ok(0.0), False, "other"),
    (Ok((1, 0)), Ok((1, 1)), False, "other"),
    (Ok(0.1 + 0.2), Ok(0.3), False, None),
    (Ok([1.0, 2.0]), Ok((1, 2)), False, None),
    (Ok(1.0), Unscorable("?"), False, "newly unscorable"),
    (Ok(0.0), Failed("?"), False, "newly unscorable"),
    (NotEmitted(), Ok(0.0), False, "newly scored"),
    (Failed("a"), Unscorable("b"), False, None),
]


@pytest.mark.parametrize(("before", "after", "lower", "kind"), KIND_CASES)
def test_kinds_of_change(before: Ok, after: Ok, lower: bool, kind: str | None) -> None:
    assert name_change(before, after, lower=lower) == kind
    assert kind is None or kind in KINDS


# --- texts from outside ----------------------------------------------------------------------------------------------

HOSTILE = "\x1b[2J\x1b]0;owned\x07 \u202e|`*\r\x9b31m \ud800 " + "x" * 300_000


@pytest.mark.parametrize("form", [(), ("--markdown",)])
def test_nothing_that_a_terminal_obeys_is_printed(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: tuple[str, ...]
) -> None:
    def hostile(row: dict[str, object], score: float) -> dict[str, object]:
        if row["doc_id"] == 4:
            row |= {"resps": [[HOSTILE]], "filtered_resps": [HOSTILE], "target": HOSTILE, "exact_match": score}
        return row

    one = rewrite(home / "old", tmp_path / "one", "quickstart_one_step", lambda row: hostile(row, 0.0))
    two = rewrite(home / "old", tmp_path / "two", "quickstart_one_step", lambda row: hostile(row, 1.0))
    text = told(capsys, one, two, *form)
    assert "owned" in text
    assert len(text) < 20_000
    assert not ESCAPES.search(text), ESCAPES.search(text)
    changes = next(task["changes"] for task in data(capsys, one, two)["tasks"] if task["changes"])
    assert changes[0]["answer"] == [[HOSTILE]]
