"""Tasks that cannot be built, among others that can: an error by default, with ``keep_going`` a run of the others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from small_tasks import TASKS, evalcore, evalcore_here, share_index, write_tasks

from evalcore import EvalError, run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_tasks(tmp_path / "tasks")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(share_index(tmp_path / "cache")))
    return tmp_path


def change(home: Path, name: str, **keys: object) -> None:
    path = home / f"tasks/{name}.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **keys}, sort_keys=False))


def lose_data(home: Path) -> None:
    change(home, "guesses", dataset_kwargs={"data_files": {"test": "nowhere.jsonl"}})


def name_no_metric(home: Path) -> None:
    change(home, "guesses", metric_list=[{"metric": "exact_mtch"}])


def need_trust(home: Path) -> None:
    (home / "tasks/utils.py").write_text("def text(doc):\n    return doc['city']\n")
    path = home / "tasks/guesses.yaml"
    lines = [
        "doc_to_text: !function utils.text" if "doc_to_text" in one else one for one in path.read_text().split("\n")
    ]
    path.write_text("\n".join(lines))


def be_a_class(home: Path) -> None:
    (home / "tasks/guesses.yaml").write_text("task: guesses\nclass: utils.Task\n")


def misspell_a_column(home: Path) -> None:
    change(home, "guesses", doc_to_text="citty")


FAILURES: dict[Callable[[Path], None], str] = {
    lose_data: "nowhere.jsonl",
    name_no_metric: "unknown metric 'exact_mtch'; did you mean 'exact_match'?",
    need_trust: "would run code that is not trusted",
    be_a_class: "is a python class, which evalcore does not run",
    misspell_a_column: "no column 'citty'; did you mean 'city'?",
}
KEYS: dict[str, object] = {"model": "dummy", "tasks": ["small"], "include_path": "tasks", "output_path": "out"}


@pytest.mark.slow
@pytest.mark.parametrize("break_task", FAILURES)
def test_the_others_are_run_and_the_failed_task_is_named(home: Path, break_task: Callable[[Path], None]) -> None:
    whole = run(KEYS, output_path="whole")
    break_task(home)
    with pytest.raises(EvalError) as refused:
        run(KEYS)
    assert FAILURES[break_task] in str(refused.value)
    assert str(refused.value).endswith("(to run the other tasks without it: --keep_going)")
    assert not (home / "out/answers.jsonl").exists()  # nothing was asked

    result = run(KEYS, keep_going=True)
    assert not result.complete
    assert list(result.failed) == ["guesses"]
    assert FAILURES[break_task] in result.failed["guesses"]
    assert [task.name for task in result.report.tasks] == ["places", "sums", "lines"]
    for task in result.report.tasks:
        assert task.estimates == whole.report.task(task.name).estimates
    written = json.loads((home / "out/results.json").read_text())
    assert written["evalcore"]["failed_tasks"] == dict(result.failed)
    assert json.loads((home / "out/run.json").read_text())["failed_tasks"] == dict(result.failed)
    assert "guesses" not in written["results"]
    assert "guesses was left out, as it cannot be built: " in str(result)


def test_a_group_without_the_task_is_partial(home: Path) -> None:
    """As contract A19 says: flagged, with what is missing; ``missing: fail`` is refused before anything is asked."""
    whole = run(KEYS, output_path="whole")
    lose_data(home)
    result = run(KEYS, keep_going=True)
    texts = result.report.group("small::texts")
    assert texts.estimates
    for key, estimate in texts.estimates:
        assert estimate.group.missing == ("guesses",)
        assert estimate.value == result.report.task("sums").get(key).value
        assert "E07" in estimate.errata
    assert not any(
        one.group.missing for key, one in whole.report.group("small::texts").estimates if key.filter == "none"
    )
    assert any("is missing in 1/2 tasks: guesses" in one for one in texts.warnings)

    inner = yaml.safe_load((home / "tasks/small.yaml").read_text())
    inner["task"][1]["aggregate_metric_list"][0]["missing"] = "fail"
    (home / "tasks/small.yaml").write_text(yaml.safe_dump(inner, sort_keys=False))
    with pytest.raises(EvalError, match=r"group 'small::texts' may miss no task \(missing: fail\), and guesses cannot"):
        run(KEYS, keep_going=True, output_path="other")
    assert not (home / "other").exists()


def test_a_task_that_is_repaired_joins_the_answers_of_the_others(home: Path) -> None:
    original = (home / "tasks/guesses.yaml").read_text()
    lose_data(home)
    run(KEYS, keep_going=True)
    (home / "tasks/guesses.yaml").write_text(original)
    again = run(KEYS, keep_going=True)
    assert again.complete
    assert not again.failed
    facts = json.loads((home / "out/run.json").read_text())
    assert (facts["asked_now"], "failed_tasks" in facts) == (30, False)
    assert "failed_tasks" not in json.loads((home / "out/results.json").read_text())["evalcore"]


def test_without_any_task_left_there_is_nothing_to_run(home: Path) -> None:
    for name in TASKS:
        change(home, name, dataset_kwargs={"data_files": {"test": "nowhere.jsonl"}})
    with pytest.raises(EvalError, match=r"none of 4 tasks can be built; the first: .*nowhere\.jsonl"):
        run(KEYS, keep_going=True)
    with pytest.raises(EvalError) as alone:  # there are no others
        run(KEYS, tasks=["sums"])
    assert "keep_going" not in str(alone.value)


def test_one_of_25_tasks_costs_the_others_nothing(home: Path) -> None:
    text = (home / "tasks/sums.yaml").read_text()
    names = [f"t{n:02}" for n in range(25)]
    for name in names:
        (home / f"tasks/{name}.yaml").write_text(text.replace("task: sums", f"task: {name}"))
    change(home, "t13", dataset_kwargs={"data_files": {"test": "nowhere.jsonl"}})
    given = ("run", "--model", "dummy", "--include_path", "tasks", "--output_path", "out", "--tasks", ",".join(names))
    refused = evalcore_here(home, *given)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--keep_going" in refused.stderr
    done = evalcore(home, *given, "--keep_going")
    assert done.returncode == 1, done.stderr
    assert "t13 was left out, as it cannot be built: " in done.stdout
    assert "t13 was left out" in done.stderr  # before anything was asked
    assert sorted(json.loads((home / "out/results.json").read_text())["results"]) == [n for n in names if n != "t13"]
    for form in ("--json", "--csv", "--quiet"):
        piped = evalcore_here(home, *given, "--keep_going", form)
        assert piped.returncode == 1
        assert "t13 was left out" in piped.stderr
